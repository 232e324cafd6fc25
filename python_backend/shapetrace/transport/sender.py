"""The agent's end: frames from a bounded queue to the language server, and commands from it.

    sender = Sender(address, this_process(), on_connected=begin_anew, on_command=obey)
    while not sender.is_over:                  # in the agent's own thread
        for message in news():
            sender.offer(message)
        sender.step(0.05)
    sender.close()                             # at exit, from any thread

Nothing here makes a thread, imports, prints, or raises: troubles end up in ``trouble``.
"""

from __future__ import annotations

from _thread import LockType
from collections.abc import Callable
from typing import NoReturn

from shapetrace._exception_table import covering_jumps
from shapetrace.transport.connection import Connection, ConnectionLost
from shapetrace.transport.framing import (
    LONGEST,
    LONGEST_BEFORE_PROOF,
    Decoder,
    FrameError,
    Message,
    decode,
    encode,
)
from shapetrace.transport.handshake import (
    HandshakeError,
    hello_message,
    read_answer,
    read_challenge,
)
from shapetrace.transport.messages import Connect, Hello, ProcessInfo, Refusal, write
from shapetrace.transport.originals import Deadline, System
from shapetrace.transport.outbox import MOST_BYTES, MOST_FRAMES, Outbox
from shapetrace.transport.proof import PROTOCOL, Exchange, new_nonce
from shapetrace.transport.session_address import SessionAddress

PATIENCE = 60.0
"""Seconds after which a server that does not come back is given up."""

_CONNECT_WITHIN = 1.0
_WELCOME_WITHIN = 15.0
"""Seconds; a server that is reading what another process sent may be late."""
_STRANGER = "the server there does not know the session's token"
_FIRST_DELAY = 0.1
_LONGEST_DELAY = 2.0
_STABLE_AFTER = 5.0
"""Seconds after which a connection counts as good, so that the next one is tried at once."""
_REFUSALS = 6
"""How often to be refused, or met by a stranger, in a row: a restarted server knows its sessions
only after a moment."""
_SEND_AT_ONCE = 256 * 1024


class Sender:
    """A connection that is kept up, and a queue that never blocks who fills it.

    Each connection starts from nothing: what was queued or sent before belongs to one that is
    gone, and ``on_connected`` is where the agent starts its rows anew. Until then ``offer`` takes
    nothing, and that is not counted as dropped.

    One thread calls ``step`` and ``offer``; the callbacks run in it, within ``step`` or ``close``.
    ``close`` may come from another one.
    """

    trouble: str
    """The last problem, or an empty text."""
    is_over: bool
    """No connection will be made any more: closed, given up, or refused for good."""

    def __init__(
        self,
        address: SessionAddress,
        process: ProcessInfo,
        *,
        on_connected: Callable[[], object],
        on_command: Callable[[Message], object],
        patience: float = PATIENCE,
        most_bytes: int = MOST_BYTES,
        most_frames: int = MOST_FRAMES,
    ) -> None:
        self.trouble = ""
        self.is_over = False
        self._address = address
        self._hello = Hello(address.session, process)
        encode(
            hello_message(self._hello, ""), LONGEST_BEFORE_PROOF
        )  # Raises what is wrong with it.
        self._on_connected = on_connected
        self._on_command = on_command
        self._patience = patience
        self._outbox = Outbox(most_bytes, most_frames)
        self._turn = System.lock()
        """Held while the connection is used."""
        self._asleep = _held_lock()
        """Let go to end a wait for something to do."""
        self._process_id = System.process_id()
        self._closing = False
        self._connection: Connection | None = None
        self._decoder = Decoder()
        self._in_flight = memoryview(b"")
        self._nonce = ""
        """Ours of this connection."""
        self._is_proven = False
        """Whether the server has proven that it knows the token."""
        self._welcomed = False
        self._connected_at = 0.0
        self._trouble_since: float | None = None
        self._delay = _FIRST_DELAY
        self._next_try = System.now()
        self._refusals = 0

    @property
    def is_connected(self) -> bool:
        """Whether the server has welcomed us and the connection is open."""
        return self._welcomed

    @property
    def dropped(self) -> int:
        """How many messages were dropped, as the server was too slow or they could not be sent."""
        return self._outbox.dropped

    @property
    def waiting(self) -> int:
        """How many bytes have not been sent yet."""
        return self._outbox.waiting + len(self._in_flight)

    def has_room(self) -> bool:
        """Return whether it is worth making a message to offer."""
        return self._welcomed and not self.is_over and self._outbox.has_room()

    def offer(self, message: Message, *, important: bool = False) -> bool:
        """Queue a message; False if it was dropped. Returns at once, whatever the server does.

        Important ones, small and rare, find room when rows do not.
        """
        self._notice_fork()
        if not self._welcomed or self.is_over:
            return False
        try:
            if not self._outbox.has_room(important):
                self._outbox.drop()
                return False
            frame = encode(message)
        except Exception as error:
            self.trouble = str(error)
            self._outbox.drop()
            return False
        return self._outbox.put(frame, important)

    def wake(self) -> None:
        """Have ``step`` end at once, as there is something to offer. From any thread."""
        try:
            self._asleep.release()
        except RuntimeError:
            pass  # It has been woken already.

    @covering_jumps
    def step(self, timeout: float) -> None:
        """Send, receive, connect: whatever there is to do, for about so many seconds.

        Ends early when a connection has been made, a command has come, or at ``wake``.
        """
        self._notice_fork()
        deadline = Deadline(timeout)
        if not self._turn.acquire(False):
            # Another thread is closing.
            deadline.sleep()
            return
        try:
            while not self._run_once(deadline) and deadline.left() > 0 and not self._closing:
                pass
        except Exception as error:
            self._lose(f"fault in the sender: {error!r}")
        finally:
            self._turn.release()

    def close(self, timeout: float = 2.0) -> bool:
        """Send what is queued, within this time, and end; whether all of it was sent.

        Where there is no connection yet, one is tried, and ``on_connected`` is called: a short
        program may end before its first step.
        """
        self._notice_fork()
        self._closing = True
        deadline = Deadline(timeout)
        if not self._turn.acquire(True, max(timeout, 0.0)):
            self.is_over = True
            return False
        try:
            return self._flush(deadline, timeout)
        except Exception as error:
            self.trouble = f"fault in the sender: {error!r}"
            return False
        finally:
            self._disconnect()
            self.is_over = True
            self._turn.release()

    def after_fork_in_child(self) -> None:
        """Let go of the parent's connection without ending it; this sender is over."""
        connection = self._connection
        self.is_over = True
        self._is_proven = self._welcomed = False
        self._connection = None
        self._in_flight = memoryview(b"")
        self._turn = System.lock()
        self._asleep = _held_lock()
        self._outbox.after_fork_in_child()
        self._process_id = System.process_id()
        if connection is not None:
            connection.close()

    def _notice_fork(self) -> None:
        """Programs can fork without Python's fork callbacks."""
        if self._process_id != System.process_id():
            self.after_fork_in_child()

    def _run_once(self, deadline: Deadline) -> bool:
        """Do one thing, or wait for one stretch; whether there is news for the agent."""
        if self.is_over:
            if self._connection is not None:
                self._disconnect()
            deadline.sleep()
            return False
        try:
            if self._connection is None:
                self._connect_when_due(deadline)
                return False
            if self._has_something_to_send():
                self._send(deadline)
                return self._receive(self._connection, deadline, 0.0)
            if not self._welcomed:
                return self._receive(self._connection, deadline, deadline.stretch())
            return self._sleep(deadline) or self._receive(self._connection, deadline, 0.0)
        except (ConnectionLost, FrameError, HandshakeError) as error:
            self._lose(str(error))
            return False

    def _flush(self, deadline: Deadline, timeout: float) -> bool:
        if self._connection is None:
            self._next_try = System.now()
        connects = 1
        while True:
            if self.is_over or (self._connection is None and connects == 0):
                return False
            if self._welcomed and not self._has_something_to_send():
                return True
            if deadline.left() <= 0:
                self.trouble = "there was no time left to send the rest"
                return False
            if self._connection is None:
                connects -= 1
            elif not self._welcomed and System.now() - self._connected_at > timeout:
                # It had as much time before: the end of the program does not wait for it again.
                self.trouble = "the language server does not answer"
                return False
            self._run_once(deadline)

    def _connect_when_due(self, deadline: Deadline) -> None:
        wait = self._next_try - System.now()
        if wait > 0:
            deadline.sleep(wait)
            return
        self._connection = Connection(self._address.port, _CONNECT_WITHIN)
        self._decoder = Decoder()
        self._nonce = new_nonce()
        first = write(Connect(self._address.session, self._nonce, PROTOCOL))
        self._in_flight = memoryview(encode(first, LONGEST_BEFORE_PROOF))
        self._connected_at = System.now()

    def _has_something_to_send(self) -> bool:
        return bool(self._in_flight) or (self._welcomed and not self._outbox.is_empty)

    def _send(self, deadline: Deadline) -> None:
        assert self._connection is not None
        if not self._in_flight:
            self._in_flight = memoryview(self._outbox.take(_SEND_AT_ONCE))
        seconds = deadline.stretch()
        sent = self._connection.send(self._in_flight, seconds)
        self._in_flight = self._in_flight[sent:]
        if not sent:
            deadline.waited_in_vain(max(seconds, 0.0001))

    def _sleep(self, deadline: Deadline) -> bool:
        """Wait for a stretch; whether we were woken. A command may wait for as long."""
        seconds = deadline.stretch()
        is_woken = self._asleep.acquire(True, seconds)
        deadline.waited_in_vain(0.0 if is_woken else seconds)
        return is_woken

    def _receive(self, connection: Connection, deadline: Deadline, seconds: float) -> bool:
        data = connection.receive(seconds)
        if data is None:
            deadline.waited_in_vain(seconds)
            if not self._welcomed and System.now() - self._connected_at > _WELCOME_WITHIN:
                raise ConnectionLost("the language server does not answer")
            return False
        self._decoder.feed(data)
        news = False
        while (payload := self._decoder.take()) is not None:
            self._take_message(decode(payload))
            news = True
        return news

    def _take_message(self, message: Message) -> None:
        if not self._is_proven:
            self._take_challenge(message)
        elif not self._welcomed or message["type"] == "refused":
            answer = read_answer(message)
            if isinstance(answer, Refusal):
                self._is_refused(answer)
            self._refusals = 0
            self._outbox.clear()
            self._welcomed = True
            self._call(self._on_connected)
        else:
            self._call(lambda: self._on_command(message))

    def _take_challenge(self, message: Message) -> None:
        """Say who we are to a server that knows the token, and nothing to any other."""
        challenge = read_challenge(message)
        if isinstance(challenge, Refusal):
            self._is_refused(challenge)
        address = self._address
        exchange = Exchange(
            address.session, address.token, address.port, self._nonce, challenge.nonce
        )
        if not exchange.is_proof("server", challenge.proof):
            self._refusals += 1
            raise HandshakeError(_STRANGER)
        self._is_proven = True
        self._decoder.longest = LONGEST
        hello = hello_message(self._hello, exchange.proof("agent"))
        self._in_flight = memoryview(encode(hello, LONGEST_BEFORE_PROOF))

    def _is_refused(self, answer: Refusal) -> NoReturn:
        self._refusals += 1
        raise ConnectionLost(f"the language server refuses: {answer.reason}")

    def _call(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception as error:
            self.trouble = f"fault in the agent: {error!r}"

    def _lose(self, reason: str) -> None:
        """Note the end of a connection, or that none could be made, and when to try again."""
        now = System.now()
        if self._welcomed:
            self._trouble_since = None  # It had come back.
            if now - self._connected_at > _STABLE_AFTER:
                self._delay = _FIRST_DELAY
        if self._trouble_since is None:
            self._trouble_since = now
        self.trouble = reason
        self._disconnect()
        self._next_try = now + self._delay
        self._delay = min(self._delay * 2, _LONGEST_DELAY)
        if self._refusals >= _REFUSALS or now - self._trouble_since > self._patience:
            self.is_over = True

    def _disconnect(self) -> None:
        connection = self._connection
        self._connection = None
        self._is_proven = self._welcomed = False
        self._in_flight = memoryview(b"")
        self._outbox.clear()
        if connection is not None:
            connection.finish()


def _held_lock() -> LockType:
    lock = System.lock()
    lock.acquire()
    return lock
