"""Differences in so many places that they are reported once instead of in a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from shapetrace.comparing.aspects import TENSOR_KINDS, Known, Pair, tensor_pairs, traits
from shapetrace.comparing.comparison import Event, Kind, Throughout
from shapetrace.comparing.walk import WalkStep
from shapetrace.events.model import Container, ModuleCall, Tensor, Value

_FEWEST: Final = 8
"""Differences in fewer places than this are reported one by one."""

_STRETCHES: Final = 8
_MOST_STRETCHES: Final = 6
"""Of equal stretches of a run, in so many a difference must be to be throughout, or in half of all
places. Under autocast most calls may keep their dtype, but those that do not are everywhere.
"""


def known_of(steps: Iterable[WalkStep], ignored: frozenset[Kind]) -> tuple[Known, list[Throughout]]:
    """The differences that are so throughout: in half of the places, or always."""
    pairs: dict[Kind, Counter[Pair]] = {kind: Counter() for kind in TENSOR_KINDS}
    both = [step for step in steps if step.a is not None and step.b is not None]
    stretches: dict[tuple[Kind, Pair], set[int]] = {}
    for number, step in enumerate(both):
        for key in _count_pairs(step, pairs):
            stretches.setdefault(key, set()).add(number * _STRETCHES // len(both))
    kinds = [kind for kind in TENSOR_KINDS if pairs[kind] and kind not in ignored]
    found: dict[Kind, frozenset[Pair]] = {}
    told: list[Throughout] = []
    if kinds:
        totals_a, totals_b = _totals(both, kinds)
        for kind in kinds:
            chosen = {
                pair: count
                for pair, count in pairs[kind].items()
                if count >= _FEWEST
                and (
                    len(stretches[kind, pair]) >= _MOST_STRETCHES
                    or 2 * count >= max(totals_a[kind][pair[0]], totals_b[kind][pair[1]])
                )
            }
            found[kind] = frozenset(chosen) | _of_device_kinds(kind, chosen)
            told += [
                Throughout(kind, *pair, count, totals_a[kind][pair[0]])
                for pair, count in sorted(chosen.items(), key=lambda item: (-item[1], item[0]))
            ]
    return Known(found, ignored), told


def names_of(steps: Iterable[WalkStep]) -> list[Throughout]:
    """Modules and classes that have another name: each new name once."""
    names: Counter[Pair] = Counter()
    for step in steps:
        a, b = step.a, step.b
        if step.phase == "enter" and isinstance(a, ModuleCall) and isinstance(b, ModuleCall):
            if step.relation in ("renamed", "replaced"):
                names[_renamed(step, a, b)] += 1
            if a.class_name != b.class_name:
                names[a.class_name, b.class_name] += 1
    return [Throughout("name", *pair, count, count) for pair, count in names.items()]


def _count_pairs(
    step: WalkStep, pairs: Mapping[Kind, Counter[Pair]]
) -> Iterable[tuple[Kind, Pair]]:
    """Count what the tensors of a call have instead of each other, and yield these pairs."""
    if step.a is None or step.b is None:
        return
    for ours, theirs in _parts(step.a, step.b, step):
        if ours is theirs or ours == theirs:
            continue
        for a, b in tensor_pairs(ours, theirs):
            if a is not b:
                for kind, one, other in zip(TENSOR_KINDS, traits(a), traits(b), strict=True):
                    if one != other:
                        pairs[kind][one, other] += 1
                        yield kind, (one, other)


def _parts(
    a: Event, b: Event, step: WalkStep
) -> Iterable[tuple[tuple[Value, ...], tuple[Value, ...]]]:
    if step.phase != "leave":
        yield a.inputs, b.inputs
    if step.phase != "enter":
        yield a.outputs, b.outputs


def _totals(
    steps: Iterable[WalkStep], kinds: Iterable[Kind]
) -> tuple[dict[Kind, Counter[str]], dict[Kind, Counter[str]]]:
    """How often each trait is among the tensors of calls that both made, in A and in B."""
    indices = [(TENSOR_KINDS.index(kind), kind) for kind in kinds]
    totals: tuple[dict[Kind, Counter[str]], dict[Kind, Counter[str]]] = (
        {kind: Counter() for kind in kinds},
        {kind: Counter() for kind in kinds},
    )
    for step in steps:
        if step.a is None or step.b is None:
            continue
        for sides in _parts(step.a, step.b, step):
            for values, counters in zip(sides, totals, strict=True):
                for tensor in _tensors(values):
                    has = traits(tensor)
                    for index, kind in indices:
                        counters[kind][has[index]] += 1
    return totals


def _tensors(values: Iterable[Value]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Container):
            yield from _tensors(value.items)


def _of_device_kinds(kind: Kind, pairs: Iterable[Pair]) -> frozenset[Pair]:
    """Pairs of devices without their index, as most arguments have them."""
    if kind != "device":
        return frozenset()
    return frozenset((a.partition(":")[0], b.partition(":")[0]) for a, b in pairs)


def _renamed(step: WalkStep, a: ModuleCall, b: ModuleCall) -> Pair:
    """The part of two paths that differs: ``layers`` and ``blocks`` of ``layers.0`` and so on."""
    ours, theirs = _relative(a, step.module_a), _relative(b, step.module_b)
    start = 0
    while start < min(len(ours), len(theirs)) and ours[start] == theirs[start]:
        start += 1
    end = 0
    while end < min(len(ours), len(theirs)) - start and ours[-1 - end] == theirs[-1 - end]:
        end += 1
    changed_a, changed_b = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    if not changed_a or not changed_b:
        return ".".join(ours), ".".join(theirs)
    return ".".join(ours[:start] + changed_a), ".".join(theirs[:start] + changed_b)


def _relative(call: ModuleCall, parent: ModuleCall | None) -> list[str]:
    path = call.path
    if parent is not None and parent.path:
        path = path.removeprefix(f"{parent.path}.")
    return path.split(".")
