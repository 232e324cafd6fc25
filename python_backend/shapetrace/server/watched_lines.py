"""What watched variables were on each line."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from shapetrace.events.model import Value
from shapetrace.transport.requested import WatchedChange

Kept = TypeVar("Kept", bound=Hashable)

MOST_VALUES: Final = 16
"""Values of one variable on one line that are told apart."""


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
