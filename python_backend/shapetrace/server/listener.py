"""The language server's end: agents connect, prove that they know the token, and send frames.

Every program on this machine can connect. A connection that does not prove at once that it knows a
token is refused. Whatever arrives, the server continues to answer the editor.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from shapetrace.server.message_journal import Journal, JournalPart, SessionInfo
from shapetrace.transport.framing import (
    LONGEST,
    Decoder,
    FrameError,
    Message,
    decode,
    encode,
)
from shapetrace.transport.handshake import (
    PROVEN_WITHIN,
    HandshakeError,
    read_connect,
    read_hello,
    read_proof,
)
from shapetrace.transport.messages import Challenge, Finish, Hello, Refusal, Welcome, write
from shapetrace.transport.proof import PROTOCOL, Exchange, new_nonce
from shapetrace.transport.session_address import LONGEST_NAME

MOST_WAITING = 256
"""Connections that have not proven themselves yet; of any more, the oldest are closed. These are
more than the system hands over at once, so that each is read from before others take its place."""

GRACE = 5.0
"""Seconds after the end of a debug session in which its processes may still send the rest, and
again as many while there is more of it."""

_LOOPBACK = "127.0.0.1"
_BACKLOG = 100
_READ_AT_ONCE = 64 * 1024
_TURN = 0.003
"""Seconds of decoding, by all connections together, after which the editor has its turn."""
_MOST_EXTENSIONS = 12
_REFUSALS_LOGGED = 20
_MOST_UNREAD_COMMANDS = 64 * 1024
_REFUSED = "this session is not open here, or its token differs"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessKey:
    """One process of one debug session."""

    session: str
    pid: int

    def __str__(self) -> str:
        return f"process {self.pid} of session {self.session}"


class MessageHandler(Protocol):
    """Receives the messages of the processes, in the server's event loop; must not wait."""

    def hello(self, process: ProcessKey, hello: Hello) -> None:
        """A process has connected. If it was known before, it begins from the start."""

    def message(self, process: ProcessKey, message: Message) -> None:
        """A process has sent a message."""

    def gone(self, process: ProcessKey, reason: str) -> None:
        """A process's connection has ended, and no newer one has taken its place."""


@dataclass(slots=True)
class _Session:
    info: SessionInfo
    token: str
    port: int
    ending: asyncio.TimerHandle | None = None


@dataclass(slots=True, eq=False)
class _Connection:
    process: ProcessKey
    writer: asyncio.StreamWriter
    journal: JournalPart | None
    has_sent: bool = True
    """Whether it has sent anything since the last check."""
    end_reason: str = ""


@dataclass(slots=True)
class _Port:
    server: asyncio.Server
    number: int
    sessions: set[str] = field(default_factory=set)


class AgentListener:
    """Listens on the loopback for the processes of all open sessions.

    One port serves every session, as the token says which one a process belongs to; another is
    opened only when a session comes back after a restart of the server and must be found where it
    was. A port is closed with its last session.
    """

    def __init__(
        self,
        handler: MessageHandler,
        journal: Journal | None = None,
        *,
        proven_within: float = PROVEN_WITHIN,
        grace: float = GRACE,
    ) -> None:
        self._handler = handler
        self._journal = journal
        self._proven_within = proven_within
        self._grace = grace
        self._sessions: dict[str, _Session] = {}
        self._ports: dict[int, _Port] = {}
        self._connections: dict[ProcessKey, _Connection] = {}
        self._waiting: dict[asyncio.StreamWriter, None] = {}
        """Those that have not proven themselves, the oldest first."""
        self._turned_away = 0
        self._refused = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False
        self._opening = asyncio.Lock()
        self._decoding = asyncio.Lock()

    async def open_session(
        self, session: str, name: str, mode: str, token: str | None = None, port: int | None = None
    ) -> tuple[int, str]:
        """Expect processes of a session; returns the port and the token they are to use.

        Token and port are given if the session was open before the server was restarted. If
        another process has taken the port since, another one is returned.
        """
        if token is not None and not 0 < len(token) <= LONGEST_NAME:
            _log.warning("session %s: the given token is invalid; it gets a new one", session)
            token = None
        async with self._opening:
            known = self._sessions.get(session)
            if known is not None:
                if known.ending is not None:
                    known.ending.cancel()
                    known.ending = None
                known.token = token or known.token
                return known.port, known.token
            listening = await self._port_for(port)
            listening.sessions.add(session)
            token = token or secrets.token_hex(32)
            info = SessionInfo(session, name, mode)
            self._sessions[session] = _Session(info, token, listening.number)
        return listening.number, token

    async def close_session(self, session: str) -> None:
        """The debug session is over: its processes are told to stop, and cut off after a while.

        Until then they may connect and send what is under way: the editor can know of a program's
        end before the last it said has been read.
        """
        known = self._sessions.get(session)
        if known is None or known.ending is not None:
            return
        for process in self.processes(session):
            self.send(process, write(Finish()))
            self._connections[process].has_sent = False
        self._end_session_later(known, _MOST_EXTENSIONS)

    def processes(self, session: str) -> list[ProcessKey]:
        """The processes of a session that are connected."""
        return [process for process in self._connections if process.session == session]

    def send(self, process: ProcessKey, message: Message) -> bool:
        """Send a command to a process; False if it is not there or reads none."""
        connection = self._connections.get(process)
        if connection is None or connection.writer.is_closing():
            return False
        if connection.writer.transport.get_write_buffer_size() > _MOST_UNREAD_COMMANDS:
            return False
        connection.writer.write(encode(message))
        return True

    async def stop(self) -> None:
        """Close everything, without reporting that the processes are gone."""
        self._is_stopped = True
        for known in self._sessions.values():
            if known.ending is not None:
                known.ending.cancel()
        self._sessions.clear()
        for listening in self._ports.values():
            listening.server.close()
        self._ports.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # The transports close in the next turn of the loop.
        await asyncio.sleep(0)

    async def _port_for(self, wanted: int | None) -> _Port:
        if wanted is None and self._ports:
            return next(iter(self._ports.values()))
        if wanted in self._ports:
            return self._ports[wanted]
        try:
            listening = _listening_socket(wanted or 0)
        except (OSError, OverflowError) as error:
            if wanted is None:
                raise
            _log.warning("port %s cannot be listened on again (%s); taking another", wanted, error)
            return await self._port_for(None)
        server = await asyncio.start_server(self._accept, sock=listening, backlog=_BACKLOG)
        port = _Port(server, listening.getsockname()[1])
        self._ports[port.number] = port
        return port

    def _end_session_later(self, ending: _Session, extensions: int) -> None:
        loop = asyncio.get_running_loop()
        ending.ending = loop.call_later(self._grace, self._end_session, ending, extensions)

    def _end_session(self, ended: _Session, extensions: int) -> None:
        session = ended.info.session
        if self._sessions.get(session) is not ended:
            return
        connections = [self._connections[process] for process in self.processes(session)]
        if extensions and any(connection.has_sent for connection in connections):
            for connection in connections:
                connection.has_sent = False
            self._end_session_later(ended, extensions - 1)
            return
        del self._sessions[session]
        for connection in connections:
            connection.end_reason = "the debug session is over"
            connection.writer.transport.abort()
        port = self._ports[ended.port]
        port.sessions.discard(session)
        if not port.sessions:
            del self._ports[ended.port]
            port.server.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_stopped:
            writer.transport.abort()
            return
        while len(self._waiting) >= MOST_WAITING:
            # Never the newest: an agent proves itself at once, and others must not keep it out.
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.transport.abort()
            if self._turned_away == 0:
                _log.warning(
                    "too many connections without proof of the token; the oldest are closed"
                )
            self._turned_away += 1
        self._waiting[writer] = None
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from beginning to end."""
        decoder = Decoder()
        try:
            try:
                async with asyncio.timeout(self._proven_within):
                    hello, session = await self._greet(reader, writer, decoder)
            except TimeoutError:
                self._refuse(writer, "no proof of the token came in time")
                return
            except (FrameError, HandshakeError) as error:
                if writer in self._waiting:
                    self._refuse(writer, str(error))
                return
            except OSError as error:
                _log.info("a connection ended before its proof of the token: %s", error)
                return
            finally:
                self._no_longer_waiting(writer)
            await self._follow(reader, writer, decoder, hello, session)
        except Exception:
            _log.exception("fault in serving a connection")
        finally:
            writer.close()

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, decoder: Decoder
    ) -> tuple[Hello, _Session]:
        """The hello of an agent that knows the token, after it was proven to it that we do."""
        connect = read_connect(await _next_message(reader, decoder))
        session = self._sessions.get(connect.session)
        # With a token in any case, so that the answer does not reveal which sessions there are.
        exchange = Exchange(
            connect.session,
            session.token if session else secrets.token_hex(32),
            writer.get_extra_info("sockname")[1],
            connect.nonce,
            new_nonce(),
        )
        challenge = Challenge(exchange.server_nonce, exchange.proof("server"), PROTOCOL)
        writer.write(encode(write(challenge)))
        answer = await _next_message(reader, decoder)
        is_right = exchange.is_proof("agent", read_proof(answer))
        # It may have been closed meanwhile.
        if not is_right or session is None or self._sessions.get(connect.session) is not session:
            raise HandshakeError(_REFUSED)
        hello = read_hello(answer)
        if hello.session != connect.session:
            raise HandshakeError(_REFUSED)
        decoder.longest = LONGEST
        return hello, session

    async def _follow(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        decoder: Decoder,
        hello: Hello,
        session: _Session,
    ) -> None:
        """Everything after the hello."""
        process = ProcessKey(hello.session, hello.process.pid)
        former = self._connections.pop(process, None)
        if former is not None:
            _log.info("%s has connected anew", process)
            self._let_go(former)
            former.writer.transport.abort()
        part = self._journal.begin(session.info, hello) if self._journal else None
        connection = _Connection(process, writer, part)
        self._connections[process] = connection
        self._tell(lambda: self._handler.hello(process, hello))
        writer.write(encode(write(Welcome())))
        try:
            reason = await self._read(reader, connection, decoder)
        except FrameError as error:
            reason = str(error)
            self._refuse(writer, reason)
        except OSError as error:
            reason = f"the connection broke: {error.strerror or error}"
        finally:
            self._let_go(connection)
        if self._connections.get(process) is connection:
            del self._connections[process]
            reason = connection.end_reason or reason
            self._tell(lambda: self._handler.gone(process, reason))

    async def _read(
        self, reader: asyncio.StreamReader, connection: _Connection, decoder: Decoder
    ) -> str:
        """Hand on messages until there are no more; returns why."""
        process = connection.process
        clock = asyncio.get_running_loop().time
        while True:
            # The hello may have come with more behind it, so there can be frames before reading.
            payload = decoder.take()
            while payload is not None:
                # One connection at a time, then a turn of the event loop for other tasks.
                async with self._decoding:
                    turn_ends = clock() + _TURN
                    while payload is not None:
                        message = decode(payload)
                        if self._connections.get(process) is not connection:
                            return "another connection has taken its place"
                        if connection.journal is not None:
                            connection.journal.write(payload)
                        self._deliver(process, message)
                        payload = decoder.take()
                        if clock() >= turn_ends:
                            break
                    await asyncio.sleep(0)
            if connection.journal is not None:
                connection.journal.flush()
            data = await reader.read(_READ_AT_ONCE)
            if not data:
                return "cut off in the middle of a frame" if decoder.waiting else "ended"
            connection.has_sent = True
            decoder.feed(data)

    def _deliver(self, process: ProcessKey, message: Message) -> None:
        self._tell(lambda: self._handler.message(process, message))

    def _tell(self, call: Callable[[], None]) -> None:
        """Call the handler; a fault in it is no reason to end a connection."""
        try:
            call()
        except Exception:
            _log.exception("fault in handling a message of a process")

    def _let_go(self, connection: _Connection) -> None:
        if connection.journal is not None:
            connection.journal.close()
            connection.journal = None

    def _refuse(self, writer: asyncio.StreamWriter, reason: str) -> None:
        self._refused += 1
        if self._refused <= _REFUSALS_LOGGED:
            _log.warning("a connection is refused: %s", reason)
        elif self._refused % 1000 == 0:
            _log.warning("%d connections have been refused", self._refused)
        if not writer.is_closing():
            writer.write(encode(write(Refusal(reason))))

    def _no_longer_waiting(self, writer: asyncio.StreamWriter) -> None:
        self._waiting.pop(writer, None)
        if self._turned_away and not self._waiting:
            _log.warning("%d connections without proof of the token were closed", self._turned_away)
            self._turned_away = 0


async def _next_message(reader: asyncio.StreamReader, decoder: Decoder) -> Message:
    while (payload := decoder.take()) is None:
        data = await reader.read(_READ_AT_ONCE)
        if not data:
            raise HandshakeError("the connection ended before its proof of the token")
        decoder.feed(data)
    return decode(payload)


def _listening_socket(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":
            # There, reusing an address takes it away from the process that listens on it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_LOOPBACK, port))
    except BaseException:
        listening.close()
        raise
    return listening
