"""What one process has sent of captured values or watched variables, as far as it is kept."""

from __future__ import annotations

from typing import Final, Generic

from shapetrace.transport.history import History
from shapetrace.transport.requested import Item, Limits, RequestedName, RequestedNews

MOST_NAMES: Final = 2_000
"""Names of one process that are kept. Agents tell of fewer."""


class KeptName(History[Item]):
    """The first and the last items of one name, and how many there were."""

    def __init__(self, about: RequestedName, limits: Limits) -> None:
        super().__init__(*limits)
        self.about: Final = about

    def add_new(self, item: Item) -> bool:
        """Take an item, unless it is known already or was cleared away."""
        is_new = item.ordinal > self.last
        if is_new:
            self.add(item)
        return is_new


class Requested(Generic[Item]):
    """The items of one process, by name."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.requests: tuple[str, ...] = ()
        self.problems: dict[str, str] = {}
        """Why there is nothing of which request."""
        self.names: dict[int, KeptName[Item]] = {}

    def add(self, news: RequestedNews[Item]) -> list[Item]:
        """Add what a process has sent; the items that were not known."""
        if news.requests is not None:
            self.requests = news.requests
        if news.problems is not None:
            self.problems = news.problems
        for about in news.names:
            if about.number not in self.names and len(self.names) < MOST_NAMES:
                self.names[about.number] = KeptName(about, self._limits)
        return [item for item in news.items if self._add(item)]

    def _add(self, item: Item) -> bool:
        kept = self.names.get(item.name)
        return kept is not None and kept.add_new(item)

    def clear(self) -> None:
        """Forget the items. Names are sent only once, and needed for items to come."""
        for kept in self.names.values():
            kept.clear()
