"""The tree view: modules nested in each other, and in each the ops that ran.

MHA  f32[2,5,6] → f32[2,5,6]                                               train.py:52
├─ query  Linear(in_features=6, out_features=6)  f32[2,5,6] → f32[2,5,6]     mha.py:30
├─ view(2, 5, 3, 2)                                       MHA.split_heads  mha.py:18
│    Input:  f32[2,5,6]  x
│    Output: f32[2,5,3,2]
└─ @                                                                         mha.py:34
     Left:   f32[2,3,5,2]  q
     Right:  f32[2,3,2,5]
     Output: f32[2,3,5,5]
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from shapetrace.events.call_tree import Node, build
from shapetrace.events.model import ModuleCall, Op, Trace
from shapetrace.views.call_text import (
    Operand,
    count_text,
    error_text,
    filled_form,
    module_inputs,
    module_marks,
    operands,
    outcome,
)
from shapetrace.views.folding import Entry, Fold, Folding, frames_of
from shapetrace.views.place_text import function_text, place_spans
from shapetrace.views.styled import (
    Line,
    Span,
    StyledText,
    cells,
    cut_line,
    cut_to_cells,
    join_right,
    line_cells,
    printable,
)
from shapetrace.views.summary import closing, header
from shapetrace.views.value_text import value_spans
from shapetrace.views.view_options import ViewOptions

_LEAST_BODY = 40
"""Columns that a row keeps however deep it is nested; past that, lines get wider."""

_LEAST_DETAIL = 12
"""A module's description of itself is dropped where less of it would be left."""

_LONGEST_PLACE = 28
"""Columns that a place may take from a title that needs them itself."""

_ROLE_WIDTH = len("Outputs:")


def render_tree(trace: Trace, options: ViewOptions | None = None) -> StyledText:
    """Modules nested and indented, with their ops inside."""
    return _TreeWriter(trace, options or ViewOptions()).text()


class _TreeWriter:
    """Writes one trace as a tree, top down."""

    def __init__(self, trace: Trace, options: ViewOptions) -> None:
        self._trace = trace
        self._options = options
        self._folding = Folding(frames_of(trace), verbose=options.verbose)
        self._lines: list[Line] = []

    def text(self) -> StyledText:
        """The whole view."""
        self._lines.append(header(self._trace, self._options))
        after_module = True
        for entry in self._folding.entries(build(self._trace).roots, None):
            is_module = isinstance(entry, Node) and isinstance(entry.event, ModuleCall)
            if is_module or after_module:
                self._lines.append(())
            after_module = is_module
            self._write_from(entry)
        self._lines.extend(closing(self._trace, self._options))
        return StyledText(tuple(self._lines))

    def _write_from(self, root: Entry) -> None:
        """Write an outermost entry and all inside it, without recursion: nesting may be deep."""
        pending: list[tuple[Entry, ModuleCall | None, str, str]] = [(root, None, "", "")]
        while pending:
            entry, module, head, tail = pending.pop()
            inside = self._write_entry(entry, module, head, tail)
            if isinstance(entry, Node) and isinstance(entry.event, ModuleCall):
                module = entry.event
            for position in range(len(inside) - 1, -1, -1):
                if position == len(inside) - 1:
                    pending.append((inside[position], module, tail + "└─ ", tail + "   "))
                else:
                    pending.append((inside[position], module, tail + "├─ ", tail + "│  "))

    def _write_entry(
        self, entry: Entry, module: ModuleCall | None, head: str, tail: str
    ) -> Sequence[Entry]:
        """Write the rows of one entry, and return the entries below it."""
        if isinstance(entry, Fold):
            self._write_fold(entry, head)
            return ()
        if isinstance(entry.event, ModuleCall):
            inside = self._folding.entries(entry.children, entry.event)
            marks = module_marks(entry.event, module)
            self._write_module(entry.event, marks, head, tail + ("│ " if inside else "  "))
            return inside
        if entry.event.level == "torch":
            self._write_op(entry.event, head, tail + ("│ " if entry.children else "  "))
        else:
            self._write_kernel(entry.event, head, tail + ("│ " if entry.children else "  "))
        return entry.children

    def _write_module(self, call: ModuleCall, marks: str, head: str, row_head: str) -> None:
        flow = _flow(call)
        full_title = _module_title(call, marks, cells(call.detail) + 2)
        place = self._place(call, 0)
        joined = (("  ", None), *flow) if flow else ()
        one_line = join_right(
            (_guide(head), *full_title, *joined), place, max(self._room(head) + cells(head), 0)
        )
        if one_line is not None:
            self._lines.append(one_line)
        else:
            room = self._room(head) - line_cells(place) - 2
            detail_room = room - line_cells(_module_title(call, marks, 0))
            self._write_titled(head, _module_title(call, marks, detail_room), place)
            self._write_flow(call, flow, row_head)
        self._write_values(call, row_head)
        self._write_error(call, row_head, whole=False)
        if call.note is not None:
            self._write_row(row_head, ((printable(call.note), "note"),))

    def _write_flow(self, call: ModuleCall, flow: Sequence[Span], row_head: str) -> None:
        if line_cells(flow) <= self._room(row_head):
            self._write_row(row_head, flow)
            return
        inputs = module_inputs(call, self._room(row_head))
        if inputs:
            self._write_row(row_head, ((inputs, "shape"),))
        if call.error is None:
            room = self._room(row_head) - 2
            self._write_row(row_head, (("→ ", None), (outcome(call, room), "shape")))

    def _write_op(self, op: Op, head: str, row_head: str) -> None:
        title: list[Span] = [(printable(op.label), "call")]
        if op.count != 1:
            title.append((f"  {count_text(op.count)}", "count"))
        if op.thread is not None:
            title.append((f"  thread {printable(op.thread)}", "note"))
        self._write_titled(head, title, self._place(op, line_cells(title) + cells(head)))
        for operand in operands(op):
            self._write_operand(operand, row_head)
        if op.error is None:
            room = self._room(row_head) - _ROLE_WIDTH
            self._write_operand(Operand("Output", outcome(op, room)), row_head)
        self._write_values(op, row_head)
        self._write_error(op, row_head, whole=True)

    def _write_values(self, call: Op | ModuleCall, row_head: str) -> None:
        """Statistics of the returned values, if the recording has them."""
        spans = value_spans(call.fingerprints)
        if spans:
            self._write_row(row_head, (("Values:".ljust(_ROLE_WIDTH), "role"), *spans))

    def _write_operand(self, operand: Operand, row_head: str) -> None:
        role = f"{operand.role}:" if operand.role else ""
        spans: list[Span] = [(role.ljust(_ROLE_WIDTH), "role")]
        if operand.argument is not None:
            spans.append((f"{operand.argument}=", "role"))
        spans.append((operand.text, "shape"))
        if operand.name is not None:
            spans.append((f"  {operand.name}", "name"))
        if operand.traits:
            spans.append((f"  {operand.traits}", "note"))
        self._write_row(row_head, spans)

    def _write_kernel(self, op: Op, head: str, row_head: str) -> None:
        spans: list[Span] = [(filled_form(op), "detail")]
        if op.error is None:
            spans.append((f" → {outcome(op)}", "detail"))
        if op.count != 1:
            spans.append((f"  {count_text(op.count)}", "count"))
        self._write_row(head, spans)
        self._write_error(op, row_head, whole=True)

    def _write_fold(self, fold: Fold, head: str) -> None:
        title: list[Span] = [(fold.title, "note"), (f": {fold.names}", "detail")]
        self._write_titled(head, title, self._place(fold.at, line_cells(title) + cells(head)))

    def _write_error(self, call: Op | ModuleCall, row_head: str, *, whole: bool) -> None:
        """The error as rows: the whole first line where it arose, one row where it passed by."""
        if call.error is None:
            return
        text = f"✗ {error_text(call)}"
        room = self._room(row_head)
        if not whole:
            self._write_row(row_head, ((text, "error"),))
            return
        for part in textwrap.wrap(text, room, subsequent_indent="  ", break_on_hyphens=False):
            self._write_row(row_head, ((part, "error"),))

    def _write_titled(self, head: str, title: Sequence[Span], place: Sequence[Span]) -> None:
        """A title with its place at the right edge; a title too long for that is cut."""
        room = self._room(head)
        if place:
            title = cut_line(title, room - line_cells(place) - 2)
        line = join_right((_guide(head), *title), place, room + cells(head))
        self._lines.append(line or cut_line((_guide(head), *title), room + cells(head)))

    def _write_row(self, head: str, spans: Sequence[Span]) -> None:
        self._lines.append((_guide(head), *cut_line(spans, self._room(head))))

    def _place(self, call: Op | ModuleCall, taken: int) -> tuple[Span, ...]:
        """The place of a call, at most as wide as what ``taken`` columns leave."""
        left = max(self._options.columns - taken - 2, _LONGEST_PLACE)
        function = None if call.function is None else function_text(call.function)
        if taken == 0 or (function or "").endswith((".forward", "<module>")):
            function = None
        return place_spans(call.file, call.line, function, self._options.base, left)

    def _room(self, head: str) -> int:
        """Columns left beside the guides."""
        return max(self._options.columns - cells(head), _LEAST_BODY)


def _guide(head: str) -> Span:
    return (head, "guide")


def _module_title(call: ModuleCall, marks: str, detail_room: int) -> tuple[Span, ...]:
    """``layers.0.attn  MHA(heads=4)  ×12``, its detail cut to some columns."""
    spans: list[Span] = []
    if call.path:
        parent, dot, own = printable(call.path).rpartition(".")
        spans += [(parent + dot, "detail"), (own, "path"), ("  ", None)]
    spans.append((printable(call.class_name), "class" if call.path else "path"))
    detail = printable(call.detail)
    if detail and detail_room >= min(cells(detail), _LEAST_DETAIL):
        spans.append((f"({cut_to_cells(detail, detail_room - 2)})", "detail"))
    if marks:
        spans.append((f"  {marks}", "count"))
    return tuple(spans)


def _flow(call: ModuleCall) -> tuple[Span, ...]:
    """``f32[2,5,6] → f32[2,5,6]``: what went in and, unless it failed, what came out."""
    inputs = module_inputs(call)
    spans: list[Span] = [(inputs, "shape")] if inputs else []
    if call.error is None:
        spans += [(" → " if inputs else "→ ", None), (outcome(call), "shape")]
    return tuple(spans)
