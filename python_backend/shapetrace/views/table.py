"""The table view: one row for each module call, with shapes, parameters and counts.

Module     Class   Input       Output      Params  Ops  Calls  Where
─────────────────────────────────────────────────────────────────────────
MHA        MHA     f32[2,5,6]  f32[2,5,6]     168   33      1  train.py:9
  query    Linear  f32[2,5,6]  f32[2,5,6]      42    1      1  mha.py:30
─────────────────────────────────────────────────────────────────────────
Total                                         168   33      2
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shapetrace.events.call_tree import build
from shapetrace.events.model import Trace
from shapetrace.views.call_text import error_text, module_inputs, outcome, total_calls
from shapetrace.views.module_rows import ModuleRow, module_rows, ops_outside, total_parameters
from shapetrace.views.place_text import place_text
from shapetrace.views.styled import (
    Line,
    Span,
    Style,
    StyledText,
    cells,
    cut_middle,
    cut_to_cells,
    printable,
)
from shapetrace.views.summary import closing, header, human_number
from shapetrace.views.view_options import ViewOptions

_GAP = "  "

_FAILED = "✗ "


_LAYOUTS: tuple[tuple[frozenset[str], tuple[tuple[int, tuple[str, ...]], ...]], ...] = (
    (frozenset(), ((24, ("Input", "Output")),)),
    (frozenset({"Where"}), ((14, ("Input", "Output")), (12, ("Class",)))),
    (frozenset({"Where", "Input"}), ((16, ("Output",)), (12, ("Class",)))),
    (frozenset({"Where", "Input", "Class"}), ((16, ("Output", "Module")),)),
    (frozenset({"Where", "Input", "Class", "Calls"}), ((8, ("Output", "Module")),)),
)
"""Which columns to omit or cut, and to which width: the first layout that fits is taken."""


@dataclass(slots=True)
class _Column:
    """One column, whose width shrinks until the table fits."""

    title: str
    style: Style
    is_number: bool = False
    width: int = 0
    shown: bool = True


def render_table(trace: Trace, options: ViewOptions | None = None) -> StyledText:
    """One row for each module call."""
    options = options or ViewOptions()
    rows, total = _texts(trace, options)
    columns = _columns([*rows, total])
    _fit(columns, options.columns)
    rule: Line = (("─" * _total_width(columns.values()), "guide"),)
    lines: list[Line] = [
        header(trace, options),
        (),
        _line(columns.values(), [column.title for column in columns.values()], is_title=True),
        rule,
        *(_line(columns.values(), row) for row in rows),
        rule,
        _line(columns.values(), total),
        *closing(trace, options),
    ]
    return StyledText(tuple(lines))


def _texts(trace: Trace, options: ViewOptions) -> tuple[list[list[str]], list[str]]:
    """The cells of each row, and of the row of totals."""
    tree = build(trace)
    rows = module_rows(tree)
    outside = ops_outside(tree)
    texts = [_row_texts(row, options) for row in rows]
    if outside:
        texts.append(["(outside modules)", "", "", "", "", str(outside), "", ""])
    ops = str(outside + sum(row.ops for row in rows if row.depth == 0))
    calls = str(total_calls(row.call for row in rows))
    parameters = human_number(total_parameters(rows))
    return texts, ["Total", "", "", "", parameters, ops, calls, ""]


def _row_texts(row: ModuleRow, options: ViewOptions) -> list[str]:
    call = row.call
    return [
        "  " * row.depth + row.name,
        printable(call.class_name),
        module_inputs(call),
        _FAILED + error_text(call) if call.error is not None else outcome(call),
        human_number(call.parameters) if call.parameters else "",
        str(row.ops),
        "?" if call.count is None else str(call.count),
        place_text(call.file, call.line, options.base),
    ]


def _columns(rows: Sequence[Sequence[str]]) -> dict[str, _Column]:
    columns = (
        _Column("Module", "path"),
        _Column("Class", "class"),
        _Column("Input", "shape"),
        _Column("Output", "shape"),
        _Column("Params", "count", is_number=True),
        _Column("Ops", "count", is_number=True),
        _Column("Calls", "count", is_number=True),
        _Column("Where", "location"),
    )
    for column, texts in zip(columns, zip(*rows, strict=True), strict=True):
        column.width = max(map(cells, (column.title, *texts)))
    return {column.title: column for column in columns}


def _fit(columns: dict[str, _Column], width: int) -> None:
    """Cut columns, then leave out the ones that matter least, until the rest fits."""
    natural = {title: column.width for title, column in columns.items()}
    for left_out, cuts in _LAYOUTS:
        for title, column in columns.items():
            column.width = natural[title]
            column.shown = title not in left_out
        for least, titles in cuts:
            _shrink([columns[title] for title in titles], least, width, columns.values())
        if _total_width(columns.values()) <= width:
            return


def _shrink(
    columns: Sequence[_Column], least: int, width: int, everything: Iterable[_Column]
) -> None:
    """Take from the widest of some columns first, down to the least width, until all fits."""
    excess = _total_width(everything) - width
    while excess > 0:
        widest = max(columns, key=lambda column: column.width)
        if widest.width <= least:
            return
        widest.width -= 1
        excess -= 1


def _total_width(columns: Iterable[_Column]) -> int:
    return sum(column.width + len(_GAP) for column in columns if column.shown) - len(_GAP)


def _line(columns: Iterable[_Column], texts: Sequence[str], *, is_title: bool = False) -> Line:
    spans: list[Span] = []
    for column, text in zip(columns, texts, strict=True):
        if not column.shown:
            continue
        style: Style = column.style
        if is_title:
            style = "heading"
        elif text.startswith(_FAILED):
            style = "error"
        cut = cut_middle if column.title == "Module" else cut_to_cells
        text = cut(text, column.width)
        padding: Span = (" " * (column.width - cells(text)), "padding")
        spans += [padding, (text, style)] if column.is_number else [(text, style), padding]
        spans.append((_GAP, None))
    return tuple(spans)
