"""What is on its way from the program's threads to the server, and what the server knows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

Item = TypeVar("Item")

_NEVER: Final = object()


class Feed(Generic[Item]):
    """Items that the program's threads add and our own thread takes.

    Beside them it knows what the server was told last, of all that is told only when it changes.
    """

    def __init__(self, most_waiting: int, most_at_once: int, **known: object) -> None:
        """Keep so many items, the newest; ``known`` is what a server takes for granted."""
        self._waiting: deque[Item] = deque(maxlen=most_waiting)
        self._again: deque[Item] = deque()
        """What another server was told already."""
        self._most_at_once = most_at_once
        self._granted = known
        self._told = dict(known)

    def add(self, item: Item) -> None:
        """Have an item told. Called on the program's threads."""
        self._waiting.append(item)

    def take(self, keep: Callable[[Item], object]) -> list[Item]:
        """The next items to tell; ``keep`` is called with those that were never told."""
        taken: list[Item] = []
        while len(taken) < self._most_at_once:
            if self._again:
                taken.append(self._again.popleft())
                continue
            try:
                item = self._waiting.popleft()
            except IndexError:
                break
            keep(item)
            taken.append(item)
        return taken

    def changed(self, **now: object) -> dict[str, Any]:
        """Those of these that the server was not told, which it will be."""
        news = {name: value for name, value in now.items() if self._told.get(name, _NEVER) != value}
        self._told.update(news)
        return news

    def begin_anew(self, kept: Iterable[Item]) -> None:
        """Tell another server everything, first the items that were kept."""
        self._told = dict(self._granted)
        self._again = deque(kept)

    def forget(self) -> None:
        """Tell nothing of what there is: it is of the process that this one was forked from."""
        self.begin_anew(())
        self._waiting.clear()
