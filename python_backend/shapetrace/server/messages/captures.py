"""Captured values: which are wanted, and by which paths."""

from dataclasses import dataclass
from typing import Final

from shapetrace.server.messages.declarations import (
    ClientNotification,
    NonEmptyStr,
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
class CapturePathsQuestion:
    """Asks for the paths of what a node of the trace tree made, or of what is at a position."""

    node: NonEmptyStr | None = None
    position: DocumentPosition | None = None

    def __post_init__(self) -> None:
        if (self.node is None) == (self.position is None):
            raise ValueError("either node or position must be given")


@dataclass(frozen=True, slots=True)
class CapturePath:
    """One path of a value."""

    path: str
    description: str


@dataclass(frozen=True, slots=True)
class CapturePaths:
    """All paths of a value, the likeliest first."""

    name: str
    """The value's name in the source; empty where there is nothing to capture."""
    paths: tuple[CapturePath, ...]


WANT_CAPTURES: Final = ClientNotification("shapetrace/wantCaptures", WantedRequests)
CAPTURE_PATHS: Final = Request("shapetrace/capturePaths", CapturePathsQuestion, CapturePaths)
CHECK_PATH: Final = Request("shapetrace/checkPath", RequestToCheck, CheckedRequest)

CAPTURE_PROBLEM: Final = ServerNotification("shapetrace/captureProblem", RequestProblem)
"""Sent when a program has nothing that a path could mean."""
