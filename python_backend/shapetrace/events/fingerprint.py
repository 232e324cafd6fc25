"""What a tensor held, in a few numbers: enough to tell two runs apart without keeping values.

    for ours, theirs in zip(op.fingerprints, other.fingerprints):    # a call, or calls in a row
        for a, b in zip(ours.outputs, theirs.outputs):               # a tensor of what came out
            if not agree(a, b):
                apart = distance(a, b)                               # how far, and in what

*Moments* (mean, root mean square, least, largest, how many are no finite numbers) do not depend on
the order of the numbers; *samples* are a few of the numbers themselves, at places that only the
number of elements decides. A tensor that was transposed has the same moments and other samples;
one that was reshaped, or lies in memory in another way, has the same of both.

What is not noticed: a change of numbers that were not sampled and are neither the least nor the
largest, where it moves mean and root mean square by less than the tolerance; another order, where
the numbers at the sampled places are the same in both.

**Tolerance.** A number is stored with an error of up to the unit roundoff of its dtype, ``u``. It
has inherited some more of these from what it was computed from, and is the sum of ``terms``
products that others add up in another order, or at another precision; that error grows with the
root of how many there are. So the tolerance is ``SLACK * (u + sqrt(terms) * v)``, where ``v`` is
the roundoff of what sums are kept in: float32, or the dtype itself where that is finer. It is
relative to how large the numbers of the tensor are, as one near zero may be the difference of two
large ones. The coarser of both dtypes decides. A value of a fine dtype may have come by way of a
coarse one: a normalisation in float32 of what was bfloat16, anything under autocast. So say
``by_way_of`` which dtypes the tensors had that came before, in both runs:

    agree(a, b, by_way_of=("float32", "bfloat16"))

What is nothing but rounding errors, as the gradient of something that makes no difference, agrees
with nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

SLACK: Final = 16.0
"""How many times the error of one number is still taken for rounding.

The models in ``tests/models`` are apart by up to a tenth of the tolerance that this makes between
float32 and float64, and nearly all by less than the whole of it between float32 and bfloat16.
"""

AVERAGED: Final = 4.0
"""How much sharper mean and root mean square are judged, in which the errors of many cancel."""

TERMS: Final = 4096
"""The default for the length of sums: as wide as most layers are."""

Sample: TypeAlias = float | int | str
"""A number; as text where it is no finite one: ``nan``, ``inf``, ``-inf``."""

Verdict: TypeAlias = Literal["equal", "close", "rearranged", "different", "unknown"]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A tensor's values in a few numbers; for several calls in a row, those of all calls."""

    dtype: str
    count: int
    """How many numbers it held; a complex one is two."""
    mean: float | None = None
    """Of the finite numbers, as are the next three; None where there are none."""
    root_mean_square: float | None = None
    low: float | None = None
    high: float | None = None
    samples: tuple[Sample, ...] = ()
    """Numbers at places that ``count`` alone decides; of several calls, a mean whose weights
    depend on the order of the calls."""
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    checksum: str | None = None
    """Of whole numbers and truth values: exact, and whatever their order."""
    looked_at: int | None = None
    """How many numbers the moments are of, where that is not all of them."""
    note: str | None = None
    """Why nothing is known but dtype and count, where that is so."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class CallFingerprints:
    """The results of one call of an op or module, or of several calls in a row."""

    first: int
    """The first of these calls, from 1, among the calls that the event represents."""
    last: int
    """The last of these calls; equals `first` for one call."""
    outputs: tuple[Fingerprint, ...]
    """Of each tensor in ``outputs`` of the op or module call, from left to right."""
    inputs: tuple[Fingerprint, ...] = ()
    """Of each tensor in ``inputs``; only for outermost module calls."""
    digest: str | None = None
    """Of several calls: depends on each fingerprint to the last bit, and on their order."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two fingerprints are apart."""

    verdict: Verdict
    """``equal`` in all that is known of them; ``close``: within the tolerance; ``rearranged``: the
    same numbers as far as can be seen, in other places; ``different``; ``unknown``: one was not
    looked at."""
    amount: float
    """The largest difference, as a multiple of what is tolerated: up to 1 for close ones,
    ``math.inf`` where no tolerance helps. Of rearranged ones, that of the samples."""
    relative: float
    """That difference, relative to how large the numbers are."""
    where: str
    """The number that differs most: ``count``, ``nan``, ``infinite``, ``checksum``, ``mean``,
    ``root mean square``, ``low``, ``high``, ``samples``; ``note`` for unknown; empty for equal."""
    tolerance: float
    """The tolerance of one number, relative to how large the numbers are."""


def agree(
    a: Fingerprint,
    b: Fingerprint,
    tolerance: float | None = None,
    *,
    by_way_of: Collection[str] = (),
) -> bool:
    """Return whether nothing speaks against two tensors being the same but for rounding."""
    apart = distance(a, b, tolerance, by_way_of=by_way_of)
    return apart.verdict in ("equal", "close", "unknown")


def distance(
    a: Fingerprint,
    b: Fingerprint,
    tolerance: float | None = None,
    *,
    by_way_of: Collection[str] = (),
) -> Distance:
    """How far two fingerprints are apart, and in what.

    Without a tolerance, it is the one of both dtypes and of those ``by_way_of`` which they came;
    of whole numbers none is tolerated then. One that is given goes for everything alike.
    """
    if a.note is not None or b.note is not None:
        return Distance("unknown", 0.0, 0.0, "note", 0.0)
    allowed = tolerance_for(a.dtype, b.dtype, *by_way_of) if tolerance is None else tolerance
    if a.count != b.count:
        return Distance("different", math.inf, math.inf, "count", allowed)
    if _content(a) == _content(b) and (a.checksum or b.checksum) == (b.checksum or a.checksum):
        return Distance("equal", 0.0, 0.0, "", allowed)
    if a.nan != b.nan:
        return Distance("different", math.inf, math.inf, "nan", allowed)
    if (a.positive_infinity, a.negative_infinity) != (b.positive_infinity, b.negative_infinity):
        return Distance("different", math.inf, math.inf, "infinite", allowed)
    size = _size(a, b)
    averaged = AVERAGED if tolerance is None else 1.0
    moments = max(
        _worst(_averages(a, b), size, allowed / min(averaged, math.sqrt(max(a.count, 1)))),
        _worst(_extremes(a, b), size, allowed),
    )
    samples = _worst(_samples(a, b), size, allowed)
    exact = a.checksum is not None and b.checksum is not None and tolerance is None
    if exact and a.checksum != b.checksum:
        relative = max(moments[1], samples[1])
        return Distance("different", math.inf, relative, "checksum", allowed)
    if moments[0] > 1:
        return Distance("different", *max(moments, samples), allowed)
    if samples[0] > 1 or (exact and samples[0] > 0):
        return Distance("rearranged", *samples, allowed)
    return Distance("close", *max(moments, samples), allowed)


def tolerance_for(*dtypes: str, terms: int = TERMS) -> float:
    """How far numbers may be apart that were computed by way of these dtypes.

    Relative to how large they are. ``terms`` is how many products are added up to make one.
    """
    stored = max((_ROUNDOFF.get(dtype, _FLOAT32) for dtype in dtypes), default=_FLOAT32)
    return SLACK * (stored + math.sqrt(terms) * min(stored, _FLOAT32))


_FLOAT32: Final = 2.0**-24

_ROUNDOFF: Final = {
    "float64": 2.0**-53,
    "complex128": 2.0**-53,
    "float32": _FLOAT32,
    "complex64": _FLOAT32,
    "float16": 2.0**-11,
    "complex32": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
    "float8_e4m3fnuz": 2.0**-4,
    "float8_e5m2": 2.0**-3,
    "float8_e5m2fnuz": 2.0**-3,
    "float8_e8m0fnu": 2.0**-1,
    "float4_e2m1fn_x2": 2.0**-2,
} | dict.fromkeys(
    ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))), 0.0
)
"""By dtype, how far a number may be from the nearest one that can be stored."""

_Part: TypeAlias = tuple[str, float, float]
"""The quantity, and its value on either side."""


def _content(fingerprint: Fingerprint) -> tuple[object, ...]:
    """The numbers that are equal for two tensors with equal values, whatever their dtypes."""
    return (
        fingerprint.mean,
        fingerprint.root_mean_square,
        fingerprint.low,
        fingerprint.high,
        fingerprint.samples,
        fingerprint.nan,
        fingerprint.positive_infinity,
        fingerprint.negative_infinity,
    )


def _averages(a: Fingerprint, b: Fingerprint) -> Iterator[_Part]:
    if a.mean is not None and b.mean is not None:
        yield "mean", a.mean, b.mean
    if a.root_mean_square is not None and b.root_mean_square is not None:
        yield "root mean square", a.root_mean_square, b.root_mean_square


def _extremes(a: Fingerprint, b: Fingerprint) -> Iterator[_Part]:
    if a.low is not None and b.low is not None:
        yield "low", a.low, b.low
    if a.high is not None and b.high is not None:
        yield "high", a.high, b.high


def _samples(a: Fingerprint, b: Fingerprint) -> Iterator[_Part]:
    for ours, theirs in zip(a.samples, b.samples, strict=False):
        if ours != theirs:
            yield "samples", _number(ours), _number(theirs)


def _number(sample: Sample) -> float:
    try:
        return float(sample)
    except (OverflowError, ValueError):
        return math.nan  # A file can say anything.


def _size(a: Fingerprint, b: Fingerprint) -> float:
    """How large the numbers of either are.

    Not the root mean square alone: a mask of huge numbers would hide all others.
    """
    from statistics import median  # Large, and only who compares values needs it.

    overall = max(a.root_mean_square or 0.0, b.root_mean_square or 0.0)
    sampled = [abs(_number(sample)) for sample in (*a.samples, *b.samples)]
    ordinary = [sample for sample in sampled if 0 < sample < math.inf]
    return min(overall, 4 * median(ordinary)) if ordinary else overall


def _worst(parts: Iterator[_Part], size: float, allowed: float) -> tuple[float, float, str]:
    """The largest difference: as a multiple of what is allowed, relative, and of what."""
    worst = (0.0, 0.0, "")
    for name, ours, theirs in parts:
        if ours == theirs:
            continue
        apart = abs(ours - theirs)
        scale = max(size, abs(ours), abs(theirs))
        if not math.isfinite(apart):  # one of them is no finite number, or both are huge
            relative = math.inf if not (math.isfinite(ours) and math.isfinite(theirs)) else 2.0
        else:
            relative = apart / scale
        amount = relative / allowed if allowed else math.inf
        worst = max(worst, (amount, relative, name))
    return worst
