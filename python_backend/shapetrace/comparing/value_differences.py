"""Whether two calls returned equal values, according to their fingerprints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from shapetrace.comparing.aspects import tensor_pairs
from shapetrace.comparing.comparison import Apart, Aspect, Event, Part
from shapetrace.comparing.limits import LIMITS
from shapetrace.comparing.walk import WalkStep
from shapetrace.events.fingerprint import (
    CallFingerprints,
    Distance,
    Fingerprint,
    distance,
    tolerance_for,
)
from shapetrace.events.model import Container, Tensor, Value

_MOST_NOISE: Final = 3.0

_OTHER_PRECISION: Final = 2.0

_FLOATING: Final = ("float", "bfloat", "complex")


@dataclass(slots=True)
class Rounding:
    """The values that have been rounded so far, in either run.

    A value in float32 that was computed from others in bfloat16 is no better than these.
    """

    given: float | None
    """The user's tolerance."""
    seen: set[str] = field(default_factory=set)
    tolerance: float = 0.0
    """Of the coarsest dtype so far."""
    noise: float = 0.0
    """The largest difference so far that was rounding, as a multiple of what is tolerated."""
    told: set[tuple[object, ...]] = field(default_factory=set)
    """Pairs of tensors that were found to differ."""

    def see(self, dtype: str) -> None:
        """A tensor of this dtype went into or came out of a call."""
        if dtype not in self.seen:
            self.seen.add(dtype)
            if dtype.startswith(_FLOATING):
                self.tolerance = max(self.tolerance, tolerance_for(dtype))

    def apart(self, a: Fingerprint, b: Fingerprint) -> Distance:
        """How far two tensors are apart, measured by what may have been rounded."""
        if a.dtype != b.dtype:
            a, b = _without_limits(a, b)
        if self.given is not None:
            return distance(a, b, self.given)
        own = max(tolerance_for(a.dtype, b.dtype), self.tolerance)
        if a.dtype != b.dtype:
            # Whatever the coarser one has lost on the way, the finer one has not lost with it.
            own *= _OTHER_PRECISION
        is_exact = not (a.dtype.startswith(_FLOATING) and b.dtype.startswith(_FLOATING))
        if is_exact and not self.noise and a.dtype == b.dtype:
            return distance(a, b)
        found = distance(a, b, own)
        # Errors of many calls add up: where they come near to what one may make, some more is
        # tolerated, but never so much that a step from one call to the next would be missed.
        if found.verdict == "close" or found.amount <= _MOST_NOISE * min(self.noise, 1.0):
            self.noise = max(self.noise, found.amount)
            return replace(found, verdict="close")
        return found

    def is_new(self, a: Fingerprint, b: Fingerprint) -> bool:
        """Whether such a difference is found for the first time, and not passed on by a view."""
        pair = (_moments(a), _moments(b))
        is_new = pair not in self.told
        self.told.add(pair)
        return is_new


def values_aspects(step: WalkStep, rounding: Rounding) -> list[Aspect]:
    """The inputs or outputs of a call whose values are further apart than rounding explains."""
    a, b = step.a, step.b
    if a is None or b is None or not a.fingerprints or not b.fingerprints:
        return []
    return list(_part_aspects(a, b, "input" if step.phase == "enter" else "output", rounding))


def note_dtypes(event: Event, rounding: Rounding) -> None:
    """Take in the dtypes of a call's tensors."""
    for value in (*event.inputs, *event.outputs):
        _note(value, rounding)


def _note(value: Value, rounding: Rounding) -> None:
    if isinstance(value, Tensor):
        rounding.see(value.dtype)
    elif isinstance(value, Container):
        for item in value.items:
            _note(item, rounding)


def _part_aspects(a: Event, b: Event, part: Part, rounding: Rounding) -> Iterator[Aspect]:
    """The tensors that differ in any of the calls, each with where it differs most."""
    ours, theirs = _values(a, part), _values(b, part)
    worst: dict[int, Apart] = {}
    for one, other in zip(a.fingerprints, b.fingerprints, strict=False):
        if (one.first, one.last) != (other.first, other.last):
            break
        _compare_calls(one, other, part, rounding, worst)
    for number, (tensor_a, tensor_b, position) in enumerate(_positions(ours, theirs)):
        if number in worst and tensor_a.shape == tensor_b.shape:
            yield Aspect("values", part, position, tensor_a, tensor_b, worst[number])


def _compare_calls(
    one: CallFingerprints,
    other: CallFingerprints,
    part: Part,
    rounding: Rounding,
    worst: dict[int, Apart],
) -> None:
    if one == other:
        return
    ours = one.inputs if part == "input" else one.outputs
    theirs = other.inputs if part == "input" else other.outputs
    if len(ours) != len(theirs):
        return
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a == b:
            continue
        found = rounding.apart(a, b)
        if found.verdict not in ("different", "rearranged"):
            continue
        is_new = rounding.is_new(a, b)
        before = worst.get(number)
        if before is None:
            before = Apart(0.0, 0.0, 0.0, "", one.first, one.last, is_new)
        if found.amount > before.amount:
            before = replace(
                before,
                amount=found.amount,
                relative=found.relative,
                tolerance=found.tolerance,
                where=found.where,
            )
        worst[number] = replace(before, is_new=before.is_new or is_new)


def _without_limits(a: Fingerprint, b: Fingerprint) -> tuple[Fingerprint, Fingerprint]:
    """Without the least and largest numbers of their dtypes, which masks use for infinity."""
    ours, theirs = LIMITS.get(a.dtype), LIMITS.get(b.dtype)
    if ours is None or theirs is None:
        return a, b
    same_low = a.low == -ours and b.low == -theirs
    same_high = a.high == ours and b.high == theirs
    if not same_low and not same_high:
        return a, b
    return _with_infinities(a, ours), _with_infinities(b, theirs)


def _with_infinities(fingerprint: Fingerprint, limit: float) -> Fingerprint:
    infinities: dict[float | int | str, str] = {limit: "inf", -limit: "-inf"}
    return replace(
        fingerprint,
        mean=None,
        root_mean_square=None,
        low=None if fingerprint.low == -limit else fingerprint.low,
        high=None if fingerprint.high == limit else fingerprint.high,
        samples=tuple(infinities.get(sample, sample) for sample in fingerprint.samples),
    )


def _moments(fingerprint: Fingerprint) -> tuple[object, ...]:
    return (
        fingerprint.count,
        fingerprint.mean,
        fingerprint.root_mean_square,
        fingerprint.low,
        fingerprint.high,
        fingerprint.checksum,
    )


def _values(event: Event, part: Part) -> Sequence[Value]:
    return event.inputs if part == "input" else event.outputs


def _positions(a: Sequence[Value], b: Sequence[Value]) -> Iterator[tuple[Tensor, Tensor, int]]:
    """The tensors of both from left to right, with the position of the value that holds them."""
    for position, (ours, theirs) in enumerate(zip(a, b, strict=False)):
        for one, other in tensor_pairs((ours,), (theirs,)):
            yield one, other, position
