"""Captured values with the iteration and rank of each, and rounds of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Mode = Literal["train", "eval"]


@dataclass(slots=True)
class ResultEntry:
    """The values of one path: the n-th was captured in the n-th iteration, on the n-th rank.

    Callbacks may change the lists in place; where they have stacked the values there is one value,
    and the iterations and ranks are still those of its rows.
    """

    iterations: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def extend(self, other: ResultEntry) -> None:
        """Append what another entry holds."""
        self.iterations.extend(other.iterations)
        self.ranks.extend(other.ranks)
        self.values.extend(other.values)


@dataclass(slots=True)
class Round:
    """What one rank captured between two gathers.

    Rounds of several ranks belong together where mode and number are the same. The numbers of one
    mode increase; they need not be consecutive.
    """

    number: int
    rank: int
    mode: Mode
    entries: dict[str, ResultEntry]


def join(rounds: Iterable[Round]) -> dict[str, ResultEntry]:
    """The entries of several rounds as one, block after block in the order given."""
    joined: dict[str, ResultEntry] = {}
    for round in rounds:
        for name, entry in round.entries.items():
            into = joined.setdefault(name, ResultEntry())
            into.extend(entry)
            # Entries without ranks are of the round's own rank.
            missing = len(into.iterations) - len(into.ranks)
            into.ranks.extend([round.rank] * missing)
    return joined
