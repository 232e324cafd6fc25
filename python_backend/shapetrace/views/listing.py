"""The listing view: the source lines that ran, with the calls they made and the ops they caused.

    out = model(x)                                                      # train.py:9 in <module>:
    │ ⬇️ MHA  f32[2,5,6] -> f32[2,5,6]
    │ q = self.split_heads(self.query(x))                            # mha.py:30 in MHA.forward:
    │ │ ⬇️ query (Linear)
    │ │ │ # linear(f32[2,5,6], f32[6,6], f32[6]) -> f32[2,5,6]
    │ │ ⬇️ MHA.split_heads
    │ │ return x.view(2, 5, 3, 2)                                # mha.py:18 in MHA.split_heads:
    │ │ │ # view(f32[2,5,6], 2, 5, 3, 2) -> f32[2,5,3,2]

A source line is printed again where others have come between it and what it did next: the nearest
source line above an op or a call is always the one that made it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from shapetrace.events.call_tree import Node, build, walk
from shapetrace.events.model import Frame, ModuleCall, Op, Trace
from shapetrace.views.call_text import (
    count_text,
    error_text,
    filled_form,
    module_inputs,
    module_marks,
    module_title,
    outcome,
)
from shapetrace.views.folding import Entry, Fold, Folding, frames_of
from shapetrace.views.place_text import (
    function_text,
    is_comprehension,
    is_standard_library,
    short_path,
)
from shapetrace.views.source_excerpts import Excerpt, Sources
from shapetrace.views.styled import (
    Line,
    Span,
    Style,
    StyledText,
    cells,
    cut_line,
    cut_to_cells,
    join_right,
    line_cells,
    printable,
)
from shapetrace.views.summary import closing, header
from shapetrace.views.view_options import ViewOptions

_GUIDE = "│ "
_CALL = "⬇️ "
_FLOW_INDENTATION = "   "
_LEAST_BODY = 40
"""Columns that a line keeps however deep it is nested."""

_TAB_WIDTH = 4


@dataclass(frozen=True, slots=True)
class _Source:
    """A statement that was running."""

    file: str
    lines: tuple[int | None, ...]
    function: str
    frame: Frame = field(compare=False)
    """The place in it that is meant now."""


@dataclass(frozen=True, slots=True)
class _Called:
    """A function that was entered from a place."""

    function: str
    caller: int


@dataclass(frozen=True, slots=True)
class _Entered:
    """A module call."""

    id: int


_Step: TypeAlias = _Source | _Called | _Entered


@dataclass(frozen=True, slots=True)
class _Chain:
    """How the program came to where something ran."""

    steps: tuple[_Step, ...] = ()
    stack: tuple[int, ...] = ()
    """The frames that the steps account for."""


def render_listing(trace: Trace, options: ViewOptions | None = None) -> StyledText:
    """Source lines interleaved with their calls and ops."""
    return _ListingWriter(trace, options or ViewOptions()).text()


class _ListingWriter:
    """Writes one trace as a listing, in the order in which things ran."""

    def __init__(self, trace: Trace, options: ViewOptions) -> None:
        self._trace = trace
        self._options = options
        self._folding = Folding(frames_of(trace), verbose=options.verbose)
        self._sources = Sources(options.read_source, trace.run.files)
        self._frames = {frame.id: frame for frame in trace.frames}
        self._chains: dict[int, _Chain] = {}
        self._open: tuple[_Step, ...] = ()
        self._nearest = -1
        """Which of the open steps is the source line printed last."""
        self._lines: list[Line] = []

    def text(self) -> StyledText:
        """The whole view."""
        self._lines += [header(self._trace, self._options), ()]
        pending = self._inside(build(self._trace).roots, None)
        while pending:
            entry, parent = pending.pop()
            if isinstance(entry, Fold):
                depth = self._enter(self._chain(entry.at, parent).steps, None)
                self._write(depth, ((f"# {entry.title}: {entry.names}", "note"),))
            elif isinstance(entry.event, ModuleCall):
                self._write_module(entry.event, entry.children, parent)
                pending += self._inside(entry.children, entry.event)
            else:
                self._write_op(entry, parent)
        self._lines.extend(closing(self._trace, self._options))
        return StyledText(tuple(self._lines))

    def _inside(
        self, nodes: Sequence[Node], module: ModuleCall | None
    ) -> list[tuple[Entry, ModuleCall | None]]:
        """The contents of a module in reverse order, as they are taken from the end."""
        shown = self._folding.entries(nodes, module) or nodes
        return [(entry, module) for entry in reversed(shown)]

    def _write_module(
        self, call: ModuleCall, inside: Sequence[Node], parent: ModuleCall | None
    ) -> None:
        chain = self._chain(call, parent)
        self._chains[call.id] = _Chain((*chain.steps, _Entered(call.id)), chain.stack)
        title: list[Span] = [(_CALL, "call"), (module_title(call), "path")]
        marks = module_marks(call, parent)
        if marks:
            title.append((f"  {marks}", "count"))
        depth_here = _depths(chain.steps)[-1]
        flow = "" if self._folding.is_told_by(inside, call) else _flow(call)
        is_beside = line_cells(title) + 2 + cells(flow) <= self._room(depth_here)
        if flow and is_beside:
            title.append((f"  {flow}", "shape"))
        depth = self._enter(self._chains[call.id].steps, title)
        if flow and not is_beside:
            room = self._room(depth_here) - len(_FLOW_INDENTATION)
            self._write(depth_here, ((_FLOW_INDENTATION + _flow(call, room), "shape"),))
        if call.error is not None:
            passes_by = any(node.event.error == call.error for node in inside)
            text = printable(call.error.type) if passes_by else error_text(call)
            self._write(depth, ((f"✗ {text}", "error"),))
        if call.note is not None:
            self._write(depth, ((f"# {printable(call.note)}", "note"),))

    def _write_op(self, node: Node, parent: ModuleCall | None) -> None:
        """An op, and below it the kernels that it ran."""
        if not isinstance(node.event, Op):
            return
        depth = self._enter(self._chain(node.event, parent).steps, None)
        for level, kernel in walk((node,)):
            if isinstance(kernel.event, Op):
                self._write_call(kernel.event, depth + level)

    def _write_call(self, op: Op, depth: int) -> None:
        tail = "" if op.count == 1 else f"  {count_text(op.count)}"
        if op.thread is not None:
            tail += f"  thread {printable(op.thread)}"
        room = self._room(depth) - cells(tail) - len("# ")
        result: tuple[Span, ...] = ()
        if op.error is None:
            result = ((" -> ", "detail"), (outcome(op, max(room // 2, 16)), "shape"))
        form = cut_to_cells(filled_form(op), room - line_cells(result))
        self._write(depth, (("# ", "detail"), (form, None), *result, (tail, "count")))
        if op.error is not None:
            text = f"✗ {error_text(op)}"
            for part in textwrap.wrap(text, self._room(depth), subsequent_indent="  "):
                self._write(depth, ((part, "error"),))

    def _chain(self, event: Op | ModuleCall, parent: ModuleCall | None) -> _Chain:
        """The steps to where an event happened, those of its module first."""
        known = self._chains[parent.id] if parent is not None else _Chain()
        shared = 0
        for ours, theirs in zip(event.stack, known.stack, strict=False):
            if ours != theirs:
                break
            shared += 1
        steps = list(known.steps)
        caller = event.stack[shared - 1] if shared else -1
        for frame in self._frames_of(event, shared):
            if _is_passed_over(frame, event) and not self._options.verbose:
                continue
            lines = self._sources.excerpt(frame).numbers
            source = _Source(frame.file, lines, function_text(frame.function), frame)
            if steps and isinstance(steps[-1], _Source):
                if is_comprehension(frame.function) and source == steps[-1]:
                    continue
                steps.append(_Called(source.function, caller))
            steps.append(source)
            caller = frame.id
        return _Chain(tuple(steps), event.stack)

    def _frames_of(self, event: Op | ModuleCall, shared: int) -> list[Frame]:
        """The frames of an event that are not its module's; its own place where it has no stack."""
        if not event.stack and event.file is not None and event.line is not None:
            place = (event.column, event.end_line, event.end_column)
            return [Frame(-1, event.file, event.line, event.function or "", *place)]
        return [self._frames[id] for id in event.stack[shared:] if id in self._frames]

    def _enter(self, steps: tuple[_Step, ...], title: Sequence[Span] | None) -> int:
        """Print what leads to the steps and is not open yet; give the depth below them."""
        common = 0
        for ours, theirs in zip(steps, self._open, strict=False):
            if ours != theirs:
                break
            common += 1
        depths = _depths(steps)
        for position, step in enumerate(steps):
            is_new = position >= common
            is_back = position == common - 1 and position != self._nearest
            if isinstance(step, _Source):
                if is_new or is_back:
                    self._write_source(step, depths[position])
                    self._nearest = position
            elif is_new and isinstance(step, _Called):
                self._write(depths[position], ((_CALL, "call"), (step.function, "call")))
            elif is_new and title is not None and position == len(steps) - 1:
                self._write(depths[position], title)
        self._open = steps
        return depths[-1]

    def _write_source(self, step: _Source, depth: int) -> None:
        excerpt = self._sources.excerpt(step.frame)
        texts = _source_spans(excerpt, step.frame)
        place = f"# {short_path(step.file, self._options.base)}:{excerpt.numbers[0]}"
        if excerpt.doubt:
            place += f" ({excerpt.doubt})"
        width = self._room(depth) + cells(_GUIDE) * depth
        guide = _guide(depth)
        for spelled in (f"{place} in {step.function}:", f"{place}:"):
            line = join_right((guide, *texts[0]), ((spelled, "location"),), width)
            if line is not None:
                self._lines.append(line)
                break
        else:
            self._write(depth, ((f"{place} in {step.function}:", "location"),))
            self._write(depth, texts[0])
        for spans in texts[1:]:
            self._write(depth, spans)

    def _write(self, depth: int, spans: Sequence[Span]) -> None:
        self._lines.append((_guide(depth), *cut_line(spans, self._room(depth))))

    def _room(self, depth: int) -> int:
        return max(self._options.columns - cells(_GUIDE) * depth, _LEAST_BODY)


def _is_passed_over(frame: Frame, event: Op | ModuleCall) -> bool:
    """Whether a frame is Python's own code, such as ``copy.deepcopy``, on the way to a place."""
    return bool(event.stack) and frame.id != event.stack[-1] and is_standard_library(frame.file)


def _depths(steps: Sequence[_Step]) -> list[int]:
    """The depth of each step, and below them that of what comes next.

    The first line of a function stands as deep as the ``⬇️`` that enters it, to save columns.
    """
    depths = [0]
    for position, step in enumerate(steps):
        is_first_line_next = isinstance(step, _Called | _Entered) and (
            position + 1 < len(steps) and isinstance(steps[position + 1], _Source)
        )
        depths.append(depths[-1] + (0 if is_first_line_next else 1))
    return depths


def _guide(depth: int) -> Span:
    return (_GUIDE * depth, "guide")


def _flow(call: ModuleCall, room: int | None = None) -> str:
    """``(f32[2,5]) -> f32[2,3]``: what went in and, unless it failed, what came out."""
    inputs = module_inputs(call)
    result = "" if call.error is not None else f" -> {outcome(call)}"
    if room is not None and cells(inputs) + 2 + cells(result) > room:
        if result:
            result = f" -> {outcome(call, max(room // 2, room - cells(inputs) - 2) - 4)}"
        inputs = module_inputs(call, room - cells(result) - 2)
    return f"({inputs}){result}"


def _source_spans(excerpt: Excerpt, frame: Frame) -> list[list[Span]]:
    """The lines of a statement, with the expression that is meant set apart."""
    if excerpt.lines is None:
        return [[("<source not available>", "note")]]
    return [
        _line_spans(text, *_expression_bytes(frame, number, excerpt.indentation))
        for number, text in zip(excerpt.numbers, excerpt.lines, strict=True)
    ]


def _expression_bytes(frame: Frame, line: int | None, indentation: int) -> tuple[int, int | None]:
    """From which byte to which a line belongs to the expression; to None for its end."""
    last = frame.end_line if frame.end_line is not None else frame.line
    if line is None or frame.column is None or frame.end_column is None:
        return 0, 0
    if not frame.line <= line <= last:
        return 0, 0
    begin = frame.column if line == frame.line else 0
    end = frame.end_column if line == last else None
    return max(begin - indentation, 0), None if end is None else max(end - indentation, 0)


def _line_spans(text: str, begin: int, end: int | None) -> list[Span]:
    """One line in up to three parts; columns are bytes of UTF-8, and tabs become blanks."""
    data = text.encode("utf-8", "surrogatepass")
    end = len(data) if end is None else end
    parts = (data[:begin], data[begin:end], data[end:]) if end > begin else (data, b"", b"")
    styles: tuple[Style, ...] = ("source", "expression", "source")
    spans: list[Span] = []
    for part, style in zip(parts, styles, strict=True):
        decoded = part.decode("utf-8", "replace").replace("\t", " " * _TAB_WIDTH)
        if decoded:
            spans.append((printable(decoded), style))
    return spans
