"""Fingerprints of returned values as text: a few numbers on one line.

-3.453 … 3.773, mean 0.0137, rms 1.02
-3.453 … 3.773, mean 0.0137, rms 1.02, 3 NaN  |  0 … 12, mean 5.5, rms 6.45
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.views.captured import number_text
from shapetrace.views.shapes import CUT
from shapetrace.views.styled import Span

_MOST_OUTPUTS: Final = 3


def value_spans(calls: Sequence[CallFingerprints]) -> tuple[Span, ...]:
    """The values of all calls of an op or module together, one line for each output."""
    number = max((len(call.outputs) for call in calls), default=0)
    spans: list[Span] = []
    for position in range(min(number, _MOST_OUTPUTS)):
        if spans:
            spans.append(("  |  ", None))
        present = [call.outputs[position] for call in calls if position < len(call.outputs)]
        spans += _output(present)
    if number > _MOST_OUTPUTS:
        spans.append((f"  |  {CUT}", None))
    return tuple(spans)


def _output(all_calls: Sequence[Fingerprint]) -> list[Span]:
    notes = [each.note for each in all_calls if each.note is not None]
    if notes:
        return [(notes[0], "note")]
    spans: list[Span] = [(_range(all_calls), "detail")]
    strange = [
        f"{sum(counts):,} {name}"
        for name, counts in (
            ("NaN", [each.nan for each in all_calls]),
            ("inf", [each.positive_infinity for each in all_calls]),
            ("-inf", [each.negative_infinity for each in all_calls]),
        )
        if any(counts)
    ]
    if strange:
        style: Span = (", ".join(strange), "error" if strange[0].endswith("NaN") else "note")
        spans += [(", " if spans[0][0] else "", "detail"), style]
    return spans


def _range(all_calls: Sequence[Fingerprint]) -> str:
    lows = [each.low for each in all_calls if each.low is not None]
    highs = [each.high for each in all_calls if each.high is not None]
    means = [(each.mean, _finite(each)) for each in all_calls if each.mean is not None]
    sizes = [
        (each.root_mean_square, _finite(each))
        for each in all_calls
        if each.root_mean_square is not None
    ]
    if not lows or not highs or not means or not sizes:
        return "" if any(each.count for each in all_calls) else "empty"
    low, high = min(lows), max(highs)
    if low == high:
        is_one = sum(each.count for each in all_calls) == 1
        return number_text(low) if is_one else f"always {number_text(low)}"
    span = f"{number_text(low)} {CUT} {number_text(high)}"
    weights = _weights([count for _, count in means])
    squares = _weights([count for _, count in sizes])
    if weights is None or squares is None:
        return span
    mean = math.fsum(mean * weight for (mean, _), weight in zip(means, weights, strict=True))
    # hypot and not the root of a sum of squares, which are infinite where numbers are large.
    size = math.hypot(
        *(size * math.sqrt(weight) for (size, _), weight in zip(sizes, squares, strict=True))
    )
    return f"{span}, mean {number_text(mean)}, rms {number_text(size)}"


def _weights(counts: Sequence[int]) -> list[float] | None:
    """The share of each count in all of them; None where a damaged file says what cannot be."""
    total = sum(counts)
    if total <= 0 or min(counts) < 0:
        return None
    return [count / total for count in counts]


def _finite(fingerprint: Fingerprint) -> int:
    """How many finite numbers the moments are of."""
    count = fingerprint.count if fingerprint.looked_at is None else fingerprint.looked_at
    others = fingerprint.nan + fingerprint.positive_infinity + fingerprint.negative_infinity
    return count - others
