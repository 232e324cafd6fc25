"""What one process has captured, as far as it is kept."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from shapetrace.transport.captures import MOST_KEPT, CapturedName, CapturedValue, CaptureNews
from shapetrace.transport.history import History

MOST_NAMES = 2_000
"""Names of one process that are kept. Agents tell of fewer."""


class KeptName(History[CapturedValue]):
    """The newest values of one name, and how many there were."""

    def __init__(self, about: CapturedName) -> None:
        super().__init__(0, MOST_KEPT)
        self.about = about

    @property
    def values(self) -> deque[CapturedValue]:
        """The values that are kept."""
        return self.latest


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
                kept.add(value)

    def clear(self) -> None:
        """Forget the values. Their names are told only once, and needed for those to come."""
        for kept in self.names.values():
            kept.clear()
