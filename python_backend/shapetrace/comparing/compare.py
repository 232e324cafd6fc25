"""Comparing two traces, from events to what is to be said of them."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final

from shapetrace.comparing.aspects import Known, aspects, is_known_cast
from shapetrace.comparing.comparison import (
    KINDS,
    MINOR,
    Aspect,
    Comparison,
    Difference,
    Kind,
    Paired,
    Side,
)
from shapetrace.comparing.counts import Counts
from shapetrace.comparing.shared_places import ReadSource, SharedPlaces
from shapetrace.comparing.swapping import swapped
from shapetrace.comparing.throughout import known_of, names_of
from shapetrace.comparing.value_differences import Rounding, note_dtypes, values_aspects
from shapetrace.comparing.walk import Walk, WalkStep
from shapetrace.events.call_tree import build
from shapetrace.events.codec import collector_at_rest
from shapetrace.events.model import ModuleCall, Op, Trace

_WEIGHT: Final[dict[Kind, int]] = {kind: position for position, kind in enumerate(KINDS)}


def compare(
    a: Trace,
    b: Trace,
    *,
    ignored: Iterable[Kind] = (),
    tolerance: float | None = None,
    read_source: ReadSource | None = None,
    whole: bool = False,
    modules_only: bool = False,
) -> Comparison:
    """Compare two traces.

    Args:
        a: one run.
        b: the other. ``compare(b, a)`` says the same the other way round.
        ignored: kinds of differences that do not count.
        tolerance: how far values may be apart, relative to how large they are; by default what
            fits the coarsest dtype that they were computed by way of.
        read_source: gives source files, to find calls again whose code was moved.
        whole: also give all that is alike.
        modules_only: ignore calls outside of modules, for example those that create the model.

    """
    if modules_only:
        a, b = _within_modules(a), _within_modules(b)
    # What is alike in several ways is matched in the order of A, which must not depend on which
    # of them is asked for as A.
    with collector_at_rest():
        if _identity(a) > _identity(b):
            return swapped(_compare(b, a, frozenset(ignored), tolerance, read_source, whole))
        return _compare(a, b, frozenset(ignored), tolerance, read_source, whole)


def _compare(
    a: Trace,
    b: Trace,
    ignored: frozenset[Kind],
    tolerance: float | None,
    read_source: ReadSource | None,
    whole: bool,
) -> Comparison:
    notes: list[str] = []
    a, b = _same_level(a, b, notes)
    places_a = SharedPlaces(a.run.files, b.run.files, read_source)
    places_b = SharedPlaces(b.run.files, a.run.files, read_source)
    walk = Walk(places_a, places_b)
    steps = list(walk.steps(build(a).roots, build(b).roots))
    known, throughout = known_of(steps, ignored)
    if "name" not in ignored:
        throughout += names_of(steps)
    counts = Counts(a, b, notes)
    _note_values(a, b, ignored, notes)
    if not steps:
        notes.append("neither run has calls: nothing was compared")
    rounding = Rounding(tolerance)
    alike: list[float] = []
    compared = 0
    found: list[tuple[float, int, WalkStep, Difference]] = []
    for step in sorted(steps, key=_order):
        difference = _difference(step, known, counts, rounding)
        is_op = step.phase == "op" and step.a is not None and step.b is not None
        compared += is_op
        if difference is not None:
            found.append((*_moment(step, difference), step, difference))
        elif is_op:
            alike.append(step.order)
    found.sort(key=itemgetter(0, 1))
    differences = [
        replace(difference, alike_before=bisect_right(alike, moment))
        for moment, _, _, difference in found
    ]
    return Comparison(
        a=_side(a),
        b=_side(b),
        alike=len(alike),
        compared=compared,
        throughout=tuple(throughout),
        differences=tuple(differences),
        first=_first(differences),
        notes=tuple(notes),
        steps=_paired(steps, [step for _, _, step, _ in found]) if whole else (),
    )


def _within_modules(trace: Trace) -> Trace:
    return replace(trace, ops=tuple(op for op in trace.ops if op.module is not None))


def _paired(steps: Sequence[WalkStep], differing: Sequence[WalkStep]) -> tuple[Paired, ...]:
    positions = {id(step): position for position, step in enumerate(differing)}
    return tuple(
        Paired(step.a, step.b, step.phase, positions.get(id(step)), step.inside) for step in steps
    )


def _moment(step: WalkStep, difference: Difference) -> tuple[float, int]:
    """When two runs began to differ there: in one of the first calls, or in a later round."""
    if difference.kind != "values":
        return step.order, 0
    rounds = [aspect.apart.first for aspect in difference.aspects if aspect.apart is not None]
    event = step.a or step.b
    if step.loop is None or event is None:
        return step.order, 0
    moment = step.loop.moment(min(rounds, default=1), event.count or 1)
    return moment or (step.order, 0)


def _difference(
    step: WalkStep, known: Known, counts: Counts, rounding: Rounding
) -> Difference | None:
    a, b = step.a, step.b
    for event in (a, b):
        if event is not None and event.fingerprints:
            note_dtypes(event, rounding)
    if a is None or b is None:
        return _lone(step, known, counts)
    found: list[Aspect] = []
    if not (step.phase == "op" and _is_plainly_alike(a, b, step)):
        found = aspects(step, known)
        if step.relation == "moved" and step.phase == "op" and "order" not in known.ignored:
            found.append(Aspect("order", "call"))
    if step.phase != "leave":
        counted = counts.aspect(step)
        if counted is not None and "calls" not in known.ignored:
            found.append(counted)
    if a.fingerprints and b.fingerprints and "values" not in known.ignored:
        found += values_aspects(step, rounding)
    if not found:
        return None
    kind = min((aspect.kind for aspect in found), key=_WEIGHT.__getitem__)
    return Difference(kind, a, b, step.module_a, step.module_b, tuple(found))


def _lone(step: WalkStep, known: Known, counts: Counts) -> Difference | None:
    kind: Kind = "only"
    if step.is_variant:
        kind = "shape" if step.same_number else "calls"
    if kind in known.ignored or counts.is_cut(step):
        return None
    event = step.a or step.b
    if kind == "only" and isinstance(event, Op) and is_known_cast(event, known):
        return None
    return Difference(kind, step.a, step.b, step.module_a, step.module_b, inside=step.inside)


def _is_plainly_alike(a: Op | ModuleCall, b: Op | ModuleCall, step: WalkStep) -> bool:
    return (
        isinstance(a, Op)
        and isinstance(b, Op)
        and a.inputs == b.inputs
        and a.outputs == b.outputs
        and a.label == b.label
        and a.form == b.form
        and a.name == b.name
        and a.result == b.result
        and a.error is None
        and b.error is None
        and step.relation == "same"
    )


def _first(differences: Sequence[Difference]) -> Difference | None:
    for difference in differences:
        if difference.kind not in MINOR:
            return difference
    return differences[0] if differences else None


def _side(trace: Trace) -> Side:
    return Side(
        run=trace.run,
        modules=sum(call.count or 1 for call in trace.modules),
        ops=sum(op.count for op in trace.ops if op.level == "torch"),
        kernels=sum(op.count for op in trace.ops if op.level != "torch"),
        fingerprinted=any(op.fingerprints for op in trace.ops),
        unseen=tuple(sorted({each.reason for each in trace.coverage})),
    )


def _same_level(a: Trace, b: Trace, notes: list[str]) -> tuple[Trace, Trace]:
    """Both without kernels, where one has none."""
    kernels_a = any(op.level != "torch" for op in a.ops)
    kernels_b = any(op.level != "torch" for op in b.ops)
    if kernels_a == kernels_b:
        return a, b
    notes.append("only one run was recorded with --level aten: kernels are not compared")
    return (_without_kernels(a), b) if kernels_a else (a, _without_kernels(b))


def _note_values(a: Trace, b: Trace, ignored: frozenset[Kind], notes: list[str]) -> None:
    lacking = [not any(op.fingerprints for op in trace.ops) for trace in (a, b)]
    if any(lacking) and "values" not in ignored and (a.ops or b.ops):
        who = "both" if all(lacking) else "one of them"
        notes.append(f"values are not compared: record {who} with --fingerprint")


def _without_kernels(trace: Trace) -> Trace:
    return replace(trace, ops=tuple(op for op in trace.ops if op.level == "torch"))


def _order(step: WalkStep) -> float:
    return step.order


def _identity(trace: Trace) -> tuple[object, ...]:
    """A key of a trace that does not depend on the place of its file."""
    run = trace.run
    names = "\n".join([op.name for op in trace.ops] + [call.path for call in trace.modules])
    labels = "\n".join([op.label for op in trace.ops])
    return (
        len(trace.ops),
        len(trace.modules),
        zlib.crc32(names.encode("utf-8", "surrogatepass")),
        zlib.crc32(labels.encode("utf-8", "surrogatepass")),
        run.started,
        run.pid,
    )
