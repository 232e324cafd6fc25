"""Which rounds of several ranks belong together, and when all of one have come. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from shapetrace.capture.results import Mode, ResultEntry, Round, join

Key = tuple[Mode, int]


class RoundOrder:
    """Puts rounds together in rank 0's order.

    A rank is past a round when it has delivered it, or one that rank 0 had later: a rank that does
    not evaluate has no such round to wait for. What comes late goes out with the next round.
    """

    def __init__(self, world_size: int) -> None:
        self._own: deque[Round] = deque()
        self._others: list[deque[tuple[Round, int]]] = [deque() for _ in range(world_size)]
        """By rank, what has come from it and has not gone out, with sizes."""
        self._newest: list[dict[Mode, int]] = [{} for _ in range(world_size)]
        self._released: dict[Mode, int] = {}
        self._own_sizes: deque[int] = deque()
        self.late: set[int] = set()
        """Ranks of which a round has come after the others' had gone out."""

    def add(self, round: Round, size: int = 0) -> None:
        """Take a round, of so many bytes."""
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
        """How many bytes of a rank have not gone out yet."""
        return sum(self._own_sizes) if rank == 0 else sum(size for _, size in self._others[rank])

    def newest(self, rank: int) -> str:
        """Which round of a rank came last, for people."""
        known = self._newest[rank]
        if not known:
            return "before its first round"
        return "after round " + " and ".join(f"{number} ({mode})" for mode, number in known.items())

    def behind(self, ranks: Iterable[int]) -> list[int]:
        """Those of the ranks that are not past the first round that is held."""
        return [rank for rank in ranks if self._own and not self._is_past(rank)]

    def complete(self, waited_for: Iterable[int]) -> list[dict[str, ResultEntry]]:
        """The rounds that all of these ranks are past; they go out with this."""
        waited_for = list(waited_for)
        gathered = []
        while self._own and not self.behind(waited_for):
            gathered += self._release()
        return gathered

    def force(self) -> list[dict[str, ResultEntry]]:
        """The first round that is held, complete or not, and what goes before it."""
        if self._own:
            return self._release()
        firsts = [rounds[0][0] for rounds in self._others if rounds]
        if not firsts:
            return []
        # The lowest number of the mode that the lowest rank goes on with.
        mode = firsts[0].mode
        number = min(round.number for round in firsts if round.mode == mode)
        return [self._joined([], (mode, number))]

    def rest(self) -> list[dict[str, ResultEntry]]:
        """Everything that is held, and rounds that rank 0 does not have at the end."""
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
        """What ranks had before this round that rank 0 did not have: rounds by themselves."""
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
