"""Issues of capturing, as values, and problems of saving, as lines that are reported once."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shapetrace._asynchronous import is_asynchronous

_MOST_LINES = 200

ProblemKind: TypeAlias = Literal["unmatched", "unfollowed", "lost", "silent"]
"""A path matches nothing in the model; functions cannot be followed; values are missing, or may be;
a path, or all of them, captured nothing."""


@dataclass(frozen=True, slots=True)
class CaptureIssue:
    """Something that a tracer does not capture, and why."""

    kind: ProblemKind
    text: str
    """The problem; of an issue of a path, without the path."""
    path: str | None = None
    """The path concerned, as the user wrote it; None if it is not about a single one."""

    def __str__(self) -> str:
        """One line for the user."""
        return self.text if self.path is None else f"{self.path!r} {self.text}"


class Problems:
    """The problems of one saver."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.has_faults = False
        """Whether there is any problem that an exception of the program's own did not cause."""
        self._told: set[Hashable] = set()

    def text(self) -> str:
        """All lines, cut to the size of an attribute in HDF5."""
        return "\n".join(self.lines)[:30_000]

    def tell(self, key: Hashable, line: str) -> None:
        """Keep a line and print it on stderr, once for each key."""
        if key in self._told or len(self._told) >= _MOST_LINES:
            return
        self._told.add(key)
        self.has_faults = True
        self.lines.append(line)
        say(line)

    def correct(self, old: str | None, new: str, *, is_fault: bool) -> None:
        """Replace a line that is no longer true."""
        self.has_faults = self.has_faults or is_fault
        if old in self.lines:
            self.lines[self.lines.index(old)] = new
        else:
            self.lines.append(new)


def say(line: str) -> None:
    """Print one line on stderr, if the program has one."""
    try:
        sys.stderr.write(f"shapetrace: {line}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        # None, or closed.
