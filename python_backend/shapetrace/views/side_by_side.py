"""Two runs as two texts, one beside the other, whose lines are equal where the runs are alike.

    layers.0  Attention  (f32[2,6,16])            layers.0  Attention  (f32[2,6,16])
      @  (f32[2,6,16], f32[2,16,6])  → f32[2,6,6]   @  (f32[2,6,16], f32[2,16,6])  → f32[2,6,6]
      /  (f32[2,6,6])  → f32[2,6,6]
      softmax()  ≠  (f32[2,6,6])  → f32[2,6,6]      softmax()  ≠ 0.06 apart ...

An editor that compares the texts marks just what differs. Files and lines of the source are left
out, as is what differs throughout: it would differ on every line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shapetrace.comparing.comparison import Comparison, Difference, Event, Paired, is_passed
from shapetrace.events.model import ModuleCall
from shapetrace.views.call_text import error_text, module_inputs, outcome
from shapetrace.views.difference_text import apart_text, call_text, short_text
from shapetrace.views.shapes import values_text
from shapetrace.views.styled import cut_to_cells, printable
from shapetrace.views.summary import counted

_INDENT: Final = "  "
_DEEPEST: Final = 24
_LONGEST: Final = 160

_MOST_ALIKE: Final = 200
"""So many lines in a row that are alike are shown; of more, their beginning and end."""

_KEPT: Final = 20


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two texts, and where in them the differences are."""

    left: str
    right: str
    lines: tuple[tuple[int, int], ...]
    """For each difference, the line from 0 on either side; where a side has none, the next one."""


def side_by_side(comparison: Comparison) -> SideBySide:
    """The steps of a comparison, which must have them."""
    return _Writer(comparison).text()


@dataclass(slots=True)
class _Row:
    left: str | None
    right: str | None
    difference: int | None = None


class _Writer:
    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._rows: list[_Row] = []

    def text(self) -> SideBySide:
        """Both texts."""
        depth = 0
        for step in self._comparison.steps:
            if step.phase == "leave":
                depth -= 1
            self._add(step, depth)
            if step.phase == "enter":
                depth += 1
        return self._joined(_shortened(self._rows))

    def _add(self, step: Paired, depth: int) -> None:
        difference = self._difference(step)
        if step.phase == "leave" and (difference is None or is_passed(difference)):
            return
        indent = _INDENT * min(depth, _DEEPEST)
        left = None if step.a is None else _line(step.a, step, difference)
        right = None if step.b is None else _line(step.b, step, difference)
        if left is not None and right is not None:
            if difference is None:
                # In the words of one of them, as dtypes may differ throughout.
                right = left
            elif left == right and step.a is not None and step.b is not None:
                mark_left, mark_right = _marks(difference)
                left = _line(step.a, step, difference, mark_left)
                right = _line(step.b, step, difference, mark_right)
        left, right = (None if text is None else indent + text for text in (left, right))
        self._rows.append(_Row(left, right, step.difference))

    def _difference(self, step: Paired) -> Difference | None:
        return None if step.difference is None else self._comparison.differences[step.difference]

    def _joined(self, rows: Sequence[_Row]) -> SideBySide:
        left: list[str] = []
        right: list[str] = []
        lines = [(0, 0)] * len(self._comparison.differences)
        for row in rows:
            if row.difference is not None:
                lines[row.difference] = (len(left), len(right))
            left += [] if row.left is None else [row.left]
            right += [] if row.right is None else [row.right]
        last_left, last_right = max(len(left) - 1, 0), max(len(right) - 1, 0)
        found = tuple((min(one, last_left), min(other, last_right)) for one, other in lines)
        return SideBySide(_text(left), _text(right), found)


def _line(event: Event, step: Paired, difference: Difference | None, mark: str = "") -> str:
    # The sign for times would be marked as one that can be mistaken for a letter.
    times = "" if event.count in (None, 1) else f"{event.count:,} calls"
    result = error_text(event) if event.error is not None else f"→ {outcome(event)}"
    if isinstance(event, ModuleCall):
        name = printable(event.path) or "(model)"
        title = printable(event.class_name) if difference is None else call_text(event)
        if step.phase == "leave":
            parts = [f"{name} returned", mark, result.removeprefix("→ "), times]
        elif step.phase == "enter":
            parts = [name, mark, title, f"({module_inputs(event)})", times]
        else:
            inside = f"with {counted(step.inside, 'op')} inside" if step.inside else ""
            parts = [name, mark, title, result, times, inside]
    else:
        inputs = printable(values_text(event.inputs))
        parts = [call_text(event), mark, f"({inputs})" if inputs else "", result, times]
    return cut_to_cells("  ".join(filter(None, parts)), _LONGEST)


def _marks(difference: Difference) -> tuple[str, str]:
    """The marks at the ends of both lines, which may have equal text otherwise."""
    text = short_text(difference)
    before, arrow, after = text.partition(" → ")
    if arrow and before != after:
        return f"≠ {before}", f"≠ {after}"
    apart = [aspect.apart for aspect in difference.aspects if aspect.apart is not None]
    if apart:
        return "≠", f"≠ {apart_text(apart[0])}"
    return "≠", f"≠ {text}"


def _shortened(rows: Sequence[_Row]) -> list[_Row]:
    """The rows, of long stretches that are alike only the beginning and the end."""
    kept: list[_Row] = []
    run: list[_Row] = []
    for row in [*rows, None]:
        if row is not None and row.left is not None and row.left == row.right:
            run.append(row)
            continue
        if len(run) > _MOST_ALIKE:
            gap = f"… {len(run) - 2 * _KEPT:,} calls that are alike"
            run = [*run[:_KEPT], _Row(gap, gap), *run[-_KEPT:]]
        kept += run
        run = []
        if row is not None:
            kept.append(row)
    return kept


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
