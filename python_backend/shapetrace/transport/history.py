"""The first and the last items of one name, which agent and server both keep."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar


class Numbered(Protocol):
    """One of several messages about a name."""

    @property
    def ordinal(self) -> int:
        """Position among the items of the name, from 1."""


Item = TypeVar("Item", bound=Numbered)


class History(Generic[Item]):
    """The first and the last items of one name; those in between are counted."""

    def __init__(self, most_first: int, most_last: int) -> None:
        self.first: Final[list[Item]] = []
        self.latest: Final[deque[Item]] = deque(maxlen=most_last)
        self.last = 0
        """The ordinal of the newest item."""
        self.cleared = 0
        """The ordinal of the newest item that was cleared away."""
        self._most_first = most_first

    def __iter__(self) -> Iterator[Item]:
        """The items that are kept, in their order."""
        yield from self.first
        yield from self.latest

    @property
    def total(self) -> int:
        """How many items there were since it was cleared."""
        return self.last - self.cleared

    @property
    def left_out(self) -> int:
        """How many are not kept, between the first and the last ones."""
        return self.total - len(self.first) - len(self.latest)

    def add(self, item: Item) -> None:
        """Keep an item."""
        self.last = max(self.last, item.ordinal)
        follows = item.ordinal - self.cleared == len(self.first) + 1
        (self.first if follows and len(self.first) < self._most_first else self.latest).append(item)

    def clear(self) -> None:
        """Forget the items that there are."""
        self.first.clear()
        self.latest.clear()
        self.cleared = self.last
