"""Comparing two traces."""

from dataclasses import dataclass
from typing import Final

from shapetrace.server.messages.declarations import NonEmptyStr, Request


@dataclass(frozen=True, slots=True)
class Compare:
    """Which traces to compare: files, or None for what the newest session recorded."""

    a: NonEmptyStr | None
    b: NonEmptyStr | None

    def __post_init__(self) -> None:
        if self.a is None and self.b is None:
            raise ValueError("one of a and b must name a file")


@dataclass(frozen=True, slots=True)
class ComparedPlace:
    """A line of a source file, counted from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """One difference."""

    kind: str
    title: str
    """The module and the call."""
    detail: str
    """One difference."""
    left: int
    """The line in the left text, from 0."""
    right: int
    """The line in the right text, from 0."""
    a: ComparedPlace | None
    b: ComparedPlace | None


@dataclass(frozen=True, slots=True)
class Compared:
    """The differences between two traces."""

    left: str
    """Trace A as text, one line for each call; calls that are alike are equal lines in both."""
    right: str
    """Trace B as text."""
    differences: tuple[ComparedCall, ...]
    first: int | None
    """The index of the first difference that matters."""
    summary: str


COMPARE: Final = Request("shapetrace/compare", Compare, Compared)
