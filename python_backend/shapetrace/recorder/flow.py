"""What may be so at one instruction of a function after the program was at another.

Each thing that may be so is one bit of a number. An instruction clears bits and then sets others; a
bit is set somewhere if it is on any way there, errors included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from shapetrace.recorder.steps import Listing


class Effect(NamedTuple):
    """The bits that an instruction clears, and those that it then sets. It cannot fail."""

    cleared: int
    new: int


Ways: TypeAlias = frozenset[tuple[int, int]]
"""Ways from a branch to the instruction that comes next, by their offsets."""

_NO_EFFECT: Final = Effect(0, 0)


class _Block(NamedTuple):
    """Instructions that run one after the other, of which only the last has an effect."""

    last: int
    """The offset of the last one."""
    effect: Effect
    following: tuple[int, ...]
    handlers: tuple[int, ...]
    """Where the program goes on if one fails, which is before the effect."""


class Flow:
    """The ways through one function, and what happens on them."""

    def __init__(self, listing: Listing, effects: Mapping[int, Effect]) -> None:
        self._blocks: Final[dict[int, _Block]] = {}
        self._starts: Final = sorted(_starts(listing, effects))
        self._back: Final = sorted(_ways_back(listing), key=lambda way: way[1])
        for index, start in enumerate(self._starts):
            is_last = index + 1 == len(self._starts)
            last = listing.before(None if is_last else self._starts[index + 1])
            self._blocks[start] = _Block(
                last,
                effects.get(last, _NO_EFFECT),
                listing.following[last],
                tuple(each.target for each in listing.handlers if each.start <= start < each.end),
            )

    def ahead(
        self, since: int, bits: int = 0, never: Ways = frozenset(), until: int | None = None
    ) -> Ahead:
        """What may be so after the instruction at ``since``, if ``bits`` were so before it.

        The ways in ``never`` are not taken. If ``until`` is given, only that one is asked about.
        """
        entered: dict[int, int] = {}
        first = self.block_of(since)
        before_first: int | None = bits
        furthest = self._starts[-1] if until is None else self._furthest_back_to(until)
        # In the order of the code, most blocks are looked at once.
        waiting = [first]
        while waiting:
            start = heappop(waiting)
            before = entered[start] if before_first is None else before_first
            before_first = None
            last, effect, following, handlers = self._blocks[start]
            after = before & ~effect.cleared | effect.new
            ways = [(block, after) for block in following if (last, block) not in never]
            ways += [(block, before) for block in handlers]
            for block, there in ways:
                old = entered.get(block)
                if block <= furthest and (old is None or there & ~old):
                    entered[block] = there | (old or 0)
                    if block not in waiting:
                        heappush(waiting, block)
        return Ahead(self, since, bits, entered)

    def repeats(self, offset: int) -> bool:
        """Whether the program may come to an instruction again in one run of the function."""
        if not any(target <= offset <= source for source, target in self._back):
            return False
        return self.block_of(offset) in self.ahead(offset, until=offset).entered

    def _furthest_back_to(self, offset: int) -> int:
        """The last instruction from which there may be a way to an earlier or the same one."""
        furthest = offset
        for source, target in self._back:
            if target <= furthest < source:
                furthest = source
        return furthest

    def block_of(self, offset: int) -> int:
        """Where the block begins that an instruction is in."""
        return self._starts[bisect_right(self._starts, offset) - 1]


class Ahead(NamedTuple):
    """Where the program may come from an instruction on."""

    flow: Flow
    since: int
    bits: int
    entered: dict[int, int]
    """What may be so at the beginning of each block that it may come to."""

    def may_reach(self, offset: int) -> bool:
        """Whether the program may come to an instruction."""
        return self.flow.block_of(offset) in self.entered or self._is_in_same_block(offset)

    def bits_at(self, offset: int) -> int:
        """What may be so before an instruction.

        It may be the one that the program came from, which then need not have run.
        """
        found = self.entered.get(self.flow.block_of(offset), 0)
        return found | self.bits if self._is_in_same_block(offset) else found

    def _is_in_same_block(self, offset: int) -> bool:
        return self.since <= offset and self.flow.block_of(self.since) == self.flow.block_of(offset)


def _ways_back(listing: Listing) -> Iterator[tuple[int, int]]:
    """The ways to an earlier instruction, without which nothing is repeated."""
    for source, targets in listing.following.items():
        yield from ((source, target) for target in targets if target <= source)
    for handler in listing.handlers:
        if handler.target <= handler.end:
            yield handler.end, handler.target


def _starts(listing: Listing, effects: Iterable[int]) -> set[int]:
    """Where blocks begin: where ways join or part, behind an effect, where handlers change."""
    starts = {listing.offsets[0], *listing.joins}
    for handler in listing.handlers:
        starts.update((handler.start, handler.end))
    with_effect = frozenset(effects)
    for offset, behind in zip(listing.offsets, listing.offsets[1:], strict=False):
        if offset in with_effect or listing.following[offset] != (behind,):
            starts.add(behind)
    return starts.intersection(listing.offsets)
