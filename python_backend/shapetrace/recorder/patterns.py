"""What some sequences of steps do with local variables: copying one, returning one, asking one."""

from __future__ import annotations

import dis
import sys
from bisect import bisect_right
from collections.abc import Iterator
from types import CodeType
from typing import Final, NamedTuple

from shapetrace.recorder.flow import Ways
from shapetrace.recorder.steps import BINDING, Kind, Listing, Step
from shapetrace.recorder.targets import Item, Path, follow

_PLAIN: Final = frozenset({bool, int, float, str, type(None)})
"""Classes of values that always are true, or always false."""


_NO_PARTS: Final = ("CACHE",) if sys.version_info >= (3, 13) else ("CACHE", "PUSH_NULL")
"""What is no part of a call. From 3.13 on PUSH_NULL follows the callee, with its place."""


class Copy(NamedTuple):
    """A store of what another local variable holds, or of an item of it."""

    name: str
    offset: int
    source: str
    path: Path


class Returned(NamedTuple):
    """A local variable that is returned, or is an item of the tuple that is."""

    name: str
    path: Path


class Branch(NamedTuple):
    """A branch that asks what a local variable holds."""

    name: str
    asks_for_none: bool
    """Whether it asks if the value is None, or else if it is true."""
    if_so: tuple[int, int]
    """The way that is taken then."""
    if_not: tuple[int, int]

    def never(self, value: object) -> Ways:
        """The way that is not taken where the variable has this value."""
        if self.asks_for_none:
            answer = value is None
        elif type(value) in _PLAIN:
            answer = bool(value)
        else:
            return frozenset()  # asking may run code, and the answer may change
        return frozenset({self.if_not if answer else self.if_so})


class Called(NamedTuple):
    """A variable that holds what is called."""

    name: str
    is_global: bool


def copies_in(listing: Listing) -> Iterator[Copy]:
    """The stores whose value always is what one local variable holds then, or an item of it."""
    for index, step in enumerate(listing.steps):
        if step.kind is not Kind.LOAD:
            continue
        for name, offset, path in follow(listing, index + 1, stop_at=listing.joins):
            position = listing.steps.index(Step(Kind.STORE, offset, name), index)
            between = listing.steps[index:position]
            if not any(each.kind in BINDING and each.value == step.value for each in between):
                yield Copy(name, offset, step.value, path)


def returns_in(listing: Listing) -> Iterator[tuple[int, list[Returned]]]:
    """The returning instructions, each with the local variables that it surely returns."""
    for index, step in enumerate(listing.steps):
        if step.kind is Kind.RETURN:
            yield step.offset, list(_returned_by(listing, index))


def _returned_by(listing: Listing, index: int) -> Iterator[Returned]:
    last = listing.steps[index - 1]
    count = last.value if last.kind is Kind.TUPLE else None
    start = index - 1 - (count or 0)
    parts = listing.steps[start : index - 1] if last.kind is Kind.TUPLE else [last]
    is_plain = all(part.kind in (Kind.LOAD, Kind.CONSTANT) for part in parts)
    if is_plain and not _is_entered(listing, start + 1, index):
        for place, part in enumerate(parts):
            if part.kind is Kind.LOAD:
                yield Returned(part.value, () if count is None else (Item(place, count),))


def returned_calls_in(listing: Listing) -> Iterator[int]:
    """The instructions whose value is returned as it is, and whose errors nobody here handles."""
    for index, step in enumerate(listing.steps):
        if step.kind is Kind.RETURN and step.offset not in listing.joins:
            before = listing.steps[index - 1].offset
            if not any(each.start <= before < each.end for each in listing.handlers):
                yield before


def branches_in(listing: Listing) -> Iterator[Branch]:
    """The branches that ask whether a local variable is true, or is None."""
    for index, step in enumerate(listing.steps):
        if step.kind is not Kind.BRANCH:
            continue
        start = index - 1
        if listing.steps[start].kind is Kind.TRUTH:
            start -= 1
        load = listing.steps[start]
        if load.kind is Kind.LOAD and not _is_entered(listing, start + 1, index):
            jump = (step.offset, step.value.target)
            behind = (step.offset, listing.following[step.offset][0])
            ways = (jump, behind) if step.value.jumps_if else (behind, jump)
            yield Branch(load.value, step.value.asks_for_none, *ways)


def _is_entered(listing: Listing, start: int, end: int) -> bool:
    """Whether the program may come from elsewhere to one of the steps up to that at ``end``."""
    return any(step.offset in listing.joins for step in listing.steps[start : end + 1])


class CalledNames:
    """What the calls of one function call, where that is a plain name; reads the function once."""

    def __init__(self, code: CodeType) -> None:
        self._instructions: Final = [
            each for each in dis.get_instructions(code) if each.opname not in _NO_PARTS
        ]
        self._offsets: Final = [each.offset for each in self._instructions]
        self._found: Final[dict[int, Called | None]] = {}
        self._beginning_at: Final[dict[tuple[int, int], list[tuple[int, tuple[int, int]]]]] = {}
        """The instructions whose source begins at a place, each with where that ends."""
        for index, instruction in enumerate(self._instructions):
            place = _Range.of(instruction)
            if place is not None:
                self._beginning_at.setdefault(place.start, []).append((index, place.end))

    def at(self, offset: int) -> Called | None:
        """The variable that holds what an instruction calls, where it calls a plain name."""
        if offset not in self._found:
            self._found[offset] = self._find(offset)
        return self._found[offset]

    def _find(self, offset: int) -> Called | None:
        last = bisect_right(self._offsets, offset) - 1
        caller = self._instructions[last]
        call = _Range.of(caller)
        if call is None or not caller.opname.startswith(("CALL", "PRECALL")):
            return None
        # The callee is the longest part that begins where the call does.
        callee, longest = None, call.start
        for index, end in self._beginning_at[call.start]:
            if index < last and longest < end < call.end:
                is_behind = self._instructions[index].opname == "PUSH_NULL"
                callee, longest = self._instructions[index - is_behind], end
        if callee is None:
            return None
        if callee.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            return Called(callee.argval, is_global=True)
        is_local = "LOAD_FAST" in callee.opname or callee.opname == "LOAD_DEREF"
        # Of two that are loaded by one instruction, what stands before a call is the second.
        name = callee.argval[1] if type(callee.argval) is tuple else callee.argval
        return Called(name, is_global=False) if is_local else None


class _Range(NamedTuple):
    """Where an instruction's source begins and ends."""

    start: tuple[int, int]
    end: tuple[int, int]

    @classmethod
    def of(cls, instruction: dis.Instruction) -> _Range | None:
        match instruction.positions:
            case (int(line), int(end_line), int(column), int(end_column)):
                return cls((line, column), (end_line, end_column))
        return None
