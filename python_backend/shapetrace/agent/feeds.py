"""What is on its way from the program's threads to the server, and what the server knows."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic

from shapetrace.transport.history import History
from shapetrace.transport.requested import Item, Limits, RequestedName

_NEVER: Final = object()


class Feed(Generic[Item]):
    """Items that the program's threads add and our own thread takes.

    The first and the last of each name are kept, for a server that comes anew. Beside them it knows
    what the server was told last, of all that is told only when it changes.
    """

    def __init__(self, most_waiting: int, most_at_once: int, kept: Limits, **known: object) -> None:
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
        self.names: Final[list[RequestedName]] = []
        """All names; their numbers grow. Filled on the program's threads."""
        self._names_told = 0

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

    def news(self, now: Callable[[], dict[str, object]]) -> dict[str, Any]:
        """The next items and new names, and what the server was not told of what is true now.

        By the fields of ``RequestedNews``; empty where there is nothing to tell.
        """
        items = self.take()
        # Behind the items: each name is told before the first of its.
        names = self.names[self._names_told :]
        self._names_told += len(names)
        told = self._told
        news = {name: value for name, value in now().items() if told.get(name, _NEVER) != value}
        told.update(news)
        if not (items or names or news):
            return {}
        return {**news, "names": tuple(names), "items": tuple(items)}

    def begin_anew(self) -> None:
        """Tell another server everything, first the items that were kept."""
        self._told = dict(self._granted)
        self._names_told = 0
        self._again = deque(item for kept in self._kept.values() for item in kept)

    def forget(self) -> None:
        """Tell nothing of what there is: it is of the process that this one was forked from."""
        self._kept.clear()
        self._ordinals.clear()
        self._waiting.clear()
        self.begin_anew()
