"""Which places a function has come by in its present turn: the iteration of a loop, or the call.

Places count how often they were at work, and do not know when. So a branch that only an earlier
iteration took looks as if it had been taken now. Certain is what every way leads by, what was at
work each time that such a place was, and what has counted on since a stop in the same turn. Of all
else it is not said that it was reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Final

from shapetrace.recorder.callsite import Activation, Site
from shapetrace.recorder.order import Order
from shapetrace.recorder.records import ModuleVariant, OpVariant

_MOST_STOPS: Final = 256
"""Functions of which it is remembered what they had done when they were looked at."""
_MOST_ORDERS: Final = 256
_MOST_STEPS: Final = 300_000
"""Instructions that are walked over for one look, as the program waits: no more is certain then."""
_RESUMED: Final = 0x20 | 0x80 | 0x200
"""The code flags of generators, coroutines and asynchronous generators. Who asks for the next part
counts it, so what was at work as often as something else says nothing."""


@dataclass(frozen=True, slots=True)
class _Stop:
    """What a function had done when it was looked at."""

    here: int
    totals: dict[int, int]
    """By the offset of each place how often it had been at work."""
    taken: frozenset[int]
    """The places that were certain to be of that turn."""


@dataclass(slots=True)
class _Look:
    """One function that is looked at."""

    activation: Activation
    order: Order
    here: int
    totals: dict[int, int]
    counts: dict[int, int]
    """How often places were at work in this call, where that is known."""
    former: _Stop | None
    may_repeat: bool
    """Whether the whole function may have run before."""
    _walks: int = 0
    """How often the function was walked over."""
    _certain: dict[int, list[int]] = field(default_factory=dict)
    _passed: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)

    def was_taken(self, place: int, beginning: int) -> bool:
        """Whether a place was come by in the turn that began at an instruction."""
        order = self.order
        if self._is_passed(place, self.here, beginning):
            return True
        if self.activation.code.co_flags & _RESUMED:
            return False
        for other in self._certain_since(beginning):
            if not self._counts_itself(other):
                continue
            if self.counts.get(other) == 1 and self._goes_with(place, other, beginning):
                return True  # it is the first turn
            is_as_often = self._is_as_often(place, other) and self._may_walk()
            if is_as_often and order.is_after_each(place, other):
                return True
        return self.former is not None and self._was_taken_since(self.former, place, beginning)

    def _is_as_often(self, place: int, other: int) -> bool:
        if self.totals[place] != self.totals[other] or not self._counts_itself(place):
            return False
        sites = self.activation.sites
        return _first_of(sites[other]) < _first_of(sites[place])

    def _counts_itself(self, place: int) -> bool:
        """Whether a place counts once each time, as what a function calls need not."""
        site = self.activation.sites[place]
        return site.last is not None or site.modules is not None

    def _was_taken_since(self, former: _Stop, place: int, beginning: int) -> bool:
        since = {each: self.totals[each] - former.totals.get(each, 0) for each in self.totals}
        certain = self._certain_since(beginning)
        if any(since[each] == 0 for each in certain):
            # The turn is the same as then.
            return since[place] > 0 or place in former.taken
        if since[place] == 0 or self.order.may_be_before(former.here, place):
            return False
        return any(
            since[each] == 1
            and self._counts_itself(each)
            and self._goes_with(place, each, beginning)
            for each in certain
        )

    def _goes_with(self, place: int, other: int, beginning: int) -> bool:
        """Whether a turn that comes by a place comes by another one before or after."""
        if self._may_walk() and self._is_passed(other, place, beginning):
            return True
        # An error may have ended a call of the function between the two.
        is_left_early = self.may_repeat
        return (
            not is_left_early
            and self._may_walk()
            and self.order.is_followed(place, other, beginning)
        )

    def _certain_since(self, beginning: int) -> list[int]:
        """The places that every way leads by from an instruction to where the function is."""
        known = self._certain.get(beginning)
        if known is None:
            known = self._certain[beginning] = [
                place
                for place, total in self.totals.items()
                if total
                and place != self.here
                and self.order.may_be_before(place, self.here)
                and self._is_passed(place, self.here, beginning)
            ]
        return known

    def _is_passed(self, place: int, here: int, beginning: int) -> bool:
        """Whether every way from a beginning to an instruction goes by a place."""
        known = self._passed.get((here, beginning))
        if known is None:
            known = self._passed[here, beginning] = self.order.passed(here, beginning)
        return self.order.align(place) in known

    def _may_walk(self) -> bool:
        self._walks += 1
        return self._walks * len(self.order) <= _MOST_STEPS


class Turns:
    """Tells of functions that are looked at what is of their present turn."""

    def __init__(self) -> None:
        self._orders: dict[int, tuple[CodeType, Order]] = {}
        self._stops: dict[Activation, tuple[_Stop | None, _Stop]] = {}

    def order_of(self, code: CodeType) -> Order:
        """The order of the instructions of a function."""
        known = self._orders.get(id(code))
        if known is None:
            if len(self._orders) >= _MOST_ORDERS:
                self._orders.clear()
            # Holding the code keeps its identity from being used again.
            known = self._orders[id(code)] = (code, Order(code))
        return known[1]

    def taken(
        self, activation: Activation, here: int, may_repeat: bool, counts: dict[int, int]
    ) -> frozenset[int]:
        """The places that were come by for certain on the way to where a function is.

        ``may_repeat`` says that the whole function may have run before, ``counts`` how often places
        were at work since it began, where that is known.
        """
        order = self.order_of(activation.code)
        totals = {offset: total_of(site) for offset, site in activation.sites.items()}
        former, latest = self._stops.pop(activation, (None, None))
        # Who is asked twice at one stop has not gone on in between.
        is_same = latest is not None and (latest.here, latest.totals) == (here, totals)
        if not is_same:
            former = latest
        look = _Look(activation, order, here, totals, counts, former, may_repeat)
        taken = frozenset(_taken_by(look))
        if len(self._stops) >= _MOST_STOPS:
            del self._stops[next(iter(self._stops))]
        self._stops[activation] = (former, _Stop(here, totals, taken))
        return taken


def _taken_by(look: _Look) -> Iterator[int]:
    order, here = look.order, look.here
    for place, total in look.totals.items():
        if not total or not order.may_be_before(place, here):
            continue
        beginning = order.beginning_around(place, here)
        if beginning is None and look.may_repeat:
            beginning = order.first
        if beginning is None or look.was_taken(place, beginning):
            yield place


def total_of(site: Site) -> int:
    """How often a place has been at work, or what the functions did that it called."""
    total = sum(variant.count for variant in _ops_of(site))
    total += sum(variant.count for variant in _modules_of(site))
    if not total:
        for callee in (site.callees or {}).values():
            total += sum(map(total_of, callee.sites.values()))
    return total


def results_of(site: Site) -> Iterator[object]:
    """What the calls from a place returned, each as what it can be told apart by."""
    yield from (variant.output for variant in _ops_of(site))
    yield from (variant.id for variant in _modules_of(site))


def _first_of(site: Site) -> int:
    """The number of the first call from a place."""
    numbers = [variant.id for variant in _ops_of(site)]
    numbers += [variant.id for variant in _modules_of(site)]
    return min(numbers)


def _ops_of(site: Site) -> Iterator[OpVariant]:
    if site.last is None:
        return
    for first in (site.variants or {None: site.last}).values():
        yield first
        other = first.next
        while other is not None and other is not first:
            yield other
            other = other.next


def _modules_of(site: Site) -> Iterator[ModuleVariant]:
    for record in (site.modules or {}).values():
        yield from record.variants.values()
        if record.wide is not None:
            yield record.wide
