"""The first words, in which each side proves that it knows the session's token.

    agent                                  server
    connect: protocol, session, nonce  →
                                       ←   challenge: protocol, nonce, proof
    hello: proof, process              →
                                       ←   welcome

Nothing is said of the program before the server has proven itself. ``refused`` can take the place
of any word of the server's. What is wrong in any of these ends the connection.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from shapetrace.events.checks import Refused
from shapetrace.transport.framing import Message
from shapetrace.transport.messages import (
    Challenge,
    Connect,
    Hello,
    ProcessInfo,
    Refusal,
    Said,
    Welcome,
    is_id,
    read_as,
    read_from_server,
    write,
)
from shapetrace.transport.proof import NONCE_LENGTH, PROTOCOL, is_nonce

PROVEN_WITHIN = 5.0
"""Seconds that the server waits for an agent to prove itself."""

_ARGUMENTS_LENGTH = 2_000
"""Characters of the command line that are told: in JSON none takes more than twelve bytes."""
_PATH_LENGTH = 1_000
_REASON_LENGTH = 300


class HandshakeError(Exception):
    """First words that are not what they should be; the message says what is wrong with them."""


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


def read_connect(message: Message) -> Connect:
    """The agent's first message, checked: any program may have sent it."""
    no_connect = "the first frame does not ask to connect"
    # Up to protocol 1 the hello came first.
    if message.get("type") not in ("connect", "hello"):
        raise HandshakeError(no_connect)
    protocol = message.get("protocol")
    if is_id(protocol) and protocol != PROTOCOL:
        raise HandshakeError(
            f"the agent speaks protocol {protocol}, the language server {PROTOCOL}: "
            "they are of different versions of Shapetrace"
        )
    return _expected(Connect, message, no_connect)


def read_challenge(message: Message) -> Challenge | Refusal:
    """The server's first message, checked: any program may have sent it."""
    refusal = _refusal(message)
    if refusal is not None:
        return refusal
    protocol = message.get("protocol")
    if message.get("type") == "challenge" and is_id(protocol) and protocol != PROTOCOL:
        return Refusal(f"the language server speaks protocol {protocol}, not {PROTOCOL}")
    return _expected(Challenge, message, "the first answer is neither a challenge nor a refusal")


def hello_message(hello: Hello, proof: str) -> Message:
    """The hello, with the agent's proof."""
    return {**write(hello), "proof": proof}


def read_proof(message: Message) -> str:
    """The agent's proof in a hello, checked: any program may have sent it."""
    if message.get("type") != "hello":
        raise HandshakeError("the second frame is no hello")
    proof = message.get("proof")
    if not isinstance(proof, str) or not is_nonce(proof):
        raise HandshakeError(f"proof is missing or not {NONCE_LENGTH} hexadecimal digits")
    return proof


def read_hello(message: Message) -> Hello:
    """What a hello says of the process."""
    return _expected(Hello, message, "the second frame is no hello")


def read_answer(message: Message) -> Welcome | Refusal:
    """The server's answer to a hello."""
    refusal = _refusal(message)
    if refusal is not None:
        return refusal
    return _expected(Welcome, message, "the answer to the hello is neither a welcome nor a refusal")


def _expected(kind: type[Said], message: Message, otherwise: str) -> Said:
    """What a message says, where it is of this kind and nothing is wrong in it."""
    try:
        said = read_as(kind, message)
    except Refused as problem:
        raise HandshakeError(str(problem)) from None
    if said is None:
        raise HandshakeError(otherwise)
    return said


def _refusal(message: Message) -> Refusal | None:
    said, _ = read_from_server(message)
    return Refusal(said.reason[:_REASON_LENGTH]) if isinstance(said, Refusal) else None


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
