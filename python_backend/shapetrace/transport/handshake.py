"""The first words: the agent's hello with the session's token, the server's welcome or refusal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shapetrace.transport.framing import Message
from shapetrace.transport.session import LONGEST_NAME

PROTOCOL = 1
"""Changes when an older side could no longer understand the newer one."""

HELLO_WITHIN = 5.0
"""Seconds that the server waits for a process's first word."""

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
class Hello:
    """The agent's first frame."""

    session: str
    token: str = field(repr=False)
    process: ProcessInfo
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Welcome:
    """The server's answer: go on."""

    protocol: int = PROTOCOL


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


def hello_message(hello: Hello) -> Message:
    """The hello as a message."""
    return {
        "type": "hello",
        "protocol": hello.protocol,
        "token": hello.token,
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


def read_hello(message: Mapping[str, object]) -> Hello:
    """The hello in a message that anybody may have sent."""
    if message.get("type") != "hello":
        raise HandshakeError("the first frame is no hello")
    protocol = _number(message, "protocol", 0, _LARGEST_ID)
    if protocol != PROTOCOL:
        raise HandshakeError(
            f"the agent speaks protocol {protocol}, the language server {PROTOCOL}: "
            "they are of different versions of Shapetrace"
        )
    process = message.get("process")
    if not isinstance(process, Mapping):
        raise HandshakeError("process is missing or no object")
    argv = process.get("argv")
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise HandshakeError("argv is missing or no list of texts")
    return Hello(
        session=_text(message, "session", LONGEST_NAME),
        token=_text(message, "token", LONGEST_NAME),
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
        protocol=protocol,
    )


def answer_message(answer: Welcome | Refused) -> Message:
    """The server's answer as a message."""
    if isinstance(answer, Welcome):
        return {"type": "welcome", "protocol": answer.protocol}
    return {"type": "refused", "reason": answer.reason}


def read_answer(message: Mapping[str, object]) -> Welcome | Refused:
    """The server's answer in a message."""
    match message.get("type"):
        case "welcome":
            protocol = _number(message, "protocol", 0, _LARGEST_ID)
            if protocol != PROTOCOL:
                return Refused(f"the language server speaks protocol {protocol}, not {PROTOCOL}")
            return Welcome(protocol)
        case "refused":
            reason = message.get("reason")
            return Refused(reason[:_REASON_LENGTH] if isinstance(reason, str) else "no reason")
        case _:
            raise HandshakeError("the first answer is neither a welcome nor a refusal")


def same_token(one: str, other: str) -> bool:
    """Whether two tokens are the same, in a time that does not tell where they differ."""
    # Only the server compares, and the agent must not bring OpenSSL into the user's process.
    from hmac import compare_digest

    return compare_digest(_token_bytes(one), _token_bytes(other))


def _token_bytes(token: str) -> bytes:
    return token.encode("utf-8", "surrogatepass")


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
