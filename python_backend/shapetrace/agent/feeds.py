"""What is on its way from the program's threads to the server, and what the server knows."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any, Final, Generic, Protocol, TypeVar

from shapetrace.transport.history import History, Numbered


class NamedItem(Numbered, Protocol):
    """An item of a name."""

    @property
    def name(self) -> int:
        """The number of the name."""


Item = TypeVar("Item", bound=NamedItem)

_NEVER: Final = object()


class Feed(Generic[Item]):
    """Items that the program's threads add and our own thread takes.

    The first and the last of each name are kept, for a server that comes anew. Beside them it knows
    what the server was told last, of all that is told only when it changes.
    """

    def __init__(
        self, most_waiting: int, most_at_once: int, kept: tuple[int, int], **known: object
    ) -> None:
        """Let so many items wait, the newest; ``known`` is what a server takes for granted."""
        self._waiting: deque[Item] = deque(maxlen=most_waiting)
        self._again: deque[Item] = deque()
        """What another server was told already."""
        self._most_at_once = most_at_once
        self._most_kept = kept
        self._kept: dict[int, History[Item]] = {}
        self._ordinals: dict[int, itertools.count[int]] = {}
        self._granted = known
        self._told = dict(known)

    def next_ordinal(self, name: int) -> int:
        """The position of the next item of a name, from 1. Called on the program's threads."""
        return next(self._ordinals.setdefault(name, itertools.count(1)))

    def add(self, item: Item) -> None:
        """Have an item told. Called on the program's threads."""
        self._waiting.append(item)

    def take(self) -> list[Item]:
        """The next items to tell."""
        taken: list[Item] = []
        while len(taken) < self._most_at_once:
            if self._again:
                taken.append(self._again.popleft())
                continue
            try:
                item = self._waiting.popleft()
            except IndexError:
                break
            kept = self._kept.get(item.name)
            if kept is None:
                kept = self._kept[item.name] = History(*self._most_kept)
            kept.add(item)
            taken.append(item)
        return taken

    def changed(self, **now: object) -> dict[str, Any]:
        """Those of these that the server was not told, which it will be."""
        news = {name: value for name, value in now.items() if self._told.get(name, _NEVER) != value}
        self._told.update(news)
        return news

    def begin_anew(self) -> None:
        """Tell another server everything, first the items that were kept."""
        self._told = dict(self._granted)
        self._again = deque(item for kept in self._kept.values() for item in kept)

    def forget(self) -> None:
        """Tell nothing of what there is: it is of the process that this one was forked from."""
        self._kept.clear()
        self._ordinals.clear()
        self._waiting.clear()
        self.begin_anew()
