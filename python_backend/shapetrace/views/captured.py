"""The view of a file of captured values.

run.h5: 3 names, 120 values, iterations 1–40, 1.2 MB

forward  f32[32,10]  ×40                                        iterations 1–40
  ▁▁▂▅▇▅▂▁▁▁  -4.21 … 4.02, mean 0.013, 3 NaN
forward.x  f32[1..32,784]  ×40                                  iterations 1–40
  ▇▁▁▁▁▁▁▁▁▂  -0.424 … 2.82, mean 0.0012
loss  float  ×40                                                iterations 1–40
  ▇▅▃▂▁▁▁▁▁▁  0.021 … 2.31, mean 0.48
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapetrace.events.captured import (
    CapturedFile,
    CapturedLeaf,
    CapturedName,
    CapturedPart,
    Statistics,
)
from shapetrace.events.model import Container
from shapetrace.views.histograms import histogram_text
from shapetrace.views.shapes import CUT, value_text
from shapetrace.views.styled import (
    Line,
    Span,
    StyledText,
    cells,
    cut_line,
    cut_middle,
    join_right,
    line_cells,
    printable,
)
from shapetrace.views.view_options import ViewOptions

_INDENTATION = "  "
_MOST_LEAVES = 12
"""Arrays of one value that have a line each, unless everything is asked for."""

_MOST_PARTS = 4
_LEAST_NAME = 16
_MOST_RANKS = 8


def render_captured(file: CapturedFile, options: ViewOptions | None = None) -> StyledText:
    """Names with shapes, counts, iterations and ranks, and small histograms of their numbers."""
    chosen = options or ViewOptions()
    ranks = sorted({rank for name in file.names for rank in name.ranks})
    lines: list[Line] = [_heading(file, ranks, chosen.columns), ()]
    for name in file.names:
        lines.extend(_name_lines(name, ranks, chosen))
    if not file.names:
        lines.append((("nothing has been captured", "note"),))
    notes = list(_notes(file))
    if notes:
        lines += [(), *(cut_line(((note, "error"),), max(chosen.columns, 1)) for note in notes)]
    return StyledText(tuple(lines))


def number_text(value: float) -> str:
    """A number in four digits at most: ``0.0312``, ``1.5e-07``, ``12345``."""
    if isinstance(value, int) and abs(value) < 10**6:
        return str(value)
    if value == 0:
        return "0"
    return f"{value:.4g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.2e}"


def _heading(file: CapturedFile, ranks: Sequence[int], width: int) -> Line:
    parts = [_counted(len(file.names), "name")]
    parts.append(_counted(sum(name.count for name in file.names), "value"))
    firsts = [name.first_iteration for name in file.names if name.first_iteration is not None]
    lasts = [name.last_iteration for name in file.names if name.last_iteration is not None]
    if firsts and lasts:
        parts.append(_range_text("iteration", min(firsts), max(lasts)))
    if len(ranks) > 1:
        parts.append(_ranks_text(ranks))
    parts.append(_size_text(file.size))
    name: Span = (printable(file.name), "heading")
    return cut_line((name, (f": {', '.join(parts)}", None)), width)


def _name_lines(name: CapturedName, ranks: Sequence[int], options: ViewOptions) -> Iterator[Line]:
    width = options.columns
    where: list[Span] = []
    if name.first_iteration is not None and name.last_iteration is not None:
        text = _range_text("iteration", name.first_iteration, name.last_iteration)
        where.append((text, "location"))
    if list(name.ranks) != list(ranks):
        where.append((f", {_ranks_text(name.ranks)}", "location"))
    parts = name.parts if options.verbose else name.parts[:_MOST_PARTS]
    title = printable(name.name) or "(root)"
    for position, part in enumerate(parts):
        is_first = position == 0
        right = where if is_first else []
        room = width - line_cells(right) - (2 if right else 0)
        yield _title_line(title if is_first else "", part, right, room, width)
        yield from _leaf_lines(part, options)
    if len(parts) < len(name.parts):
        rest = len(name.parts) - len(parts)
        yield ((f"{_INDENTATION}{CUT} {_counted(rest, 'other structure')}", "note"),)


def _title_line(
    title: str, part: CapturedPart, right: Sequence[Span], room: int, width: int
) -> Line:
    count = "" if part.count == 1 else f"  ×{part.count:,}"
    begin = f"{title}  " if title else f"{_INDENTATION}or "
    left_room = room - cells(count)
    shape = printable(value_text(part.value, max(left_room - min(cells(begin), _LEAST_NAME), 12)))
    if title and cells(begin) + cells(shape) > left_room:
        kept = max(left_room - cells(shape) - 2, _LEAST_NAME)
        begin = f"{cut_middle(title, kept)}  "
    spans: tuple[Span, ...] = ((begin, "path" if title else "role"), (shape, "shape"))
    if count:
        spans += ((count, "count"),)
    return join_right(spans, right, width) or cut_line(spans, width)


def _leaf_lines(part: CapturedPart, options: ViewOptions) -> Iterator[Line]:
    width = options.columns
    shown = [leaf for leaf in part.leaves if leaf.statistics is not None]
    most = len(shown) if options.verbose else _MOST_LEAVES
    longest = max((cells(printable(leaf.path)) for leaf in shown[:most]), default=0)
    longest = min(longest, width // 4)
    for leaf in shown[:most]:
        label = cut_middle(printable(leaf.path), longest)
        spans: list[Span] = [(_INDENTATION, None)]
        if isinstance(part.value, Container) and longest:
            spans.append((f"{label}{' ' * (longest - cells(label))}  ", "name"))
        yield cut_line([*spans, *_figures(leaf)], width)
    if len(shown) > most:
        yield ((f"{_INDENTATION}{CUT} {_counted(len(shown) - most, 'more array')}", "note"),)


def _figures(leaf: CapturedLeaf) -> list[Span]:
    statistics = leaf.statistics
    assert statistics is not None
    if not statistics.total:
        return [("no numbers in it", "note")]
    spans: list[Span] = []
    if statistics.histogram is not None:
        spans.append((f"{histogram_text(statistics.histogram.counts)}  ", "call"))
    spans.append((_range(statistics), None))
    strange = []
    if statistics.not_numbers:
        strange.append(f"{statistics.not_numbers:,} NaN")
    if statistics.infinite:
        strange.append(f"{statistics.infinite:,} inf")
    if strange:
        spans.append((", " if spans[-1][0] else "", None))
        spans.append((", ".join(strange), "error"))
    if statistics.looked_at < statistics.total:
        part = statistics.looked_at / statistics.total
        share = "< 1 %" if part < 0.01 else f"{part:.0%}".replace("%", " %")
        spans.append((f"  ({share} looked at)", "note"))
    return spans


def _range(statistics: Statistics) -> str:
    if statistics.low is None or statistics.high is None or statistics.mean is None:
        return ""
    prefix = "magnitude " if statistics.is_magnitude else ""
    low, high = number_text(statistics.low), number_text(statistics.high)
    if statistics.low == statistics.high:
        return f"{prefix}always {low}"
    return f"{prefix}{low} {CUT} {high}, mean {number_text(float(statistics.mean))}"


def _notes(file: CapturedFile) -> Iterator[str]:
    if file.missing_ranks:
        yield f"nothing of {_ranks_text(file.missing_ranks)}: no file of theirs is beside this one"
    yield from map(printable, file.problems)


def _range_text(noun: str, first: int, last: int) -> str:
    return f"{noun} {first:,}" if first == last else f"{noun}s {first:,}–{last:,}"


def _ranks_text(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    # Each is there once, and a damaged file may have any numbers: so nothing is counted out.
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"ranks {ranks[0]}–{ranks[-1]}"
    shown = [str(rank) for rank in ranks[:_MOST_RANKS]]
    return f"ranks {', '.join([*shown, CUT] if len(ranks) > _MOST_RANKS else shown)}"


def _size_text(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    amount = float(size)
    for unit in ("KB", "MB", "GB"):
        amount /= 1000
        if amount < 999.5:
            return f"{amount:.3g} {unit}"
    return f"{amount / 1000:.3g} TB"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
