"""Which places of a function lie before which, where loops would make each lie before the other.

Within one iteration of a loop the program has come from one place to another if there is a way that
does not begin the loop anew. A place in a loop that has been left lies before all that follows it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Final, NamedTuple

from shapetrace.recorder.steps import Listing


class _Loop(NamedTuple):
    """A loop, by the instruction that begins it anew and all from which that is come back to."""

    head: int
    body: frozenset[int]


class Order:
    """The order of the instructions of one function."""

    def __init__(self, code: CodeType) -> None:
        self._listing: Final = Listing(code)
        self._following: Final = {each: self._ways_on(each) for each in self._listing.offsets}
        self._preceding: Final = _turned_around(self._following)
        self._loops: Final = tuple(sorted(self._find_loops()))
        heads = frozenset(loop.head for loop in self._loops)
        self._within_iteration: Final = _turned_around(
            {
                source: tuple(each for each in targets if each > source or each not in heads)
                for source, targets in self._following.items()
            }
        )
        self._behind: Final[dict[int, frozenset[int]]] = {}

    def may_be_before(self, place: int, here: int) -> bool:
        """Whether the program may have come from one instruction to another in one iteration."""
        place, here = self._align(place), self._align(here)
        if place == here:
            return False
        for loop in self._loops:
            if place in loop.body and here not in loop.body:
                if loop.head == here:
                    return False
                place = loop.head
                break
        known = self._behind.get(here)
        if known is None:
            known = self._behind[here] = _reached_from(here, self._within_iteration)
        return place in known

    def _align(self, offset: int) -> int:
        """Where the instruction begins that an offset lies in."""
        return self._listing.offsets[max(bisect_right(self._listing.offsets, offset) - 1, 0)]

    def _find_loops(self) -> Iterator[_Loop]:
        sources: dict[int, list[int]] = {}
        for source, targets in self._listing.following.items():
            for target in targets:
                if target <= source:
                    sources.setdefault(target, []).append(source)
        first = self._listing.offsets[0]
        for head, jumps in sources.items():
            # Handlers jump back as well to where the program goes on, but not only from there.
            outside = _reached_from(first, self._following, but=head) if head != first else ()
            back = [each for each in jumps if each not in outside]
            if back:
                body = {head, *back}
                for each in body - {head}:
                    body |= _reached_from(each, self._preceding, but=head)
                yield _Loop(head, frozenset(body))

    def _ways_on(self, offset: int) -> tuple[int, ...]:
        """Where the program can go on after an instruction, by an error too."""
        handlers = self._listing.handlers
        failed = [each.target for each in handlers if each.start <= offset < each.end]
        return (*self._listing.following[offset], *failed)


def _turned_around(ways: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    sources: dict[int, list[int]] = {}
    for source, targets in ways.items():
        for target in targets:
            sources.setdefault(target, []).append(source)
    return {target: tuple(each) for target, each in sources.items()}


def _reached_from(
    start: int, ways: Mapping[int, tuple[int, ...]], but: int | None = None
) -> frozenset[int]:
    """All that there is a way to, which may not lead through one place."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for target in ways.get(waiting.pop(), ()):
            if target != but and target not in found:
                found.add(target)
                waiting.append(target)
    return frozenset(found)
