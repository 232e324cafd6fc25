"""Matches rounds of several ranks, and decides when one is complete. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from shapetrace.capture.results import Mode, ResultEntry, Round, join

Key = tuple[Mode, int]


class RoundOrder:
    """Matches rounds in rank 0's order.

    A rank is past a round when it has delivered it, or one that rank 0 had later: a rank that does
    not evaluate has no such round. Late rounds are released with the next one.
    """

    def __init__(self, world_size: int) -> None:
        self._own: deque[Round] = deque()
        self._others: list[deque[tuple[Round, int]]] = [deque() for _ in range(world_size)]
        """Rounds by rank that have arrived and were not released, with sizes."""
        self._newest: list[dict[Mode, int]] = [{} for _ in range(world_size)]
        self._released: dict[Mode, int] = {}
        self._own_sizes: deque[int] = deque()
        self.late: set[int] = set()
        """Ranks with a round that arrived after the others' was released."""

    def add(self, round: Round, size: int = 0) -> None:
        """Add a round and its size in bytes."""
        newest = self._newest[round.rank]
        newest[round.mode] = max(round.number, newest.get(round.mode, round.number))
        if round.rank == 0:
            self._own.append(round)
            self._own_sizes.append(size)
            return
        self._others[round.rank].append((round, size))
        if round.number <= self._released.get(round.mode, round.number - 1):
            self.late.add(round.rank)

    def held(self, rank: int) -> int:
        """Bytes of a rank's rounds that were not released yet."""
        return sum(self._own_sizes) if rank == 0 else sum(size for _, size in self._others[rank])

    def newest(self, rank: int) -> str:
        """The last round of a rank, as text for messages."""
        known = self._newest[rank]
        if not known:
            return "before its first round"
        return "after round " + " and ".join(f"{number} ({mode})" for mode, number in known.items())

    def behind(self, ranks: Iterable[int]) -> list[int]:
        """The ranks that are not past the first held round."""
        return [rank for rank in ranks if self._own and not self._is_past(rank)]

    def complete(self, waited_for: Iterable[int]) -> list[dict[str, ResultEntry]]:
        """Release and return the rounds that all of these ranks are past."""
        waited_for = list(waited_for)
        gathered = []
        while self._own and not self.behind(waited_for):
            gathered += self._release()
        return gathered

    def force(self) -> list[dict[str, ResultEntry]]:
        """Release the first held round, complete or not, and all before it."""
        if self._own:
            return self._release()
        firsts = [rounds[0][0] for rounds in self._others if rounds]
        if not firsts:
            return []
        # The lowest round number, in the mode of the lowest rank's next round.
        mode = firsts[0].mode
        number = min(round.number for round in firsts if round.mode == mode)
        return [self._joined([], (mode, number))]

    def rest(self) -> list[dict[str, ResultEntry]]:
        """Release all rounds; those that rank 0 does not have come last."""
        gathered = []
        while entries := self.force():
            gathered += entries
        return gathered

    def _is_past(self, rank: int) -> bool:
        newest = self._newest[rank]
        return any(newest.get(round.mode, round.number - 1) >= round.number for round in self._own)

    def _release(self) -> list[dict[str, ResultEntry]]:
        own = self._own.popleft()
        self._own_sizes.popleft()
        before = [self._joined([], key) for key in self._between((own.mode, own.number))]
        return [*before, self._joined([own], (own.mode, own.number))]

    def _between(self, key: Key) -> list[Key]:
        """Earlier rounds of other ranks that rank 0 did not have, each by itself."""
        known = {key, *((round.mode, round.number) for round in self._own)}
        found: dict[Key, None] = {}
        for rounds in self._others:
            keys = [(round.mode, round.number) for round, _ in rounds]
            if key in keys:
                keys = keys[: keys.index(key)]
            else:
                keys = [other for other in keys if other[0] == key[0] and other[1] < key[1]]
            found |= dict.fromkeys(keys)
        return [
            (mode, number)
            for mode, number in found
            if (mode, number) not in known and number > self._released.get(mode, number - 1)
        ]

    def _joined(self, blocks: list[Round], key: Key) -> dict[str, ResultEntry]:
        mode, number = key
        self._released[mode] = max(number, self._released.get(mode, number))
        for rounds in self._others:
            kept: deque[tuple[Round, int]] = deque()
            for round, size in rounds:
                if round.number <= self._released.get(round.mode, round.number - 1):
                    blocks.append(round)
                else:
                    kept.append((round, size))
            rounds.clear()
            rounds.extend(kept)
        return join(blocks)
