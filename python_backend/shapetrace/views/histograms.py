"""Numbers that lie between two others, as a row of bars: ``▁▃▇▅▂``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_BARS: Final = "▁▂▃▄▅▆▇█"
_FINE: Final = 1_000
"""Parts of the largest bar that others are measured in."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many numbers lie in each of some equal parts of a range."""

    low: float
    high: float
    bins: tuple[float, ...]


def bars(bins: Sequence[float], columns: int = 8) -> str:
    """A bar for each part, or for some next to each other; empty where nothing is counted."""
    counts = _gathered(bins, columns)
    largest = max(counts, default=0)
    if largest <= 0:
        return ""
    return histogram_text([math.ceil(_FINE * count / largest) for count in counts])


def histogram_text(counts: Sequence[int]) -> str:
    """``▁▂▃▅▇``: a bar for each bin; only what is empty has the least one."""
    most = max(counts, default=0)
    if not most:
        return _BARS[0] * len(counts)
    steps = len(_BARS) - 1
    return "".join(_BARS[-(-count * steps // most)] for count in counts)


def merged(histograms: Iterable[Histogram], bins: int = 16) -> Histogram | None:
    """One for all, over all of their ranges; numbers count as spread evenly within their part."""
    shown = [each for each in histograms if sum(each.bins) > 0]
    if not shown:
        return None
    if len({(each.low, each.high, len(each.bins)) for each in shown}) == 1:
        counts = zip(*(each.bins for each in shown), strict=True)
        return Histogram(shown[0].low, shown[0].high, tuple(map(sum, counts)))
    low, high = min(each.low for each in shown), max(each.high for each in shown)
    # Quarters, so that the distance of two that are far apart is still a number.
    width = (high / 4 - low / 4) / bins
    found = [0.0] * bins
    for each in shown:
        first, step = each.low / 4 - low / 4, (each.high / 4 - each.low / 4) / len(each.bins)
        for number, count in enumerate(each.bins):
            begin = (first + number * step) / width if width else 0.0
            end = begin + (step / width if width else 0.0)
            _spread(found, min(begin, bins), min(end, bins), count)
    return Histogram(low, high, tuple(round(count, 3) for count in found))


def _spread(found: list[float], begin: float, end: float, count: float) -> None:
    last = len(found) - 1
    first_bin, last_bin = (min(max(int(place), 0), last) for place in (begin, end))
    if first_bin == last_bin or end <= begin:
        found[first_bin] += count
        return
    for number in range(first_bin, last_bin + 1):
        inside = min(end, number + 1) - max(begin, number)
        found[number] += count * max(inside, 0.0) / (end - begin)


def _gathered(bins: Sequence[float], columns: int) -> list[float]:
    together = max(-(-len(bins) // columns), 1)
    return [sum(bins[start : start + together]) for start in range(0, len(bins), together)]
