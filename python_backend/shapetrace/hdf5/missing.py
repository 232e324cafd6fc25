"""Counts the values that are not in the file, with iterations and reasons."""

from __future__ import annotations

from collections.abc import Sequence

from shapetrace.capture.problems import Problems, say
from shapetrace.hdf5.entries import Row


class Missing:
    """The values that could not be saved, in one line for all of them."""

    def __init__(self, problems: Problems) -> None:
        self.is_failing = False
        self._problems = problems
        self._counted = Counted()
        self._told = 0
        self._is_told = False
        self._reason = ""
        self._is_fault = False
        self._line: str | None = None

    def add(self, counted: Counted) -> None:
        """Count some more."""
        self._counted.join(counted)

    def tell_of_failure(self, file: str, reason: str, *, is_fault: bool) -> None:
        """Values could not be saved; an exception of the program's own is no fault."""
        self._reason = reason
        self._is_fault = is_fault
        if not self._counted.values:
            return
        self._keep(
            f"{file}: {reason}; {self._counted.text('is', 'are')} not saved, and saving is tried"
            " again at the next gather"
        )
        if self.is_failing:
            return
        self.is_failing = True
        # A disk that stays full is reported less and less often.
        self._is_told = self._counted.values >= 2 * self._told
        if self._is_told and self._line is not None:
            say(self._line)
            self._told = self._counted.values

    def tell_of_success(self, file: str) -> None:
        """Note that later values could be saved."""
        self.is_failing = False
        missing = self._counted.text("is", "are")
        self._keep(f"{file}: {missing} missing in it ({self._reason})")
        if self._is_told:
            say(f"{file}: saving again; {missing} missing in it")

    def _keep(self, line: str) -> None:
        self._problems.correct(self._line, line, is_fault=self._is_fault)
        self._line = line


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
        """Add the counts of another."""
        self.values += other.values
        firsts = [number for number in (self._first, other._first) if number is not None]
        lasts = [number for number in (self._last, other._last) if number is not None]
        self._first = min(firsts, default=None)
        self._last = max(lasts, default=None)

    def text(self, one: str, several: str) -> str:
        """``12 values (iterations 9–12) are``, with the verb for one or for several."""
        noun, verb = ("value", one) if self.values == 1 else ("values", several)
        if self._first is None:
            return f"{self.values:,} {noun} {verb}"
        if self._first == self._last:
            return f"{self.values:,} {noun} (iteration {self._first}) {verb}"
        return f"{self.values:,} {noun} (iterations {self._first}–{self._last}) {verb}"
