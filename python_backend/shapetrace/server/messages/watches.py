"""The messages between the extension and the server about watched variables.

As those of ``protocol``, with ``extension/src/watchProtocol.ts`` on the other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shapetrace.server.messages.codec import any_text_in, object_of, texts_in

WANT_WATCHES: Final = "shapetrace/wantWatches"
WATCH_AT: Final = "shapetrace/watchAt"
CHECK_WATCH: Final = "shapetrace/checkWatch"
WATCH_PROBLEM: Final = "shapetrace/watchProblem"


@dataclass(frozen=True, slots=True)
class WantedWatches:
    """What is to be watched from now on, and nothing else."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Watchable:
    """What is at a place of a document."""

    name: str
    """As it is written there; empty where there is nothing that can be watched."""
    function: str
    """The function that the place is in, as a name begins with that means only this one; empty
    at the level of the module."""


@dataclass(frozen=True, slots=True)
class WatchToCheck:
    """Something that somebody is typing."""

    name: str


@dataclass(frozen=True, slots=True)
class CheckedWatch:
    """What is wrong with it; None where it can be watched."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class WatchProblem:
    """Why there is nothing of a name."""

    session: str
    name: str
    message: str


def read_wanted(params: object) -> WantedWatches:
    """The parameters of ``shapetrace/wantWatches``."""
    return WantedWatches(texts_in(object_of(params), "names"))


def read_watch_to_check(params: object) -> WatchToCheck:
    """The parameters of ``shapetrace/checkWatch``."""
    return WatchToCheck(any_text_in(object_of(params), "name"))
