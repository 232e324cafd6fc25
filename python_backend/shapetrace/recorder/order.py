"""Which places of a function lie before which, where loops would make each lie before the other.

Within one iteration of a loop the program has come from one place to another if there is a way that
does not begin the loop anew. A place in a loop that has been left lies before all that follows it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from types import CodeType
from typing import Final, NamedTuple

from shapetrace.recorder.steps import Listing


class _Loop(NamedTuple):
    """The instructions from the head of a loop to the jump back there."""

    head: int
    end: int

    def __contains__(self, offset: object) -> bool:
        return isinstance(offset, int) and self.head <= offset <= self.end


class Order:
    """The order of the instructions of one function."""

    def __init__(self, code: CodeType) -> None:
        self._listing: Final = Listing(code)
        # The compiler puts handlers at the end, with jumps back to where the program goes on.
        self._handlers_begin: Final = min(
            (each.target for each in self._listing.handlers), default=len(code.co_code)
        )
        self._loops: Final = tuple(sorted(self._find_loops()))
        self._heads: Final = frozenset(loop.head for loop in self._loops)
        self._reached: Final[dict[int, frozenset[int]]] = {}

    def may_be_before(self, place: int, here: int) -> bool:
        """Whether the program may have come from one instruction to another in one iteration."""
        place, here = self._align(place), self._align(here)
        if place == here:
            return False
        for loop in self._loops:
            if place in loop and here not in loop:
                if loop.head == here:
                    return False
                place = loop.head
                break
        return here in self._ahead(place)

    def _align(self, offset: int) -> int:
        """Where the instruction begins that an offset lies in."""
        return self._listing.offsets[max(bisect_right(self._listing.offsets, offset) - 1, 0)]

    def _find_loops(self) -> Iterator[_Loop]:
        ends: dict[int, int] = {}
        for source, targets in self._listing.following.items():
            for target in targets:
                if target <= source < self._handlers_begin:
                    ends[target] = max(source, ends.get(target, 0))
        for head, end in ends.items():
            yield _Loop(head, end)

    def _ahead(self, start: int) -> frozenset[int]:
        known = self._reached.get(start)
        if known is None:
            found: set[int] = set()
            waiting = [start]
            while waiting:
                for target in self._following(waiting.pop()):
                    if target not in found:
                        found.add(target)
                        waiting.append(target)
            known = self._reached[start] = frozenset(found)
        return known

    def _following(self, offset: int) -> Iterator[int]:
        for target in self._listing.following[offset]:
            if target > offset or target not in self._heads:
                yield target
        for handler in self._listing.handlers:
            if handler.start <= offset < handler.end:
                yield handler.target
