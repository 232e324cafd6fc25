"""Every message between agent and language server, by the ``type`` that it is sent with.

To add one, write its dataclass and enter it below: ``write`` and the readers do the rest. Each
reader checks the values, whichever side has sent them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, TypeGuard, TypeVar

from shapetrace.events.checks import Refused
from shapetrace.events.stop import Stop
from shapetrace.transport.framing import Message
from shapetrace.transport.proof import NONCE_LENGTH, is_nonce
from shapetrace.transport.requested import CaptureNews, WatchNews
from shapetrace.transport.session_address import LONGEST_NAME
from shapetrace.transport.tables import Object

_LARGEST_ID: Final = 2**32
_LARGEST_COUNT: Final = 2**53
"""The largest number that the editor can count."""


def _check_nonce(name: str, text: str) -> None:
    if not is_nonce(text):
        raise Refused(f"{name} is not {NONCE_LENGTH} hexadecimal digits")


def _check_short(name: str, text: str) -> None:
    if not 0 < len(text) <= LONGEST_NAME:
        raise Refused(f"{name} is empty or too long")


def is_id(number: object) -> TypeGuard[int]:
    """Whether it can be the number of a process, a rank or a protocol."""
    # By type and not isinstance: true is a number to Python.
    return type(number) is int and 0 <= number < _LARGEST_ID


def _check_id(name: str, number: int) -> None:
    if not is_id(number):
        raise _impossible(name)


def _check_process_id(name: str, number: int) -> None:
    if not is_id(number) or number == 0:
        raise _impossible(name)


def _check_count(name: str, number: int) -> None:
    if not 0 <= number < _LARGEST_COUNT:
        raise _impossible(name)


def _impossible(name: str) -> Refused:
    return Refused(f"{name} is no number that it could be")


_Nonce: TypeAlias = Annotated[str, _check_nonce]
_Short: TypeAlias = Annotated[str, _check_short]
_Id: TypeAlias = Annotated[int, _check_id]
_Count: TypeAlias = Annotated[int, _check_count]


# From the agent


@dataclass(frozen=True, slots=True)
class Connect:
    """The agent's first message: its session, and what the server's proof is to be of."""

    session: _Short
    nonce: _Nonce
    protocol: _Id


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """The program's process, as its agent describes it."""

    pid: Annotated[int, _check_process_id]
    parent: _Id
    python: _Short
    executable: str
    argv: tuple[str, ...]
    rank: _Id | None = None
    """Its rank in a distributed run."""
    world_size: _Id | None = None
    implementation: _Short = "cpython"


@dataclass(frozen=True, slots=True)
class Hello:
    """The agent's second message, for a server that has proven itself."""

    session: _Short
    process: ProcessInfo


@dataclass(frozen=True, slots=True)
class Rows:
    """New rows of the recording. ``events.rows.RowReader`` reads them: they refer to others."""

    tables: Mapping[str, Any]
    """The rows of each kind."""


@dataclass(frozen=True, slots=True)
class NumberedStop:
    """A stop that the editor asks about. It is sent after the rows that it refers to."""

    number: _Count
    """Grows from stop to stop of a process."""
    stop: Stop


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The state of the program. Fields that are None have not changed."""

    state: str | None = None
    message: str = ""
    torch: str | None = None
    """The version of torch, where the program has imported it."""
    passes: _Count | None = None
    calls: _Count | None = None
    dropped: _Count | None = None
    """Messages that the server was too slow for."""
    rank: _Count | None = None


@dataclass(frozen=True, slots=True)
class Bye:
    """The agent's last message: it ends, and why."""

    reason: str = ""


# From the language server


@dataclass(frozen=True, slots=True)
class Challenge:
    """The server's first message: its proof, and what the agent's is to be of."""

    nonce: _Nonce
    proof: _Nonce
    protocol: _Id


@dataclass(frozen=True, slots=True)
class Welcome:
    """The server's answer to a hello: go on."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The server's answer in place of any other: no, and why. It closes the connection."""

    reason: str = "no reason"


@dataclass(frozen=True, slots=True)
class Wake:
    """Look at every forward pass again, as at the beginning."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End an evaluation that runs at a stop, or is about to."""

    evaluation: int


@dataclass(frozen=True, slots=True)
class Watch:
    """Watch these variables from now on, and no others."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """Record no more."""


FromAgent: TypeAlias = (
    Connect | Hello | Rows | CaptureNews | WatchNews | NumberedStop | ProcessStatus | Bye
)
FromServer: TypeAlias = Challenge | Welcome | Refusal | Wake | Cancel | Watch | Finish

Said = TypeVar("Said", bound=FromAgent | FromServer)


class _RowsAsTheyAre:
    """``Rows`` and the message for it, whose content is not checked here."""

    @staticmethod
    def write(rows: Rows) -> Message:
        return {**rows.tables}

    @staticmethod
    def read(message: Message, refused: list[str]) -> Rows:
        return Rows(message)


_FROM_AGENT: Final[dict[str, type[FromAgent]]] = {
    "connect": Connect,
    "hello": Hello,
    "rows": Rows,
    "captures": CaptureNews,
    "watches": WatchNews,
    "stop": NumberedStop,
    "status": ProcessStatus,
    "bye": Bye,
}
_FROM_SERVER: Final[dict[str, type[FromServer]]] = {
    "challenge": Challenge,
    "welcome": Welcome,
    "refused": Refusal,
    "wake": Wake,
    "cancel": Cancel,
    "watch": Watch,
    "finish": Finish,
}
_TYPES: Final[dict[type, str]] = {kind: name for name, kind in (_FROM_AGENT | _FROM_SERVER).items()}
_FORMS: Final[dict[type, Any]] = {
    kind: _RowsAsTheyAre if kind is Rows else Object(kind) for kind in _TYPES
}


def write(said: FromAgent | FromServer) -> Message:
    """The message for what is to be said."""
    return {"type": _TYPES[type(said)], **_FORMS[type(said)].write(said)}


def read_from_agent(message: Message) -> tuple[FromAgent | None, list[str]]:
    """The message of an agent, and the problems of the parts of it that were left out.

    None where nothing is left of it.
    """
    return _read(message, _FROM_AGENT)


def read_from_server(message: Message) -> tuple[FromServer | None, list[str]]:
    """The message of a language server, as ``read_from_agent``."""
    return _read(message, _FROM_SERVER)


def read_as(kind: type[Said], message: Message) -> Said | None:
    """The message as a value of this type; None if it has another type.

    Raises ``Refused`` where anything is wrong in it.
    """
    if message.get("type") != _TYPES[kind]:
        return None
    refused: list[str] = []
    said: Said = _FORMS[kind].read(message, refused)
    if refused:
        raise Refused(refused[0])
    return said


def _read(message: Message, kinds: Mapping[str, Any]) -> tuple[Any, list[str]]:
    name = message.get("type")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        return None, [f"no message has the type {name!r:.60}"]
    refused: list[str] = []
    try:
        return _FORMS[kind].read(message, refused), refused
    except Refused as problem:
        return None, [*refused, f"a message of type {name}: {problem}"]
