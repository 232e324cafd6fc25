"""The messages between the extension and the server that are not of the language server protocol.

``extension/src/protocol.ts`` is the other side; both are tested with the same samples in
``tests/contract/editor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias

VERSION: Final = 1
"""Of these messages. Extension and server come in one package: it is only for those who look."""

OPEN_SESSION: Final = "shapetrace/openSession"
CLOSE_SESSION: Final = "shapetrace/closeSession"
CLEAR: Final = "shapetrace/clear"
EXPORT: Final = "shapetrace/export"
WAKE: Final = "shapetrace/wake"
SHOW_HINTS: Final = "shapetrace/showHints"
STATUS: Final = "shapetrace/status"

EXPORT_FORMATS = ("json", "markdown", "tree", "listing")

ExportFormat: TypeAlias = Literal["json", "markdown", "tree", "listing"]


class MessageError(ValueError):
    """Parameters that are not what the message is to have."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Expect processes of a debug session."""

    session: str
    name: str
    mode: str
    token: str | None = None
    port: int | None = None
    """Token and port are given where the session was open before the server was restarted."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """Where the processes of a session are to connect, and with which token."""

    port: int
    token: str


@dataclass(frozen=True, slots=True)
class SessionReference:
    """A debug session: one that is over, or one that is to be woken."""

    session: str


@dataclass(frozen=True, slots=True)
class Export:
    """Write a trace to a file."""

    path: str
    format: ExportFormat
    session: str | None = None
    """None for the newest that recorded anything."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written. Where nothing had been recorded, no file was."""

    path: str
    ops: int
    modules: int


@dataclass(frozen=True, slots=True)
class Woken:
    """How many processes were told."""

    processes: int


@dataclass(frozen=True, slots=True)
class ShowHints:
    """Whether hints are to be seen in this window."""

    visible: bool


@dataclass(frozen=True, slots=True)
class Status:
    """Where a process of a session stands."""

    session: str
    process: int | None
    state: str
    message: str = ""
    python: str | None = None
    torch: str | None = None
    passes: int = 0
    calls: int = 0
    dropped: int = 0
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Initialization:
    """What the extension says at the start."""

    storage: str | None
    """A folder to keep what was recorded in."""
    settings: Any
    """As ``read_options`` takes them."""


def read_open_session(params: object) -> OpenSession:
    """The parameters of ``shapetrace/openSession``."""
    given = _object(params)
    return OpenSession(
        session=_text(given, "session"),
        name=_text(given, "name"),
        mode=_text(given, "mode"),
        token=_optional_text(given, "token"),
        port=_optional_number(given, "port"),
    )


def read_session(params: object) -> SessionReference:
    """The parameters of ``shapetrace/closeSession`` and ``shapetrace/wake``."""
    return SessionReference(_text(_object(params), "session"))


def read_export(params: object) -> Export:
    """The parameters of ``shapetrace/export``."""
    given = _object(params)
    form = given.get("format")
    if form not in EXPORT_FORMATS:
        raise MessageError(f"format must be one of {', '.join(EXPORT_FORMATS)}")
    return Export(_text(given, "path"), form, _optional_text(given, "session"))


def read_show_hints(params: object) -> ShowHints:
    """The parameters of ``shapetrace/showHints``."""
    visible = _object(params).get("visible")
    if not isinstance(visible, bool):
        raise MessageError("visible must be true or false")
    return ShowHints(visible)


def read_initialization(options: object) -> Initialization:
    """The ``initializationOptions``; a client that is not our extension may send none."""
    given = options if isinstance(options, Mapping) else {}
    storage = given.get("storage")
    return Initialization(
        storage=storage if isinstance(storage, str) and storage else None,
        settings=given.get("settings"),
    )


def to_json(message: OpenedSession | Exported | Woken | Status) -> dict[str, Any]:
    """A message as JSON has it."""
    return {each.name: getattr(message, each.name) for each in fields(message)}


def _object(params: object) -> Mapping[str, Any]:
    if not isinstance(params, Mapping):
        raise MessageError("the parameters must be an object")
    return params


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise MessageError(f"{key} must be a text")
    return value


def _optional_text(given: Mapping[str, Any], key: str) -> str | None:
    return None if given.get(key) is None else _text(given, key)


def _optional_number(given: Mapping[str, Any], key: str) -> int | None:
    value = given.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise MessageError(f"{key} must be a whole number")
    return value
