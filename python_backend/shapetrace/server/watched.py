"""What one process has told of watched variables, as far as it is kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from shapetrace.events.model import Value
from shapetrace.transport.history import History
from shapetrace.transport.watches import (
    MOST_FIRST,
    MOST_LAST,
    RunningCall,
    WatchedChange,
    WatchNews,
)

Kept = TypeVar("Kept", bound=Hashable)

MOST_NAMES: Final = 500
MOST_VALUES: Final = 16
"""Values of one variable on one line that are told apart."""


class Timeline(History[WatchedChange]):
    """The first and the last changes of one name, and how many there were."""

    def __init__(self, text: str) -> None:
        super().__init__(MOST_FIRST, MOST_LAST)
        self.text: Final = text
        """The name that was asked for."""

    def add_new(self, change: WatchedChange) -> bool:
        """Take a change, unless it is known already or was cleared away."""
        is_new = change.ordinal > self.last
        if is_new:
            self.add(change)
        return is_new


@dataclass(slots=True)
class Watched:
    """The watched variables of one process."""

    names: tuple[str, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)
    """Why there is nothing of which name."""
    timelines: dict[int, Timeline] = field(default_factory=dict)
    running: dict[int, RunningCall] = field(default_factory=dict)

    @property
    def has_any(self) -> bool:
        """Whether anything was watched, or is to be."""
        return bool(self.names)

    def add(self, news: WatchNews) -> list[WatchedChange]:
        """Take what a process has told; the changes that were not known."""
        if news.names is not None:
            self.names = news.names
        if news.problems is not None:
            self.problems = news.problems
        if news.running is not None:
            self.running = {each.call: each for each in news.running}
        return [change for change in news.changes if self._add(change)]

    def clear(self) -> None:
        """Forget what was told of changes."""
        for timeline in self.timelines.values():
            timeline.clear()

    def _add(self, change: WatchedChange) -> bool:
        timeline = self.timelines.get(change.name)
        if timeline is None:
            if change.name >= len(self.names) or len(self.timelines) >= MOST_NAMES:
                return False
            timeline = self.timelines[change.name] = Timeline(self.names[change.name])
        return timeline.add_new(change)


@dataclass(slots=True)
class WatchedLine:
    """What a variable was on one line, of all processes that ran it."""

    name: str
    latest: WatchedChange
    process: int
    """The number of the process that the latest is of."""
    befores: dict[Value | None, None] = field(default_factory=dict)
    """The values it had before, the latest last; None where it had none."""
    afters: dict[Value, None] = field(default_factory=dict)
    recent: deque[WatchedChange] = field(default_factory=lambda: deque(maxlen=MOST_VALUES))
    count: int = 0

    def add(self, process: int, change: WatchedChange) -> None:
        """Take a change."""
        event = change.event
        self.latest, self.process = change, process
        self.count += 1
        self.recent.append(change)
        before = None if event.before is None else event.before.value
        _put_last(self.befores, before)
        _put_last(self.afters, event.after.value)


def _put_last(values: dict[Kept, None], value: Kept) -> None:
    values.pop(value, None)
    values[value] = None
    if len(values) > MOST_VALUES:
        del values[next(iter(values))]
