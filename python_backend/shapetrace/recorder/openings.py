"""Which variables of a function may have been a way to change what they hold, since it was stored.

A list or dictionary is as it was stored as long as the program has only read items of it. All else
that is done with it is taken to change it: to call its methods, to hand it on, to give it a second
name. Whoever else holds it is not known of here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Final

from shapetrace.recorder.flow import Ahead, Effect, Flow, Ways
from shapetrace.recorder.steps import BINDING, Kind, Listing, Step

_HARMLESS: Final = frozenset(
    {Kind.LOAD, Kind.CONSTANT, Kind.COPY, Kind.SWAP, Kind.TUPLE, Kind.NOTHING}
)
"""What only moves values on the interpreter's stack."""
_STORING: Final = frozenset({Kind.STORE, Kind.UNPACK, Kind.UNPACK_STARRED})
"""What may come between a value and its storing."""
_MOST_REMEMBERED: Final = 16
"""Sets of ways that are not taken for which it is kept what is so on the others."""


class Openings:
    """The instructions of one function that may change what its variables hold."""

    def __init__(self, code: CodeType, names: Iterable[str]) -> None:
        listing = Listing(code)
        self._bits: Final = {name: 1 << index for index, name in enumerate(names)}
        self._effects: Final = self._read(listing)
        self._flow: Final = Flow(listing, self._effects)
        self._entry: Final = listing.offsets[0]
        self._from_entry: Final[dict[Ways, Ahead]] = {}

    def open_at(
        self, among: Iterable[str], offset: int, since: int | None, never: Ways, is_calling: bool
    ) -> frozenset[str]:
        """The variables that what they hold may have been changed through before an instruction.

        Coming from the entry, or from where no variable had been a way; where the instruction
        ``is_calling`` something, what it does counts as well.
        """
        if since is None:
            ahead = self._ahead_of_entry(never)
        else:
            ahead = self._flow.ahead(since, never=never, until=offset)
        bits = ahead.bits_at(offset)
        if is_calling and offset in self._effects:
            bits |= self._effects[offset].new
        return frozenset(name for name in among if bits & self._bits[name])

    def _ahead_of_entry(self, never: Ways) -> Ahead:
        known = self._from_entry.get(never)
        if known is None:
            if len(self._from_entry) >= _MOST_REMEMBERED:
                self._from_entry.clear()
            known = self._from_entry[never] = self._flow.ahead(self._entry, never=never)
        return known

    def _read(self, listing: Listing) -> dict[int, Effect]:
        effects: dict[int, Effect] = {}
        for step in listing.steps:
            if step.kind in BINDING and step.value in self._bits:
                _add(effects, step.offset, Effect(self._bits[step.value], 0))
        for name, offset in _openings_in(listing):
            if name in self._bits:
                _add(effects, offset, Effect(0, self._bits[name]))
        return effects


def _add(effects: dict[int, Effect], offset: int, effect: Effect) -> None:
    known = effects.get(offset, Effect(0, 0))
    effects[offset] = Effect(known.cleared | effect.cleared, known.new | effect.new)


def _openings_in(listing: Listing) -> Iterator[tuple[str, int]]:
    """The variables that are ways to change what they hold, and the instructions that may do so.

    That is the next one that does anything with the value; where an error in that would be handled,
    the one that loads it.
    """
    for index, step in enumerate(listing.steps):
        if step.kind is Kind.LOAD and not _only_reads(listing.steps[index + 1 : index + 3]):
            later = (listing.steps[place] for place in range(index + 1, len(listing.steps)))
            used = next((each for each in later if each.kind not in _HARMLESS), step)
            is_handled = any(each.start <= used.offset < each.end for each in listing.handlers)
            yield step.value, step.offset if is_handled else used.offset
            if used.kind in _STORING:
                yield from _stored(listing.steps[listing.steps.index(used, index) :])


def _stored(steps: list[Step]) -> Iterator[tuple[str, int]]:
    """The variables of which one gets the value: it has two names then."""
    for step in steps:
        if step.kind is Kind.STORE:
            yield step.value, step.offset
        elif step.kind not in _HARMLESS | _STORING:
            return


def _only_reads(steps: list[Step]) -> bool:
    kinds = [step.kind for step in steps]
    if kinds[:1] == [Kind.READ]:
        return True
    return kinds[1:] == [Kind.ITEM] and kinds[0] in (Kind.CONSTANT, Kind.LOAD)
