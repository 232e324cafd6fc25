"""The messages between the extension and the server about two traces.

As those of ``protocol``, with ``extension/src/compareProtocol.ts`` on the other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shapetrace.server.messages.codec import MessageError, object_of, optional_text_in

COMPARE: Final = "shapetrace/compare"


@dataclass(frozen=True, slots=True)
class Compare:
    """Which traces to compare."""

    a: str | None
    """A trace file; None for what was recorded in the newest session."""
    b: str | None


@dataclass(frozen=True, slots=True)
class ComparedPlace:
    """A line of the source that ran, from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """One difference."""

    kind: str
    title: str
    """The module and the call."""
    detail: str
    """What differs."""
    left: int
    """The line in either text, from 0."""
    right: int
    a: ComparedPlace | None
    b: ComparedPlace | None


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs between two runs."""

    left: str
    """A as text, with a line for each call; equal to that of B where they are alike."""
    right: str
    differences: tuple[ComparedCall, ...]
    first: int | None
    """Which of them is the first that matters."""
    summary: str


def read_compare(params: object) -> Compare:
    """The parameters of ``shapetrace/compare``."""
    given = object_of(params)
    read = Compare(optional_text_in(given, "a"), optional_text_in(given, "b"))
    if read.a is None and read.b is None:
        raise MessageError("one of a and b must name a file")
    return read
