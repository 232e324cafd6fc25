"""How many values there were, and of which iterations."""

from __future__ import annotations

from collections.abc import Sequence

from shapetrace.capture.entries import Row


class Counted:
    """How many values of which iterations."""

    def __init__(self) -> None:
        self.values = 0
        self._first: int | None = None
        self._last: int | None = None

    def add(self, rows: Sequence[Row]) -> None:
        """Count some more."""
        self.values += len(rows)
        numbers = [number for row in rows for number in row.iterations]
        if numbers:
            self._first = min(numbers if self._first is None else (self._first, *numbers))
            self._last = max(numbers if self._last is None else (self._last, *numbers))

    def remove(self, rows: Sequence[Row]) -> None:
        """Count some less."""
        self.values -= len(rows)

    def join(self, other: Counted) -> None:
        """Count what another has counted."""
        self.values += other.values
        firsts = [number for number in (self._first, other._first) if number is not None]
        lasts = [number for number in (self._last, other._last) if number is not None]
        self._first = min(firsts, default=None)
        self._last = max(lasts, default=None)

    def text(self) -> str:
        """``12 values (iterations 9–12)``."""
        noun = "value" if self.values == 1 else "values"
        if self._first is None:
            return f"{self.values:,} {noun}"
        if self._first == self._last:
            return f"{self.values:,} {noun} (iteration {self._first})"
        return f"{self.values:,} {noun} (iterations {self._first}–{self._last})"
