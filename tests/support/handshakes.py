"""Both sides of the first words, written from their description and not with the product's code."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import struct
from typing import Any

from shapetrace.transport.handshake import hello_message
from shapetrace.transport.messages import Hello, ProcessInfo

PROTOCOL = 5
NONCE = "5a" * 32
"""A nonce of the test's: the product's own are random."""


def proof_of(
    side: str, session: str, token: str, port: int, agent_nonce: str, server_nonce: str
) -> str:
    """The proof that a side sends which knows the token."""
    said = (f"shapetrace {side}", PROTOCOL, port, agent_nonce, server_nonce, session)
    text = "\n".join(map(str, said)).encode("utf-8", "surrogatepass")
    return hmac.new(token.encode("utf-8", "surrogatepass"), text, hashlib.sha256).hexdigest()


def connect(session: str, nonce: str = NONCE) -> dict[str, Any]:
    """An agent's first frame."""
    return {"type": "connect", "protocol": PROTOCOL, "session": session, "nonce": nonce}


def challenge(first: dict[str, Any], token: str, port: int) -> dict[str, Any]:
    """A server's answer to an agent's first frame."""
    proof = proof_of("server", first["session"], token, port, first["nonce"], NONCE)
    return {"type": "challenge", "protocol": PROTOCOL, "nonce": NONCE, "proof": proof}


def hello(
    challenged: dict[str, Any], session: str, token: str, port: int, process: ProcessInfo
) -> dict[str, Any]:
    """An agent's second frame, for a server that got ``connect(session)``."""
    about = (session, token, port, NONCE, challenged["nonce"])
    assert challenged["proof"] == proof_of("server", *about), "the server does not know the token"
    return hello_message(Hello(session, process), proof_of("agent", *about))


def join(connection: socket.socket, session: str, token: str, process: ProcessInfo) -> None:
    """Be an agent, up to the welcome."""
    send(connection, connect(session))
    port = connection.getpeername()[1]
    send(connection, hello(receive(connection), session, token, port, process))
    assert receive(connection)["type"] == "welcome"


def admit(connection: socket.socket, token: str) -> dict[str, Any]:
    """Be a server, up to the welcome; the agent's hello."""
    first = receive(connection)
    port = connection.getsockname()[1]
    send(connection, challenge(first, token, port))
    told = receive(connection)
    assert told["proof"] == proof_of("agent", first["session"], token, port, first["nonce"], NONCE)
    send(connection, {"type": "welcome"})
    return told


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one frame."""
    payload = json.dumps(message).encode()
    connection.sendall(struct.pack(">I", len(payload)) + payload)


def receive(connection: socket.socket) -> dict[str, Any]:
    """The next frame, and nothing behind it."""
    (length,) = struct.unpack(">I", _read(connection, 4))
    message: dict[str, Any] = json.loads(_read(connection, length))
    return message


def _read(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        assert more, "the connection has ended"
        data += more
    return data
