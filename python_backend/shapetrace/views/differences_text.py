"""The view of a comparison for a terminal.

A  good.json  train.py · torch 2.13.0 · 1 forward pass · 45 module calls · 85 ops
B  bad.json   train.py · torch 2.13.0 · 1 forward pass · 45 module calls · 85 ops

First difference, after 23 ops that are alike: arguments

  layers.3.norm (LayerNorm)
  A  model.py:41  x = self.norm(x)
  B  model.py:41  x = self.norm(x)

            A                             B
  call      LayerNorm((16,), eps=1e-12)   LayerNorm((16,), eps=1e-05)   arguments
  input     f32[2,7,16] x                 f32[2,7,16] x
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from shapetrace.comparing.comparison import (
    Comparison,
    Difference,
    Event,
    Side,
    Throughout,
    is_passed,
    largest,
)
from shapetrace.events.model import ModuleCall
from shapetrace.views.difference_text import (
    KIND_WORDS,
    Detail,
    amount_text,
    call_text,
    details,
    event_of,
    notes_of,
    place,
    short_text,
    side_text,
    source_line,
    where_text,
)
from shapetrace.views.shapes import dtype_text
from shapetrace.views.source_excerpts import Sources
from shapetrace.views.styled import (
    Line,
    Span,
    Style,
    StyledText,
    cells,
    cut_line,
    cut_middle,
    cut_to_cells,
    join_right,
    printable,
)
from shapetrace.views.summary import SEPARATOR, counted, program_text
from shapetrace.views.view_options import ViewOptions

_MOST_LARGEST: Final = 5
_MOST_FURTHER: Final = 10
_WIDEST_ROLE: Final = 18
_KIND_WIDTH: Final = 11


def render_differences(
    comparison: Comparison, names: tuple[str, str], options: ViewOptions | None = None
) -> StyledText:
    """The differences between two runs, whose files have these names."""
    return _Writer(comparison, names, options or ViewOptions()).text()


def side_facts(side: Side, base: str | None, *, with_torch: bool = True) -> str:
    """``train.py · torch 2.13.0 · 1 forward pass · 45 module calls · 85 ops``."""
    run = side.run
    facts = [
        program_text(run, base),
        f"torch {run.torch}" if run.torch and with_torch else "",
        f"rank {run.rank} of {run.world_size}" if run.rank is not None else "",
        counted(run.passes, "forward pass", "forward passes") if run.passes else "",
        counted(side.modules, "module call") if side.modules else "",
        counted(side.ops, "op"),
        counted(side.kernels, "kernel") if side.kernels else "",
    ]
    return printable(SEPARATOR.join(filter(None, facts)))


def throughout_text(item: Throughout) -> tuple[str, str]:
    """``f32 in A, bf16 in B`` and ``312 of 340 tensors``."""
    ours, theirs = item.a, item.b
    if item.kind == "dtype":
        ours, theirs = dtype_text(ours), dtype_text(theirs)
    ours, theirs = (printable(text) or "plain" for text in (ours, theirs))
    if item.kind == "name":
        places = counted(item.places, "module call")
    else:
        places = f"{item.places:,} of {item.of:,} tensors"
    return f"{ours} in A, {theirs} in B", places


def summary_text(comparison: Comparison) -> list[str]:
    """How much is alike, and how many differences there are of each kind."""
    only_a = [item for item in comparison.differences if item.kind == "only" and item.b is None]
    only_b = [item for item in comparison.differences if item.kind == "only" and item.a is None]
    lines = [f"{comparison.compared:,} ops are in both runs, {comparison.alike:,} of them alike."]
    for side, items in (("A", only_a), ("B", only_b)):
        if items:
            lines.append(f"Only in {side}: {_calls_text(items)}.")
    kinds = Counter(item.kind for item in comparison.differences if item.kind != "only")
    if kinds:
        told = (f"{KIND_WORDS[kind]} {count:,}" for kind, count in kinds.most_common())
        lines.append(f"Differences: {', '.join(told)}.")
    passed = sum(map(is_passed, comparison.differences))
    if passed:
        lines.append(
            f"{counted(passed, 'of them passes', 'of them pass')} on what differed before."
        )
    return lines


def heading_text(first: Difference) -> str:
    """``First difference, after 23 ops that are alike: arguments``."""
    before = counted(first.alike_before, "op")
    alike = "that is alike" if first.alike_before == 1 else "that are alike"
    after = f", after {before} {alike}" if first.alike_before else ""
    what = side_text(first) if first.kind == "only" else KIND_WORDS[first.kind]
    return f"First difference{after}: {what}"


class _Writer:
    """Writes one comparison, top down."""

    def __init__(
        self, comparison: Comparison, names: tuple[str, str], options: ViewOptions
    ) -> None:
        self._comparison = comparison
        self._names = names
        self._options = options
        self._lines: list[Line] = []
        self._sources_a = Sources(options.read_source, comparison.a.run.files)
        self._sources_b = Sources(options.read_source, comparison.b.run.files)

    def text(self) -> StyledText:
        """The whole view."""
        self._write_heading()
        if not self._comparison.differ:
            self._add(())
            self._add(((f"Alike: {counted(self._comparison.alike, 'op')} in both runs.", None),))
            self._write_notes()
            return StyledText(tuple(self._lines))
        self._write_throughout()
        first = self._comparison.first
        if first is not None:
            self._add(())
            self._add(((heading_text(first), "heading"),))
            self._write_first(first)
            self._write_largest(first)
            self._write_further(first)
        self._add(())
        for line in summary_text(self._comparison):
            self._add(((line, None),))
        self._write_notes()
        return StyledText(tuple(self._lines))

    def _add(self, line: Sequence[Span]) -> None:
        self._lines.append(cut_line(line, self._options.columns))

    def _write_heading(self) -> None:
        width = max(map(cells, self._names))
        width = min(width, self._options.columns // 3)
        sides = (self._comparison.a, self._comparison.b)
        room = self._options.columns - width - 5
        facts = [side_facts(side, self._options.base) for side in sides]
        if max(map(cells, facts)) > room and sides[0].run.torch == sides[1].run.torch:
            facts = [side_facts(side, self._options.base, with_torch=False) for side in sides]
        for letter, name, said in zip("AB", self._names, facts, strict=True):
            shown = cut_middle(printable(name), width)
            padding = " " * (width - cells(shown) + 2)
            first, rest = _broken(said, room)
            self._add(((f"{letter}  ", "role"), (shown, "heading"), (padding + first, "note")))
            if rest:
                self._add(((" " * (width + 5) + rest, "note"),))

    def _write_throughout(self) -> None:
        items = self._comparison.throughout
        names = [item for item in items if item.kind == "name"]
        others = [item for item in items if item.kind != "name"]
        for heading, chosen in (("Throughout", others), ("Other names", names)):
            if chosen:
                self._add(())
                self._add(((heading, "heading"),))
            for item in chosen:
                what, places = throughout_text(item)
                kind = "" if item.kind == "name" else KIND_WORDS[item.kind].ljust(_KIND_WIDTH)
                self._add(((f"  {kind}", "role"), (what, "shape"), (f"  {places}", "detail")))

    def _write_first(self, first: Difference) -> None:
        self._add(())
        self._add((("  ", None), (where_text(first), "path")))
        sides = ((first.a, "A", self._sources_a), (first.b, "B", self._sources_b))
        for event, letter, sources in sides:
            if event is not None:
                self._write_place(event, letter, sources)
        self._add(())
        self._write_details(list(details(first)))

    def _write_place(self, event: Event, letter: str, sources: Sources) -> None:
        spot = place(event, self._options.base)
        text = source_line(event, sources)
        spans: list[Span] = [(f"  {letter}  ", "role"), (spot or "unknown place", "location")]
        if text:
            spans.append((f"  {text}", "source"))
        self._add(spans)

    def _write_details(self, rows: Sequence[Detail]) -> None:
        role_width = min(max(cells(row.role) for row in rows), _WIDEST_ROLE) + 2
        left = self._options.columns - 2 - role_width
        # Texts too long for their column are written below the columns.
        marks = (cells(", ".join(row.marks)) for row in rows if row.marks)
        beside = max((width for width in marks if width <= left // 3), default=0)
        column = max((left - beside) // 2 - 2, 16)
        widest = max(
            (cells(row.text(is_a, column)) for row in rows for is_a in (True, False)), default=0
        )
        column = min(column, max(widest, 1))
        heads = f"  {' ' * role_width}{'A'.ljust(column + 2)}B"
        self._add(((heads, "role"),))
        for row in rows:
            self._write_detail(row, role_width, column)

    def _write_detail(self, row: Detail, role_width: int, column: int) -> None:
        role = cut_to_cells(row.role, role_width - 2)
        start: Span = (f"  {_padded(role, role_width)}", "role")
        style: Style = "shape" if row.role not in ("call", "error") else "call"
        full = (row.text(True), row.text(False))
        if row.marks and max(map(cells, full)) > column:
            blank: Span = (" " * (role_width + 2), "role")
            self._add((start, ("A ", "role"), (full[0], style)))
            self._add((blank, ("B ", "role"), (full[1], style)))
            self._add((blank, (", ".join(row.marks), "error")))
            return
        ours, theirs = (cut_to_cells(row.text(is_a, column), column) for is_a in (True, False))
        spans: list[Span] = [
            start,
            (_padded(ours, column + 2), style),
            (_padded(theirs, column + 2), style),
        ]
        marks = ", ".join(row.marks)
        room = self._options.columns - role_width - 2 * column - 6
        if cells(marks) <= room:
            self._add([*spans, (marks, "error")])
        else:
            self._add(spans)
            self._add(((" " * (role_width + 2), "role"), (marks, "error")))

    def _write_largest(self, first: Difference) -> None:
        items = largest(self._comparison, _MOST_LARGEST + 1)
        if items and items != [first]:
            self._add(())
            self._add((("Furthest apart, as a multiple of what is tolerated", "heading"),))
            for item in items[:_MOST_LARGEST]:
                self._write_row(item, amount_text(item))

    def _write_further(self, first: Difference) -> None:
        others = [
            item
            for item in self._comparison.differences
            if item is not first and (self._options.verbose or not is_passed(item))
        ]
        if not others:
            return
        most = len(others) if self._options.verbose else _MOST_FURTHER
        self._add(())
        self._add((("All others, in their order" if most >= len(others) else "Then", "heading"),))
        for item in others[:most]:
            self._write_row(item, KIND_WORDS[item.kind])
        if len(others) > most:
            more = counted(len(others) - most, "more difference")
            self._add(((f"  … and {more}; --verbose shows them all", "note"),))

    def _write_row(self, item: Difference, mark: str) -> None:
        event = event_of(item)
        module = item.module_a or item.module_b
        path = event.path if isinstance(event, ModuleCall) else module.path if module else ""
        spot = place(event, self._options.base)
        right: tuple[Span, ...] = ((cut_middle(spot, 32), "location"),) if spot else ()
        spans: list[Span] = [(f"  {_padded(mark, _KIND_WIDTH)}", "role")]
        if path:
            spans.append((f"{printable(path)}  ", "path"))
        title = call_text(event)
        if item.a is not None and item.b is not None:
            # What it was called with is said where that is what differs.
            title = title.partition("(")[0] or title
        spans.append((title, "call"))
        tail: Span = (f"  {short_text(item)}", "shape")
        for candidate in ([*spans, tail], spans):
            line = join_right(candidate, right, self._options.columns)
            if line is not None:
                self._lines.append(line)
                if candidate is spans:
                    self._add((("  " + " " * _KIND_WIDTH, None), (tail[0].strip(), "shape")))
                return
        self._add(spans)
        self._add((("  " + " " * _KIND_WIDTH, None), (tail[0].strip(), "shape"), *_gap(right)))

    def _write_notes(self) -> None:
        for note in notes_of(self._comparison):
            self._add(((f"Note: {note}.", "note"),))


def _padded(text: str, width: int) -> str:
    return text + " " * max(width - cells(text), 0)


def _broken(facts: str, room: int) -> tuple[str, str]:
    """As many facts as there is room for, and the rest."""
    end = len(facts)
    while end > 0 and cells(facts[:end]) > room:
        end = facts.rfind(SEPARATOR, 0, end)
    if end <= 0:
        return facts, ""
    return facts[:end], facts[end:].removeprefix(SEPARATOR)


def _gap(right: Iterable[Span]) -> list[Span]:
    return [("  ", None), *right]


def _calls_text(items: Sequence[Difference]) -> str:
    modules = sum(isinstance(event_of(item), ModuleCall) for item in items)
    ops = len(items) - modules + sum(item.inside for item in items)
    parts = [counted(modules, "module call") if modules else "", counted(ops, "op") if ops else ""]
    return " and ".join(filter(None, parts))
