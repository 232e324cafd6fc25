"""The other end of a sender, played by the test, with a reader and writer of frames of its own."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from shapetrace.transport.messages import ProcessInfo
from shapetrace.transport.sender import Sender
from shapetrace.transport.session_address import SessionAddress
from tests.support import handshakes

PROCESS = ProcessInfo(12, 1, "3.12.1", "/usr/bin/python3", ("train.py",))
PROCESS_OBJECT = {
    "pid": 12,
    "parent": 1,
    "python": "3.12.1",
    "executable": "/usr/bin/python3",
    "argv": ["train.py"],
    "implementation": "cpython",
}
"""How it is sent."""
TOKEN = "secret"
WITHIN = 30.0


def until(condition: Callable[[], object], meanwhile: Callable[[], object]) -> None:
    """Do something again and again until a condition holds."""
    gives_up = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < gives_up, "the condition does not come true"
        meanwhile()


class Agent:
    """A sender and what it called back."""

    def __init__(self, port: int, **options: Any) -> None:
        self.connected = 0
        self.commands: list[dict[str, Any]] = []
        self.first_words: list[dict[str, Any]] = []
        """Offered whenever a connection is made."""
        self.sender = Sender(
            SessionAddress("c2a7", port, TOKEN),
            PROCESS,
            on_connected=self._on_connected,
            on_command=self.commands.append,
            **options,
        )

    def until(self, condition: Callable[[], object]) -> None:
        until(condition, lambda: self.sender.step(0.01))

    def _on_connected(self) -> None:
        self.connected += 1
        for message in self.first_words:
            self.sender.offer(message)


class Peer:
    """One connection, as the server has it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._buffer = b""

    def send(self, message: dict[str, Any]) -> None:
        payload = json.dumps(message).encode()
        self.socket.sendall(struct.pack(">I", len(payload)) + payload)

    def receive(self, meanwhile: Callable[[], object] = lambda: None) -> dict[str, Any] | None:
        """The next message; None at the end of the connection."""
        while True:
            if len(self._buffer) >= 4:
                (length,) = struct.unpack_from(">I", self._buffer)
                if len(self._buffer) >= 4 + length:
                    payload, self._buffer = self._buffer[4 : 4 + length], self._buffer[4 + length :]
                    message: dict[str, Any] = json.loads(payload)
                    return message
            until(lambda: select.select([self.socket], [], [], 0.01)[0], meanwhile)
            data = self.socket.recv(1 << 16)
            if not data:
                assert not self._buffer, "the connection ended within a frame"
                return None
            self._buffer += data

    def greet(
        self,
        port: int,
        meanwhile: Callable[[], object] = lambda: None,
        answer: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Prove that we know the token, and answer the hello, which is returned."""
        first = self.receive(meanwhile)
        assert first is not None
        self.send(handshakes.challenge(first, TOKEN, port))
        hello = self.receive(meanwhile)
        assert hello is not None
        about = (first["session"], TOKEN, port, first["nonce"], handshakes.NONCE)
        assert hello["proof"] == handshakes.proof_of("agent", *about)
        self.send(answer or {"type": "welcome"})
        return hello

    def receive_all(self) -> list[dict[str, Any]]:
        """The messages up to the end of the connection."""
        return list(iter(self.receive, None))

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """End the connection as a process does that is killed with data unread."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Server:
    """Listens, and plays the server for one agent."""

    def __init__(self, port: int = 0) -> None:
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = self._listening.getsockname()[1]
        self._peers: list[Peer] = []

    def accept(self, agent: Agent) -> Peer:
        """A connection that has not been answered yet."""
        agent.until(lambda: select.select([self._listening], [], [], 0)[0])
        self._listening.settimeout(WITHIN)
        peer = Peer(self._listening.accept()[0])
        self._peers.append(peer)
        return peer

    def welcome(self, agent: Agent) -> Peer:
        """A connection that stands."""
        peer = self.accept(agent)
        peer.greet(self.port, lambda: agent.sender.step(0.01))
        agent.until(lambda: agent.sender.is_connected)
        return peer

    def close(self) -> None:
        self._listening.close()
        for peer in self._peers:
            peer.close()


@contextlib.contextmanager
def served(**options: Any) -> Iterator[tuple[Server, Agent]]:
    """A server and an agent that knows where it is."""
    with contextlib.closing(Server()) as server:
        agent = Agent(server.port, **options)
        try:
            yield server, agent
        finally:
            agent.sender.close(0.0)
