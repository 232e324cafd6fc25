"""Agents played by the test, and a handler that notes what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from shapetrace.server.listener import AgentListener, ProcessKey
from shapetrace.server.message_journal import Journal
from shapetrace.transport.handshake import hello_message
from shapetrace.transport.messages import Hello, ProcessInfo
from tests.support import handshakes

SESSION = "c2a7"
WITHIN = 30.0


class Notes:
    """What a handler was told: texts for hello and gone, messages as they are."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.fails = False

    def hello(self, process: ProcessKey, hello: Hello) -> None:
        self._note(f"hello {process.pid}")

    def message(self, process: ProcessKey, message: dict[str, Any]) -> None:
        self._note((process.pid, message["number"]) if "number" in message else message)

    def gone(self, process: ProcessKey, reason: str) -> None:
        self._note(f"gone {process.pid}: {reason}")

    def _note(self, what: Any) -> None:
        self.told.append(what)
        if self.fails:
            raise RuntimeError("a fault in the handler")


class Client:
    """A connection to a listener."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, message: dict[str, Any]) -> None:
        self.send_payload(json.dumps(message).encode())

    def send_payload(self, payload: bytes) -> None:
        self.writer.write(struct.pack(">I", len(payload)) + payload)

    def say_connect(self, session: str = SESSION, **changes: object) -> None:
        self.send({**handshakes.connect(session), **changes})

    async def say_hello(
        self, token: str, pid: int = 12, session: str = SESSION, **changes: object
    ) -> None:
        """Both frames of an agent, the second with anything else in it."""
        self.say_connect(session)
        challenged = await self.receive()
        assert challenged is not None
        process = ProcessInfo(pid, 1, "3.12.1", "/usr/bin/python3", ("train.py",))
        about = (session, token, self.port, handshakes.NONCE, challenged["nonce"])
        message = hello_message(Hello(session, process), handshakes.proof_of("agent", *about))
        self.send({**message, **changes})

    @property
    def port(self) -> int:
        return int(self.writer.get_extra_info("peername")[1])

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        try:
            async with asyncio.timeout(WITHIN):
                (length,) = struct.unpack(">I", await self.reader.readexactly(4))
                message: dict[str, Any] = json.loads(await self.reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return message

    def reset(self) -> None:
        """End the connection as a process does that is killed with data unread."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.close()


class Served:
    """A listener with one open session, and its clients."""

    def __init__(self, listener: AgentListener, notes: Notes, port: int, token: str) -> None:
        self.listener = listener
        self.notes = notes
        self.port = port
        self.token = token
        self._clients: list[Client] = []

    async def connect(self, port: int | None = None) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", port or self.port))
        self._clients.append(client)
        return client

    async def join(self, pid: int = 12) -> Client:
        """A client that is welcome."""
        client = await self.connect()
        await client.say_hello(self.token, pid)
        assert await client.receive() == {"type": "welcome"}
        return client

    async def until_told_gone(self) -> None:
        """Wait until a process is gone."""
        await until(lambda: any("gone" in str(told) for told in self.notes.told))

    async def until_told(self, *last: Any) -> None:
        """Wait until these were told, in this order, as the last."""
        await until(lambda: self.notes.told[-len(last) :] == list(last), lambda: self.notes.told)

    def close(self) -> None:
        for client in self._clients:
            client.close()


async def until(condition: Callable[[], object], shown: Callable[[], object] = str) -> None:
    """Let the loop turn until a condition holds."""
    try:
        async with asyncio.timeout(WITHIN):
            while not condition():
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(f"the condition does not come true: {shown()}") from None


@contextlib.asynccontextmanager
async def served(journal: Journal | None = None, **options: Any) -> AsyncIterator[Served]:
    notes = Notes()
    listener = AgentListener(notes, journal, **options)
    port, token = await listener.open_session(SESSION, "Python: train", "debug")
    case = Served(listener, notes, port, token)
    try:
        yield case
    finally:
        case.close()
        await listener.stop()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario; a fault that the loop only reports fails it as well."""
    faults: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
        await scenario()

    asyncio.run(watched())
    assert faults == []
