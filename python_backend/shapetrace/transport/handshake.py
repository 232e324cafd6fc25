"""The first words, in which each side proves that it knows the session's token.

    agent                                  server
    connect: protocol, session, nonce  →
                                       ←   challenge: protocol, nonce, proof
    hello: proof, process              →
                                       ←   welcome

Nothing is said of the program before the server has proven itself. ``refused`` can take the place
of any word of the server's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shapetrace.transport.framing import Message
from shapetrace.transport.proof import NONCE_LENGTH, PROTOCOL, is_nonce
from shapetrace.transport.session import LONGEST_NAME

PROVEN_WITHIN = 5.0
"""Seconds that the server waits for an agent to prove itself."""

_LARGEST_ID = 2**32
_ARGUMENTS_LENGTH = 2_000
"""Characters of the command line that are told: in JSON none takes more than twelve bytes."""
_PATH_LENGTH = 1_000
_REASON_LENGTH = 300


class HandshakeError(Exception):
    """First words that are not what they should be; the message says what is wrong with them."""


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """The program's process, as its agent describes it."""

    pid: int
    parent: int
    python: str
    executable: str
    argv: tuple[str, ...]
    rank: int | None = None
    """Which of the processes of a distributed run this is."""
    world_size: int | None = None
    implementation: str = "cpython"


@dataclass(frozen=True, slots=True)
class Connect:
    """The agent's first frame: of which session it is, and what the server's proof is to be of."""

    session: str
    nonce: str
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Challenge:
    """The server's first frame: its proof, and what the agent's is to be of."""

    nonce: str
    proof: str
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Hello:
    """The agent's second frame, for a server that has proven itself."""

    session: str
    process: ProcessInfo


@dataclass(frozen=True, slots=True)
class Welcome:
    """The server's answer to a hello: go on."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The server's answer: no, and why; it closes the connection after it."""

    reason: str


def this_process(argv: Sequence[object] | None = None) -> ProcessInfo:
    """The description of the running process; a long command line is cut."""
    version = sys.version_info
    suffix = "" if version.releaselevel == "final" else f"{version.releaselevel[0]}{version.serial}"
    return ProcessInfo(
        pid=os.getpid(),
        parent=os.getppid(),
        python=f"{version.major}.{version.minor}.{version.micro}{suffix}",
        executable=(sys.executable or "")[:_PATH_LENGTH],
        argv=_cut(getattr(sys, "argv", ()) if argv is None else argv),
        rank=_number_in_environment("RANK"),
        world_size=_number_in_environment("WORLD_SIZE"),
        implementation=sys.implementation.name,
    )


def connect_message(connect: Connect) -> Message:
    """The agent's first frame as a message."""
    return {
        "type": "connect",
        "protocol": connect.protocol,
        "session": connect.session,
        "nonce": connect.nonce,
    }


def read_connect(message: Mapping[str, object]) -> Connect:
    """The agent's first frame in a message that anybody may have sent."""
    kind = message.get("type")
    # Up to protocol 1 the hello came first.
    if kind not in ("connect", "hello"):
        raise HandshakeError("the first frame does not ask to connect")
    protocol = _number(message, "protocol", 0, _LARGEST_ID)
    if protocol != PROTOCOL:
        raise HandshakeError(
            f"the agent speaks protocol {protocol}, the language server {PROTOCOL}: "
            "they are of different versions of Shapetrace"
        )
    if kind != "connect":
        raise HandshakeError("the first frame does not ask to connect")
    return Connect(_text(message, "session", LONGEST_NAME), _nonce(message, "nonce"), protocol)


def challenge_message(challenge: Challenge) -> Message:
    """The server's first frame as a message."""
    return {
        "type": "challenge",
        "protocol": challenge.protocol,
        "nonce": challenge.nonce,
        "proof": challenge.proof,
    }


def read_challenge(message: Mapping[str, object]) -> Challenge | Refused:
    """The server's first frame in a message that anybody may have sent."""
    match message.get("type"):
        case "challenge":
            protocol = _number(message, "protocol", 0, _LARGEST_ID)
            if protocol != PROTOCOL:
                return Refused(f"the language server speaks protocol {protocol}, not {PROTOCOL}")
            return Challenge(_nonce(message, "nonce"), _nonce(message, "proof"), protocol)
        case "refused":
            return _refused(message)
        case _:
            raise HandshakeError("the first answer is neither a challenge nor a refusal")


def hello_message(hello: Hello, proof: str) -> Message:
    """The hello as a message."""
    return {
        "type": "hello",
        "proof": proof,
        "session": hello.session,
        "process": {
            "pid": hello.process.pid,
            "parent": hello.process.parent,
            "python": hello.process.python,
            "executable": hello.process.executable,
            "argv": list(hello.process.argv),
            "rank": hello.process.rank,
            "worldSize": hello.process.world_size,
            "implementation": hello.process.implementation,
        },
    }


def read_proof(message: Mapping[str, object]) -> str:
    """The agent's proof in a hello that anybody may have sent."""
    if message.get("type") != "hello":
        raise HandshakeError("the second frame is no hello")
    return _nonce(message, "proof")


def read_hello(message: Mapping[str, object]) -> Hello:
    """What a hello says of the process."""
    if message.get("type") != "hello":
        raise HandshakeError("the second frame is no hello")
    process = message.get("process")
    if not isinstance(process, Mapping):
        raise HandshakeError("process is missing or no object")
    argv = process.get("argv")
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise HandshakeError("argv is missing or no list of texts")
    return Hello(
        session=_text(message, "session", LONGEST_NAME),
        process=ProcessInfo(
            pid=_number(process, "pid", 1, _LARGEST_ID),
            parent=_number(process, "parent", 0, _LARGEST_ID),
            python=_text(process, "python", LONGEST_NAME),
            executable=_text(process, "executable", None),
            argv=tuple(argv),
            rank=_number_or_none(process, "rank"),
            world_size=_number_or_none(process, "worldSize"),
            implementation=_text(process, "implementation", LONGEST_NAME),
        ),
    )


def answer_message(answer: Welcome | Refused) -> Message:
    """The server's answer as a message."""
    if isinstance(answer, Welcome):
        return {"type": "welcome"}
    return {"type": "refused", "reason": answer.reason}


def read_answer(message: Mapping[str, object]) -> Welcome | Refused:
    """The server's answer to a hello in a message."""
    match message.get("type"):
        case "welcome":
            return Welcome()
        case "refused":
            return _refused(message)
        case _:
            raise HandshakeError("the answer to the hello is neither a welcome nor a refusal")


def _refused(message: Mapping[str, object]) -> Refused:
    reason = message.get("reason")
    return Refused(reason[:_REASON_LENGTH] if isinstance(reason, str) else "no reason")


def _nonce(source: Mapping[str, Any], key: str) -> str:
    value = source.get(key)
    if not isinstance(value, str) or not is_nonce(value):
        raise HandshakeError(f"{key} is missing or not {NONCE_LENGTH} hexadecimal digits")
    return value


def _text(source: Mapping[str, Any], key: str, longest: int | None) -> str:
    value = source.get(key)
    if not isinstance(value, str):
        raise HandshakeError(f"{key} is missing or no text")
    if longest is not None and not 0 < len(value) <= longest:
        raise HandshakeError(f"{key} is empty or too long")
    return value


def _number(source: Mapping[str, Any], key: str, lowest: int, below: int) -> int:
    value = source.get(key)
    # By type and not isinstance: true is a number to Python.
    if type(value) is not int or not lowest <= value < below:
        raise HandshakeError(f"{key} is missing or no number that it could be")
    return value


def _number_or_none(source: Mapping[str, Any], key: str) -> int | None:
    return None if source.get(key) is None else _number(source, key, 0, _LARGEST_ID)


def _number_in_environment(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _cut(argv: Sequence[object]) -> tuple[str, ...]:
    """As much of the command line as a hello has room for."""
    kept: list[str] = []
    room = _ARGUMENTS_LENGTH
    for word in argv:
        if room <= 0 or len(kept) == 100:
            return (*kept, "…")
        text = word if isinstance(word, str) else type(word).__name__
        kept.append(text if len(text) <= room else text[: room - 1] + "…")
        room -= len(text)
    return tuple(kept)
