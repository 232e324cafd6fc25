"""Debug sessions: opening and closing them, and what their processes are doing."""

from dataclasses import dataclass
from types import NoneType
from typing import Final, Literal, TypeAlias

from shapetrace.server.messages.declarations import (
    ClientNotification,
    Empty,
    NonEmptyStr,
    NonNegativeInt,
    Request,
    ServerNotification,
)

SessionMode: TypeAlias = Literal["debug", "forwardPass"]
"""Whether a whole debug run is recorded, or the program ends after one forward pass."""

SessionState: TypeAlias = Literal[
    "connected",
    "waiting",
    "recording",
    "settled",
    "complete",
    "noForward",
    "unsupported",
    "failed",
    "gone",
]
"""The state of a process of a session."""

ExportFormat: TypeAlias = Literal["json", "markdown", "tree", "listing"]
"""How a trace is written to a file."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Asks the server to expect the processes of a debug session."""

    session: NonEmptyStr
    name: NonEmptyStr
    mode: SessionMode
    token: NonEmptyStr | None = None
    """The token that the session had before the server was restarted."""
    port: int | None = None
    """The port that the session had before the server was restarted."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """Where the processes of a session are to connect, and with which token."""

    port: int
    token: str


@dataclass(frozen=True, slots=True)
class SessionReference:
    """A debug session by its id."""

    session: NonEmptyStr


@dataclass(frozen=True, slots=True)
class EvaluationReference:
    """An expression that is evaluated at a stop, by the number that the extension gave it."""

    session: NonEmptyStr
    number: NonNegativeInt


@dataclass(frozen=True, slots=True)
class ProcessesTold:
    """How many processes a command was sent to."""

    processes: int


@dataclass(frozen=True, slots=True)
class Export:
    """Asks for a trace to be written to a file."""

    path: NonEmptyStr
    format: ExportFormat
    session: NonEmptyStr | None = None
    """The session whose trace it is; None for the newest one that recorded anything."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The written file. If nothing was recorded, there is no file."""

    path: str
    ops: int
    modules: int


@dataclass(frozen=True, slots=True)
class ShowHints:
    """Whether this window shows hints."""

    visible: bool


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a process of a session; without a process, of the session itself."""

    session: str
    process: int | None
    state: SessionState
    message: str = ""
    python: str | None = None
    """The version of Python that the process runs in."""
    torch: str | None = None
    """The version of torch that the process has imported."""
    passes: int = 0
    """How many forward passes were recorded."""
    calls: int = 0
    """How many calls were recorded."""
    dropped: int = 0
    """How many messages the process left out, because the server did not keep up."""
    rank: int | None = None
    """The rank of the process in a distributed run."""


OPEN_SESSION: Final = Request("shapetrace/openSession", OpenSession, OpenedSession)
CLOSE_SESSION: Final = Request("shapetrace/closeSession", SessionReference, NoneType)

WAKE: Final = Request("shapetrace/wake", SessionReference, ProcessesTold)
"""Has the processes of a session record again what they had stopped recording."""

CANCEL_EVALUATION: Final = Request(
    "shapetrace/cancelEvaluation", EvaluationReference, ProcessesTold
)
CLEAR: Final = Request("shapetrace/clear", Empty, NoneType)
"""Forgets everything that was recorded."""

EXPORT: Final = Request("shapetrace/export", Export, Exported)
SHOW_HINTS: Final = ClientNotification("shapetrace/showHints", ShowHints)

STATUS: Final = ServerNotification("shapetrace/status", Status)
"""Sent whenever the state of a process changes."""
