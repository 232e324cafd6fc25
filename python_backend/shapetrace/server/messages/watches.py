"""Watched variables: which are wanted, and what can be watched."""

from dataclasses import dataclass
from typing import Final

from shapetrace.server.messages.declarations import (
    ClientNotification,
    Request,
    ServerNotification,
)
from shapetrace.server.messages.document_places import DocumentPosition
from shapetrace.server.messages.requested import (
    CheckedRequest,
    RequestProblem,
    RequestToCheck,
    WantedRequests,
)


@dataclass(frozen=True, slots=True)
class Watchable:
    """The variable at a place of a document."""

    name: str
    """As the source writes it; empty where there is nothing that can be watched."""
    function: str
    """The qualified name of the function around it; empty at the level of the module."""


WANT_WATCHES: Final = ClientNotification("shapetrace/wantWatches", WantedRequests)
WATCH_AT: Final = Request("shapetrace/watchAt", DocumentPosition, Watchable)
CHECK_WATCH: Final = Request("shapetrace/checkWatch", RequestToCheck, CheckedRequest)

WATCH_PROBLEM: Final = ServerNotification("shapetrace/watchProblem", RequestProblem)
"""Sent when no program of a session has a variable that is watched."""
