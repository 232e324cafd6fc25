"""Two traces as one sequence of steps: what both did, and what only one of them did."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shapetrace.comparing.call_groups import CallGroup, call_groups_of, describe
from shapetrace.comparing.comparison import Event
from shapetrace.comparing.loops import Loop, loops_of
from shapetrace.comparing.matching import CallPair, Matcher, Relation
from shapetrace.comparing.shared_places import SharedPlaces
from shapetrace.events.call_tree import Node
from shapetrace.events.model import ModuleCall

Phase: TypeAlias = Literal["op", "enter", "leave"]


@dataclass(slots=True)
class WalkStep:
    """A call of either run or of both; a module call of both is entered and left."""

    a: Event | None
    b: Event | None
    module_a: ModuleCall | None
    module_b: ModuleCall | None
    phase: Phase
    order: float
    """Rises with the time of the first call."""
    relation: Relation = "same"
    calls: tuple[int, int] | None = None
    """How often either run made the call, where that is more than these events say."""
    is_variant: bool = False
    """Whether the other run made the call too, but never with these shapes."""
    same_number: bool = False
    """Of a variant: whether all calls of its group are as many in both."""
    inside: int = 0
    """How many ops are inside a module call that only one run made."""
    is_after_end: bool = False
    """Whether everything that the other run did came before it."""
    loop: Loop | None = None
    """Of calls that were made again and again."""


@dataclass(slots=True)
class _Open:
    """A module call of both whose inside is being walked."""

    step: WalkStep
    bound: float
    last: float


@dataclass(slots=True)
class _Pair:
    """Two calls that belong together, not compared yet."""

    a: Node
    b: Node
    bound_a: float
    bound_b: float
    module_a: ModuleCall | None
    module_b: ModuleCall | None
    relation: Relation
    loop: Loop | None = None
    calls: tuple[int, int] | None = None


_Work: TypeAlias = "_Pair | WalkStep | None"


class Walk:
    """Goes through both traces at the same time, without recursion: nesting may be deep."""

    def __init__(self, a: SharedPlaces, b: SharedPlaces) -> None:
        self._matcher = Matcher(a, b)
        self._order = -1.0
        self._open: list[_Open] = []

    def steps(self, a: Sequence[Node], b: Sequence[Node]) -> Iterator[WalkStep]:
        """The steps below some outermost calls, nested as they are in the traces."""
        rows = self._matcher.rows(
            call_groups_of(None, a, math.inf), call_groups_of(None, b, math.inf)
        )
        pending: list[_Work] = [*_work(rows, None)]
        pending.reverse()
        _mark_the_end(pending)
        while pending:
            work = pending.pop()
            if work is None:
                yield self._leave()
            elif isinstance(work, WalkStep):
                yield self._placed(work)
            else:
                step = self._entered(work)
                yield step
                if isinstance(work.a.event, ModuleCall):
                    self._open.append(_Open(step, work.bound_a, step.order))
                    pending.append(None)
                if work.a.children or work.b.children:
                    inside_a = call_groups_of(work.a, (), work.bound_a)
                    inside_b = call_groups_of(work.b, (), work.bound_b)
                    pending += list(_work(self._matcher.rows(inside_a, inside_b), work))[::-1]

    def _entered(self, pair: _Pair) -> WalkStep:
        a, b = pair.a.event, pair.b.event
        phase: Phase = "enter" if isinstance(a, ModuleCall) else "op"
        step = WalkStep(a, b, pair.module_a, pair.module_b, phase, 0.0, pair.relation)
        step.loop, step.calls = pair.loop, pair.calls
        return self._placed(step)

    def _placed(self, step: WalkStep) -> WalkStep:
        """The step at its time; what A did not do comes after what was done before it."""
        if step.a is not None:
            self._order = step.a.id
            if self._open and self._order < self._open[-1].bound:
                self._open[-1].last = max(self._open[-1].last, self._order)
        step.order = self._order
        return step

    def _leave(self) -> WalkStep:
        """The end of the first call of the innermost open module: before what came next."""
        done = self._open.pop()
        self._order = done.last
        if self._open and done.last < self._open[-1].bound:
            self._open[-1].last = max(self._open[-1].last, done.last)
        entered = done.step
        left = WalkStep(
            entered.a, entered.b, entered.module_a, entered.module_b, "leave", done.last
        )
        left.loop = entered.loop
        return left


def _work(rows: Sequence[CallPair], around: _Pair | None) -> Iterator[_Pair | WalkStep]:
    parent = None if around is None else around.a.event
    loops = loops_of(rows, parent, None if around is None else around.loop)
    for row, loop in zip(rows, loops, strict=True):
        if row.a is not None and row.b is not None:
            for work in _variants(row.a, row.b, row.relation):
                work.loop = loop
                yield work
        elif row.a is not None:
            yield from _lone(row.a, True, row.is_wrapper)
        elif row.b is not None:
            yield from _lone(row.b, False, row.is_wrapper)


def _lone(group: CallGroup, is_a: bool, is_wrapper: bool) -> Iterator[WalkStep]:
    """A group that only one run has; its variants are reported with the first one."""
    event = group.event
    inside = 0 if is_wrapper else sum(map(_ops_inside, group.nodes))
    ours, theirs = (event, None) if is_a else (None, event)
    module_a, module_b = (group.parent, None) if is_a else (None, group.parent)
    yield WalkStep(ours, theirs, module_a, module_b, "op", 0.0, inside=inside)


def _variants(a: CallGroup, b: CallGroup, relation: Relation) -> Iterator[_Pair | WalkStep]:
    """The calls of a group that both have, with those that had the same shapes together."""
    nodes_a, nodes_b = a.nodes, b.nodes
    if len(nodes_a) == 1 and len(nodes_b) == 1:
        yield _pair(a, 0, b, 0, relation)
        return
    kinds_a = [describe(node.event) for node in nodes_a]
    kinds_b = [describe(node.event) for node in nodes_b]
    pairs = _equal(kinds_a, kinds_b)
    chosen_a, chosen_b = dict(pairs), {at_b for _, at_b in pairs}
    # Threads that meet, or ways that lead to a place, may have parted equal calls.
    rest_a = [at for at, kind in enumerate(kinds_a) if at not in chosen_a and kind not in kinds_b]
    rest_b = [at for at, kind in enumerate(kinds_b) if at not in chosen_b and kind not in kinds_a]
    chosen_a.update(zip(rest_a, rest_b, strict=False))
    for at in sorted(chosen_a):
        pair = _pair(a, at, b, chosen_a[at], relation)
        pair.calls = (_calls(a, kinds_a, at), _calls(b, kinds_b, chosen_a[at]))
        yield pair
    same_number = a.calls == b.calls
    few = min(len(rest_a), len(rest_b))
    for at in rest_a[few:]:
        step = WalkStep(nodes_a[at].event, None, a.parent, b.parent, "op", 0.0, relation)
        yield _variant(step, same_number)
    for at in rest_b[few:]:
        step = WalkStep(None, nodes_b[at].event, a.parent, b.parent, "op", 0.0, relation)
        yield _variant(step, same_number)


def _calls(group: CallGroup, kinds: Sequence[object], at: int) -> int:
    """How many calls of a group were like one of them."""
    pairs = zip(group.nodes, kinds, strict=True)
    return sum(node.event.count or 1 for node, kind in pairs if kind == kinds[at])


def _variant(step: WalkStep, same_number: bool) -> WalkStep:
    step.is_variant, step.same_number = True, same_number
    return step


def _equal(a: Sequence[object], b: Sequence[object]) -> list[tuple[int, int]]:
    """Variants with the same shapes and arguments."""
    found: dict[object, list[int]] = {}
    for at, kind in enumerate(b):
        found.setdefault(kind, []).append(at)
    return [(at, candidates.pop(0)) for at, kind in enumerate(a) if (candidates := found.get(kind))]


def _pair(a: CallGroup, at_a: int, b: CallGroup, at_b: int, relation: Relation) -> _Pair:
    return _Pair(
        a.nodes[at_a], b.nodes[at_b], a.bounds[at_a], b.bounds[at_b], a.parent, b.parent, relation
    )


def _ops_inside(node: Node) -> int:
    """How many ops are below a node, however deep."""
    count = 0
    pending = list(node.children)
    while pending:
        inside = pending.pop()
        count += not isinstance(inside.event, ModuleCall)
        pending += inside.children
    return count


def _mark_the_end(pending: Sequence[_Work]) -> None:
    """Note which of the outermost steps come after all that both did; the first comes last."""
    for work in pending:
        if not isinstance(work, WalkStep) or work.is_variant:
            break
        work.is_after_end = True
