"""Watched variables: which are wanted, and what can be watched."""

from dataclasses import dataclass
from typing import Final

from shapetrace.server.messages.declarations import (
    ClientNotification,
    NonEmptyStr,
    Request,
    ServerNotification,
)
from shapetrace.server.messages.document_places import DocumentPosition


@dataclass(frozen=True, slots=True)
class WantedWatches:
    """The variables to watch from now on; no others are watched."""

    names: tuple[NonEmptyStr, ...]


@dataclass(frozen=True, slots=True)
class Watchable:
    """The variable at a place of a document."""

    name: str
    """As the source writes it; empty where there is nothing that can be watched."""
    function: str
    """The qualified name of the function around it; empty at the level of the module."""


@dataclass(frozen=True, slots=True)
class WatchToCheck:
    """A variable that is being typed."""

    name: str


@dataclass(frozen=True, slots=True)
class CheckedWatch:
    """Why a variable cannot be watched; None where it can."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class WatchProblem:
    """Why nothing is known of a watched variable."""

    session: str
    name: str
    """Empty where the problem is not about a single variable."""
    message: str


WANT_WATCHES: Final = ClientNotification("shapetrace/wantWatches", WantedWatches)
WATCH_AT: Final = Request("shapetrace/watchAt", DocumentPosition, Watchable)
CHECK_WATCH: Final = Request("shapetrace/checkWatch", WatchToCheck, CheckedWatch)

WATCH_PROBLEM: Final = ServerNotification("shapetrace/watchProblem", WatchProblem)
"""Sent when no program of a session has a variable that is watched."""
