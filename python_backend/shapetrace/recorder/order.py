"""Which places of a function lie before which, where loops would make each lie before the other.

Within one iteration of a loop the program has come from one place to another if there is a way that
does not begin the loop anew. A place in a loop that has been left lies before all that follows it.
"""

from __future__ import annotations

import dis
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Final, NamedTuple, TypeAlias

from shapetrace.recorder.steps import Handler, Listing

_Ways: TypeAlias = dict[int, set[int]]
"""Where the program may go on after each instruction."""


class _Loop(NamedTuple):
    """A loop's first instruction, and all that it may come to without having been left."""

    head: int
    inside: frozenset[int]


class Order:
    """The order of the instructions of one function."""

    def __init__(self, code: CodeType) -> None:
        listing = Listing(code)
        self._offsets: Final = listing.offsets
        self.first: Final = listing.offsets[0]
        """The first instruction."""
        self._usual: Final = {each: set(listing.following[each]) for each in listing.offsets}
        self._every: Final = _with_handlers(self._usual, listing.handlers)
        # Few a ``with`` has the program go on behind it after an error.
        self._likely: Final = _with_handlers(
            self._usual, [each for each in listing.handlers if not _is_of_with(code, each.target)]
        )
        self._loops: Final = tuple(sorted(self._find_loops(), key=lambda loop: loop.head))
        self._heads: Final = frozenset(loop.head for loop in self._loops)
        self._ahead: Final[dict[int, set[int]]] = {}

    def may_be_before(self, place: int, here: int) -> bool:
        """Whether the program may have come from one instruction to another in one iteration."""
        place, here = self._align(place), self._align(here)
        if place == here:
            return False
        for loop in self._loops:
            if place in loop.inside and here not in loop.inside:
                if loop.head == here:
                    return False
                place = loop.head
                break
        if place not in self._ahead:
            self._ahead[place] = _come_to(self._every, place, heads=self._heads)
        return here in self._ahead[place]

    def beginning_around(self, place: int, here: int) -> int | None:
        """Where the innermost loop begins that both are in; None where they are in none."""
        place, here = self._align(place), self._align(here)
        around = [each for each in self._loops if place in each.inside and here in each.inside]
        innermost = min(around, key=lambda loop: len(loop.inside), default=None)
        return None if innermost is None else innermost.head

    def is_in_loop(self, place: int) -> bool:
        """Whether a place may be come to more than once in one call."""
        place = self._align(place)
        return any(place in loop.inside for loop in self._loops)

    def is_passed(self, place: int, here: int, beginning: int) -> bool:
        """Whether every way from a beginning to an instruction goes by a place."""
        place, here = self._align(place), self._align(here)
        without = _come_to(self._likely, beginning, without=place, heads=self._heads)
        return place == beginning or here not in without

    def is_after_each(self, place: int, other: int) -> bool:
        """Whether a place is come to once at most each time that another one was."""
        place, other = self._align(place), self._align(other)
        if place in (other, self.first):
            return False
        return not any(
            place in _come_to(self._likely, start, without=other) for start in (self.first, place)
        )

    def is_followed(self, place: int, other: int, beginning: int) -> bool:
        """Whether the program does not begin anew after a place without going by another one."""
        place, other = self._align(place), self._align(other)
        return beginning not in _come_to(self._likely, place, without=other)

    def _align(self, offset: int) -> int:
        """Where the instruction begins that an offset lies in."""
        return self._offsets[max(bisect_right(self._offsets, offset) - 1, 0)]

    def _find_loops(self) -> Iterator[_Loop]:
        ends: dict[int, set[int]] = {}
        for source, targets in self._usual.items():
            for target in targets:
                # Handlers may stand at the end, with jumps back to where the program goes on.
                if target <= source and self._is_only_by(target, source):
                    ends.setdefault(target, set()).add(source)
        without_errors = {self.first, *_come_to(self._usual, self.first)}
        for head, sources in ends.items():
            # What leaves the loop stands in it, too.
            last = max(sources & without_errors, default=head)
            inside = {each for each in self._offsets if head <= each <= last}
            yield _Loop(head, frozenset(inside | self._between(head, sources)))

    def _is_only_by(self, place: int, here: int) -> bool:
        """Whether the program never comes to an instruction but by another one."""
        if place in (self.first, here):
            return True
        return here not in _come_to(self._every, self.first, without=place)

    def _between(self, head: int, sources: set[int]) -> set[int]:
        """What leads from the head of a loop to the jumps back there."""
        before: _Ways = {each: set() for each in self._offsets}
        for offset, targets in self._every.items():
            for target in targets:
                before[target].add(offset)
        found = {head, *sources}
        for source in sources - {head}:
            found |= _come_to(before, source, without=head)
        return found


def _with_handlers(ways: _Ways, handlers: Iterable[Handler]) -> _Ways:
    """The same with the ways that errors take."""
    found = {offset: set(targets) for offset, targets in ways.items()}
    for handler in handlers:
        for offset, targets in found.items():
            if handler.start <= offset < handler.end:
                targets.add(handler.target)
    return found


def _come_to(
    ways: _Ways, start: int, *, without: int | None = None, heads: frozenset[int] = frozenset()
) -> set[int]:
    """What is come to from an instruction without going by another one or back to some."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        offset = waiting.pop()
        for target in ways[offset] - found:
            if target != without and (target > offset or target not in heads):
                found.add(target)
                waiting.append(target)
    return found


def _is_of_with(code: CodeType, handler: int) -> bool:
    """Whether a handler asks a context manager what to do with the error."""
    return dis.opname[code.co_code[handler + 2]] == "WITH_EXCEPT_START"
