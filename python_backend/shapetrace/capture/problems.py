"""What could not be captured, as values; what could not be saved, in lines that are told once."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shapetrace._asynchronous import is_asynchronous

_MOST_LINES = 200

ProblemKind: TypeAlias = Literal["unmatched", "unfollowed", "lost", "silent"]
"""A path matches nothing in the model; functions cannot be followed; values are missing, or may be;
a path, or all of them, brought nothing."""


@dataclass(frozen=True, slots=True)
class CaptureIssue:
    """Something that a tracer does not capture, and why."""

    kind: ProblemKind
    text: str
    """What is wrong; where it is about a path, what is wrong with that."""
    path: str | None = None
    """The path that it is about, as the user wrote it; None where it is about no single one."""

    def __str__(self) -> str:
        """One line for the user."""
        return self.text if self.path is None else f"{self.path!r} {self.text}"


class Problems:
    """The problems of one saver."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.has_faults = False
        """Whether there is any but for what exceptions of the program's own came between."""
        self._told: set[Hashable] = set()

    def text(self) -> str:
        """All lines, as far as an attribute of an HDF5 file has room for them."""
        return "\n".join(self.lines)[:30_000]

    def tell(self, key: Hashable, line: str) -> None:
        """Keep a line and say it on stderr, unless that has been done for this key."""
        if key in self._told or len(self._told) >= _MOST_LINES:
            return
        self._told.add(key)
        self.has_faults = True
        self.lines.append(line)
        say(line)

    def correct(self, old: str | None, new: str, *, is_fault: bool) -> None:
        """Put a line in the place of one that has become untrue."""
        self.has_faults = self.has_faults or is_fault
        if old in self.lines:
            self.lines[self.lines.index(old)] = new
        else:
            self.lines.append(new)


def say(line: str) -> None:
    """Say one line on stderr, if there is one."""
    try:
        sys.stderr.write(f"shapetrace: {line}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        # None, or closed: there is nobody to tell.
