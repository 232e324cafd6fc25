"""Which instruction gave a local variable the value it has somewhere else in its function.

Read from the bytecode: what may have happened is what happens on any way through the function. The
ways begin at its entry, or at an instruction where the program is known to have been before.
"""

from __future__ import annotations

import dis
import inspect
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import CodeType
from typing import Any, Final, NamedTuple

from shapetrace.recorder.flow import Ahead, Effect, Flow, Ways
from shapetrace.recorder.openings import Openings
from shapetrace.recorder.patterns import (
    Called,
    CalledNames,
    Copy,
    Returned,
    branches_in,
    copies_in,
    returned_calls_in,
    returns_in,
)
from shapetrace.recorder.steps import (
    BINDING,
    Kind,
    Listing,
    Own,
    is_comprehension,
    is_module,
    is_within,
)

BEFORE: Final = -1
"""Stands for no store at all: a value that there was where the ways begin. At the entry of a
function only parameters have one."""

_GLOBAL_STORES: Final = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_IMPORT_STAR: Final = 2
_MOST_REMEMBERED: Final = 64
"""Answers about one function that are kept."""


class Reached:
    """What is known at one instruction, whichever way the program came there.

    Only what is asked for is read: generated functions have thousands of variables, and what is
    known of most of them is the same at the next instruction.
    """

    def __init__(self, meanings: _Bits, bits: int) -> None:
        self._meanings: Final = meanings
        self._bits: Final = bits
        self._stores: Final[dict[str, list[int]]] = {}
        self._named: tuple[int, tuple[str, ...]] = (0, ())

    def stores_of(self, name: str) -> list[int]:
        """The stores, or BEFORE, one of which gave a local variable its value, if it has any."""
        known = self._stores.get(name)
        if known is None:
            known = self._stores[name] = self._meanings.stores_of(name, self._bits)
        return known

    @property
    def stores(self) -> dict[str, list[int]]:
        """The stores of each variable that may have a value."""
        return {name: self.stores_of(name) for name in self.names_but(0)}

    def names_but(self, told: int) -> tuple[str, ...]:
        """The variables that may have a value from elsewhere than from the stores in ``told``."""
        bits = self._bits & self._meanings.definitions & ~told
        if self._named[0] != bits:
            self._named = (bits, self._meanings.names_in(bits))
        return self._named[1]

    def stored(self) -> tuple[str, ...]:
        """The variables that may have been stored to on the way."""
        return self.names_but(self._meanings.before)

    def intact(self, name: str, store: int) -> Copy | None:
        """The copy that a store makes, if its source was not stored to since."""
        return self._meanings.intact_copy(name, store, self._bits)

    @cached_property
    def made(self) -> list[Copy]:
        """The copies that were made for certain, and whose source was not stored to since."""
        return self._meanings.made_copies(self._bits)


class Ending(NamedTuple):
    """The return that ends a function, and the local variables that it surely returns."""

    offset: int
    variables: list[Returned]


class Assignments:
    """The stores to the local variables of one function."""

    def __init__(self, code: CodeType) -> None:
        listing = Listing(code)
        own = [each for each in listing.own if not each.is_cell]
        shared, stored_inside = _shared_by(code)
        hidden = {*shared, *code.co_freevars}
        # Where it is not known which variable is meant by a name that a comprehension has, too.
        known = {each.variable for each in own}
        aside = (step.value for step in listing.steps if step.kind is Kind.SET_ASIDE)
        hidden.update(each for each in aside if each not in known)
        stored = dict.fromkeys(step.value for step in listing.steps if step.kind is Kind.STORE)
        parameters = code.co_varnames[: _parameter_count(code)]
        if not code.co_flags & inspect.CO_OPTIMIZED and not is_module(code):
            hidden.update(stored.keys() - {each.variable for each in own})  # a class's body
        if is_module(code):
            hidden.update(_stored_by_functions(code))
        ordered = stored if is_module(code) else (*code.co_varnames, *stored)
        names = dict.fromkeys((*_innermost_first(own), *ordered))
        visible = [name for name in names if name not in hidden]
        self.names: Final = tuple(name for name in visible if name not in stored_inside)
        """Variables whose stores are all in this function's own code; those of comprehensions come
        first."""
        self._own: Final = own
        self._positions: Final = list(code.co_positions()) if own else []
        visible += (name for name in code.co_cellvars if name in stored_inside - hidden)
        self._places: Final = {name: place for place, name in enumerate(dict.fromkeys(visible))}
        self._code: Final = code
        self._offsets: Final = listing.offsets
        self._binding: Final = listing.binding
        self._bits: Final = _Bits(listing, self.names, frozenset(parameters))
        self._flow: Final = Flow(listing, self._bits.effects)
        self._returns: Final = dict(returns_in(listing))
        self._returned_calls: Final = frozenset(returned_calls_in(listing))
        self._repeating: Final[dict[int, bool]] = {}
        branches = list(branches_in(listing))
        keeping = self._names_that_keep_their_value(
            listing, frozenset(parameters), {each.name for each in branches}
        )
        self._branches: Final = [each for each in branches if each.name in keeping]
        self._called: CalledNames | None = None
        self._openings: Openings | None = None
        self._from_entry: Final[dict[Ways, Ahead]] = {}
        self._reached: Final[dict[tuple[int, int | None, Ways], Reached]] = {}

    def _names_that_keep_their_value(
        self, listing: Listing, parameters: frozenset[str], among: set[str]
    ) -> set[str]:
        """The variables among these whose value stays the one they get first."""
        stores: dict[str, list[int]] = {name: [] for name in self.names if name in among}
        for step in listing.steps:
            if step.kind in BINDING and step.value in stores:
                stores[step.value].append(step.offset)
        return {
            name
            for name, offsets in stores.items()
            if not offsets
            or (len(offsets) == 1 and name not in parameters and not self.repeats(offsets[0]))
        }

    def align(self, offset: int) -> int:
        """The offset of the instruction that an offset lies in.

        While a Python function called from here runs, 3.11 says that the caller is at the end of
        its instruction.
        """
        return self._offsets[max(bisect_right(self._offsets, offset) - 1, 0)]

    def is_settled(self, offset: int) -> bool:
        """Whether variables have the values at an instruction that they had before it.

        While one is stored the value it had may run code as it goes.
        """
        return offset not in self._binding

    def repeats(self, offset: int) -> bool:
        """Whether one run of the function may come to an instruction more than once."""
        offset = self.align(offset)
        known = self._repeating.get(offset)
        if known is None:
            known = self._repeating[offset] = self._flow.repeats(offset)
        return known

    def is_returned(self, offset: int) -> bool:
        """Whether the value of an instruction is returned as it is, unless it fails for good."""
        return self.align(offset) in self._returned_calls

    def called_at(self, offset: int) -> Called | None:
        """The variable that holds what an instruction calls, where it calls a plain name."""
        if self._called is None:
            self._called = CalledNames(self._code)
        return self._called.at(offset)

    def visible(self, values: Any, offset: int) -> Any:
        """The variables by what a frame that is at an instruction has by their names."""
        if not self._own:
            return values
        found = dict(values)
        line, end_line, column, end_column = self._positions[offset // 2]
        if line is None or end_line is None or column is None or end_column is None:
            return found
        place = (line, end_line, column, end_column)
        for each in reversed(self._own):  # the innermost comprehension first
            if offset > each.offset and is_within(place, each.range):
                value = found.pop(each.name, found)
                if value is not found:
                    found[each.variable] = value
        return found

    def place_of(self, name: str) -> int:
        """The place of a variable among ``names``; -1 where it is not there."""
        return self._places.get(name, -1)

    def bit_of(self, name: str, store: int) -> int:
        """What stands for a store to a variable among those that ``Reached`` is asked about."""
        return self._bits.bit_of(name, store)

    def never_taken(self, values: Mapping[str, object]) -> Ways:
        """The ways that a run does not take in which variables have these values.

        They are those of branches that ask what a variable holds that keeps its value.
        """
        known = [each.never(values[each.name]) for each in self._branches if each.name in values]
        return frozenset().union(*known)

    def reached(self, offset: int, since: int | None, never: Ways = frozenset()) -> Reached:
        """What is known at an instruction, coming from the entry or from the one at ``since``."""
        key = (offset, since, never)
        known = self._reached.get(key)
        if known is None:
            if since is None:
                ahead = self._ahead_of_entry(never)
            else:
                ahead = self._flow.ahead(since, self._bits.anywhere, never, until=offset)
            if len(self._reached) >= _MOST_REMEMBERED:
                self._reached.clear()
            known = self._reached[key] = Reached(self._bits, ahead.bits_at(offset))
        return known

    def _ahead_of_entry(self, never: Ways) -> Ahead:
        known = self._from_entry.get(never)
        if known is None:
            if len(self._from_entry) >= _MOST_REMEMBERED:
                self._from_entry.clear()
            known = self._from_entry[never] = self._flow.ahead(
                self._offsets[0], self._bits.at_entry, never
            )
        return known

    def open_at(
        self, among: Iterable[str], offset: int, since: int | None, never: Ways, is_calling: bool
    ) -> frozenset[str]:
        """The variables through which what they hold may have been changed, at an instruction."""
        if self._openings is None:
            self._openings = Openings(self._code, self.names)
        return self._openings.open_at(among, offset, since, never, is_calling)

    def returned(self, since: int | None, never: Ways = frozenset()) -> Ending | None:
        """How the function ends, where only one return can be reached."""
        ahead = self._flow.ahead(self._offsets[0] if since is None else since, never=never)
        reached = [offset for offset in self._returns if ahead.may_reach(offset)]
        return Ending(reached[0], self._returns[reached[0]]) if len(reached) == 1 else None


def _innermost_first(own: list[Own]) -> list[str]:
    """The variables of comprehensions, of each in order, and those of inner ones first."""
    first = {each.range: each.offset for each in reversed(own)}
    return [each.variable for each in sorted(own, key=lambda each: -first[each.range])]


def _shared_by(code: CodeType) -> tuple[set[str], set[str]]:
    """The variables that functions inside of one have as well, and those comprehensions store to.

    Until 3.12 comprehensions are functions, too, but none that outlives what it is written in.
    """
    shared: set[str] = set()
    stored: set[str] = set()
    for part in code.co_consts:
        if isinstance(part, CodeType) and is_comprehension(part):
            of_functions, of_comprehensions = _shared_by(part)
            shared |= of_functions.intersection(part.co_freevars)
            inside = {each.value for each in Listing(part).steps if each.kind is Kind.STORE}
            stored |= (inside | of_comprehensions).intersection(part.co_freevars)
        elif isinstance(part, CodeType):
            shared.update(part.co_freevars)
    return shared, stored


def _stored_by_functions(code: CodeType) -> Iterator[str]:
    """The global variables that functions in a module store to, or that it may import unnamed."""
    pending = [code]
    while pending:
        current = pending.pop()
        for instruction in dis.get_instructions(current):
            if instruction.opname in _GLOBAL_STORES and current is not code:
                yield instruction.argval
            elif instruction.opname == "IMPORT_STAR" or _imports_star(instruction):
                yield from code.co_names
        pending.extend(part for part in current.co_consts if isinstance(part, CodeType))


def _imports_star(instruction: dis.Instruction) -> bool:
    """How Python 3.12 and later do so."""
    return instruction.opname == "CALL_INTRINSIC_1" and instruction.arg == _IMPORT_STAR


class _Bits:
    """What each bit of a number says of the local variables."""

    def __init__(
        self, listing: Listing, names: tuple[str, ...], parameters: frozenset[str]
    ) -> None:
        self._order: Final = {name: place for place, name in enumerate(names)}
        stores = dict.fromkeys(
            (step.value, step.offset)
            for step in listing.steps
            if step.kind is Kind.STORE and step.value in self._order
        )
        self._keys: Final = [*((name, BEFORE) for name in names), *stores]
        """For each bit a name and a store: the name may have its value from there."""
        self._bit_of: Final = {key: 1 << bit for bit, key in enumerate(self._keys)}
        self._of_name: Final[dict[str, int]] = defaultdict(int)
        for (name, _), bit in self._bit_of.items():
            self._of_name[name] |= bit
        self.definitions: Final = (1 << len(self._keys)) - 1
        self.before: Final = (1 << len(names)) - 1
        """The bits of names that have their value from no store at all."""
        copies = [
            copy
            for copy in copies_in(listing)
            if copy.name in self._order and copy.source in self._order
        ]
        self._copies: Final = {(copy.name, copy.offset): copy for copy in copies}
        first, count = len(self._keys), len(self._copies)
        self._not_made: Final = {key: 1 << first + bit for bit, key in enumerate(self._copies)}
        """For each copy: it may not have been made at all."""
        self._changed: Final = {key: bit << count for key, bit in self._not_made.items()}
        """For each copy: if it was made, its source may have been stored to since."""
        self._made_in_order: Final = list(self._copies)
        self.effects: Final = self._effects(listing)
        self.at_entry: Final = self._beginning(parameters.intersection(names))
        """What is so at the entry of the function."""
        self.anywhere: Final = self._beginning(names)
        """What is so anywhere else from where ways are to begin."""

    def _effects(self, listing: Listing) -> dict[int, Effect]:
        changes: dict[str, int] = defaultdict(int)
        for key, copy in self._copies.items():
            changes[copy.source] |= self._changed[key]
        effects: dict[int, Effect] = {}
        for step in listing.steps:
            if step.kind not in BINDING or step.value not in self._order:
                continue
            key = (step.value, step.offset)
            cleared = self._of_name[step.value]
            cleared |= self._not_made.get(key, 0) | self._changed.get(key, 0)
            new = changes[step.value]
            if step.kind is Kind.STORE:
                new |= self._bit_of[key]
            first = effects.get(step.offset, Effect(0, 0))
            effects[step.offset] = Effect(first.cleared | cleared, first.new & ~cleared | new)
        return effects

    def _beginning(self, bound: Iterable[str]) -> int:
        return self._all_not_made() | sum(self._bit_of[each, BEFORE] for each in bound)

    def _all_not_made(self) -> int:
        return (1 << len(self._copies)) - 1 << len(self._keys)

    def bit_of(self, name: str, store: int) -> int:
        """The bit that says that a name may have its value from a store."""
        return self._bit_of[name, store]

    def stores_of(self, name: str, bits: int) -> list[int]:
        """The stores that a name may have its value from."""
        return [self._keys[bit][1] for bit in _places_in(bits & self._of_name.get(name, 0))]

    def names_in(self, bits: int) -> tuple[str, ...]:
        """The names that bits are about, in the order of the function's variables."""
        found = {self._keys[bit][0] for bit in _places_in(bits)}
        return tuple(sorted(found, key=self._order.__getitem__))

    def intact_copy(self, name: str, store: int, bits: int) -> Copy | None:
        """The copy that a store makes, unless its source may have been stored to since."""
        copy = self._copies.get((name, store))
        return None if copy is None or bits & self._changed[name, store] else copy

    def made_copies(self, bits: int) -> list[Copy]:
        """The copies that were made for certain, and whose source was not stored to since."""
        made = (self._all_not_made() & ~bits) >> len(self._keys)
        keys = (self._made_in_order[place] for place in _places_in(made))
        return [self._copies[key] for key in keys if not bits & self._changed[key]]


def _places_in(bits: int) -> Iterator[int]:
    """The places of the bits that are set in a number."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _parameter_count(code: CodeType) -> int:
    starred = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_argcount + code.co_kwonlyargcount + starred
