"""What one process has captured, as far as it is kept."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from shapetrace.transport.captures import MOST_KEPT, CapturedName, CapturedValue, CaptureNews

MOST_NAMES = 2_000
"""Names of one process that are kept. Agents tell of fewer."""


@dataclass(slots=True)
class KeptName:
    """The newest values of one name, and how many there were."""

    about: CapturedName
    values: deque[CapturedValue] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    last: int = 0
    """The number of the newest value."""
    cleared: int = 0
    """The number of the newest one that was cleared away."""

    @property
    def total(self) -> int:
        """How many values there were since it was cleared."""
        return self.last - self.cleared


@dataclass(slots=True)
class Captured:
    """The captured values of one process."""

    paths: tuple[str, ...] = ()
    """What was asked for."""
    problems: dict[str, str] = field(default_factory=dict)
    """What is wrong with which path."""
    names: dict[int, KeptName] = field(default_factory=dict)

    def add(self, news: CaptureNews) -> None:
        """Take what a process has told."""
        if news.paths is not None:
            self.paths = news.paths
        if news.problems is not None:
            self.problems = news.problems
        for about in news.names:
            if about.number not in self.names and len(self.names) < MOST_NAMES:
                self.names[about.number] = KeptName(about)
        for value in news.values:
            kept = self.names.get(value.name)
            if kept is not None:
                kept.values.append(value)
                kept.last = max(kept.last, value.ordinal)

    def clear(self) -> None:
        """Forget the values. Their names are told only once, and needed for those to come."""
        for kept in self.names.values():
            kept.values.clear()
            kept.cleared = kept.last
