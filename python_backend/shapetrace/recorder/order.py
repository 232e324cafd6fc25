"""Which places of a function lie before which, where loops would make each lie before the other.

Within one iteration of a loop the program has come from one place to another if there is a way that
does not begin the loop anew. A place in a loop that has been left lies before all that follows it.
"""

from __future__ import annotations

import dis
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Final, NamedTuple, TypeAlias

from shapetrace.recorder.steps import Handler, Listing, is_second_half

_Ways: TypeAlias = dict[int, set[int]]
"""Where the program may go on after each instruction."""

_ENDS: Final = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS"})


_PASSING_ON: Final = frozenset(
    {
        *("autocast", "device", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"),
        *("catch_warnings", "no_sync", "open", "profile", "record_function", "sdpa_kernel"),
    }
)
"""Context managers that never swallow an error, so that what is in them has run behind them."""


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
        sources = _turned_around(self._every)
        passing_on = _handlers_that_pass_on(code, {each.target for each in listing.handlers})
        self._likely: Final = _with_handlers(
            self._usual, [each for each in listing.handlers if each.target not in passing_on]
        )
        self.may_swallow: Final = any(
            _is_of_with(code, each.target) and each.target not in passing_on
            for each in listing.handlers
        )
        """Whether a ``with`` may have the program go on behind it after an error."""
        self._ends: Final = frozenset(
            each for each in listing.offsets if _is_end(code, each) and not self._likely[each]
        )
        self._loops: Final = tuple(sorted(self._find_loops(sources), key=lambda loop: loop.head))
        self._heads: Final = frozenset(loop.head for loop in self._loops)
        self._before: Final = _turned_around(self._every, self._heads)
        self._behind: Final[dict[int, set[int]]] = {}

    def __len__(self) -> int:
        """How many instructions there are: each question but the first two walks over them."""
        return len(self._offsets)

    def may_be_before(self, place: int, here: int) -> bool:
        """Whether the program may have come from one instruction to another in one iteration."""
        place, here = self.align(place), self.align(here)
        if place == here:
            return False
        for loop in self._loops:
            if place in loop.inside and here not in loop.inside:
                if loop.head == here:
                    return False
                place = loop.head
                break
        # There are as many places as calls, but few that somebody stands at.
        if here not in self._behind:
            self._behind[here] = _come_to(self._before, here)
        return place in self._behind[here]

    def beginning_around(self, place: int, here: int) -> int | None:
        """Where the innermost loop begins that both are in; None where they are in none."""
        place, here = self.align(place), self.align(here)
        around = [each for each in self._loops if place in each.inside and here in each.inside]
        innermost = min(around, key=lambda loop: len(loop.inside), default=None)
        return None if innermost is None else innermost.head

    def is_in_loop(self, place: int) -> bool:
        """Whether a place may be come to more than once in one call."""
        place = self.align(place)
        return any(place in loop.inside for loop in self._loops)

    def passed(self, here: int, beginning: int) -> frozenset[int]:
        """The instructions that every way from a beginning to an instruction goes by."""
        here = self.align(here)
        way = _way_to(self._likely, beginning, here, self._heads)
        if not way:
            return frozenset(self._offsets)  # There is none: that says nothing of any of them.
        number = {offset: index for index, offset in enumerate(way)}
        found: set[int] = set()
        seen: set[int] = set()
        furthest = 0
        for index, offset in enumerate(way):
            if furthest <= index:
                found.add(offset)
            # What leads around the next ones, and back to the way behind them?
            waiting = [offset]
            while waiting:
                source = waiting.pop()
                for target in self._likely[source]:
                    if target <= source and target in self._heads:
                        continue
                    if target in number:
                        furthest = max(furthest, number[target])
                    elif target not in seen:
                        seen.add(target)
                        waiting.append(target)
        return frozenset(found)

    def is_after_each(self, place: int, other: int) -> bool:
        """Whether a place is come to once at most each time that another one was."""
        place, other = self.align(place), self.align(other)
        if place in (other, self.first):
            return False
        return not any(
            place in _come_to(self._likely, start, without=other) for start in (self.first, place)
        )

    def is_followed(self, place: int, other: int, beginning: int) -> bool:
        """Whether the program does not begin anew after a place without going by another one.

        It does so, too, where it leaves the function, which may be called again.
        """
        place, other = self.align(place), self.align(other)
        behind = _come_to(self._likely, place, without=other)
        return beginning not in behind and self._ends.isdisjoint(behind)

    def align(self, offset: int) -> int:
        """Where the instruction begins that an offset lies in."""
        return self._offsets[max(bisect_right(self._offsets, offset) - 1, 0)]

    def _find_loops(self, before: _Ways) -> Iterator[_Loop]:
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
            inside = _from_to(self._offsets, head, last + 1)
            yield _Loop(head, frozenset(inside) | _between(before, head, sources))

    def _is_only_by(self, place: int, here: int) -> bool:
        """Whether the program never comes to an instruction but by another one."""
        if place in (self.first, here):
            return True
        return here not in _come_to(self._every, self.first, without=place)


def _between(before: _Ways, head: int, sources: set[int]) -> set[int]:
    """What leads from the head of a loop to the jumps back there."""
    found = {head, *sources}
    for source in sources - {head}:
        found |= _come_to(before, source, without=head)
    return found


def _from_to(offsets: list[int], start: int, end: int) -> list[int]:
    """The instructions from an offset up to another one."""
    return offsets[bisect_left(offsets, start) : bisect_left(offsets, end)]


def _with_handlers(ways: _Ways, handlers: Iterable[Handler]) -> _Ways:
    """Add the edges to exception handlers."""
    found = {offset: set(targets) for offset, targets in ways.items()}
    offsets = list(found)
    for handler in handlers:
        for offset in _from_to(offsets, handler.start, handler.end):
            found[offset].add(handler.target)
    return found


def _turned_around(ways: _Ways, heads: frozenset[int] = frozenset()) -> _Ways:
    """Where the program may come from, if not back to some instructions."""
    found: _Ways = {offset: set() for offset in ways}
    for offset, targets in ways.items():
        for target in targets:
            if target > offset or target not in heads:
                found[target].add(offset)
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


def _way_to(ways: _Ways, start: int, end: int, heads: frozenset[int]) -> list[int]:
    """One way from an instruction to another one, not back to some; empty where there is none."""
    before = {start: start}
    waiting = deque([start])
    while waiting and end not in before:
        offset = waiting.popleft()
        for target in ways[offset]:
            if target not in before and (target > offset or target not in heads):
                before[target] = offset
                waiting.append(target)
    if end not in before:
        return []
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def _is_end(code: CodeType, offset: int) -> bool:
    """Whether a function ends by an instruction, other than by an error of what it called."""
    return not is_second_half(offset) and dis.opname[code.co_code[offset]] in _ENDS


def _handlers_that_pass_on(code: CodeType, handlers: Iterable[int]) -> frozenset[int]:
    """The handlers of ``with`` whose context managers are known to swallow no error."""
    lines: dict[int, list[int]] = {}
    positions = [line for line, _, _, _ in code.co_positions()]
    for handler in handlers:
        line = positions[handler // 2 + 1]
        if _is_of_with(code, handler) and line is not None:
            lines.setdefault(line, []).append(handler)
    names: dict[int, list[str]] = {}
    for step in dis.get_instructions(code) if lines else ():
        line = positions[step.offset // 2]
        if line in lines and step.opname.startswith("LOAD_") and type(step.argval) is str:
            names.setdefault(line, []).append(step.argval)
    return frozenset(
        handler
        for line, its_handlers in lines.items()
        for handler in its_handlers
        if len(its_handlers) <= sum(name in _PASSING_ON for name in names.get(line, ()))
    )


def _is_of_with(code: CodeType, handler: int) -> bool:
    """Whether a handler asks a context manager what to do with the error."""
    return dis.opname[code.co_code[handler + 2]] == "WITH_EXCEPT_START"
