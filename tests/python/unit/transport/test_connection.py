from __future__ import annotations

import _socket
import contextlib
import gc
import os
import socket
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from shapetrace.transport.connection import Connection, ConnectionLost
from shapetrace.transport.originals import Deadline, System


@contextlib.contextmanager
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connection = Connection(listening.getsockname()[1], 5.0)
        accepted, _ = listening.accept()
    with accepted:
        yield connection, accepted
    connection.close()


def sendall(connection: Connection, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[connection.send(view, 5.0) :]


def test_both_directions() -> None:
    with pair() as (connection, other):
        assert connection.send(memoryview(b"hello"), 5.0) == 5
        assert other.recv(10) == b"hello"
        assert connection.receive(0.0) is None
        other.sendall(b"welcome")
        assert connection.receive(5.0) == b"welcome"


def test_a_default_timeout_of_the_programs_changes_nothing() -> None:
    socket.setdefaulttimeout(1e-6)
    try:
        with pair() as (connection, other):
            other.setblocking(True)
            other.sendall(b"welcome")
            assert connection.receive(5.0) == b"welcome"
    finally:
        socket.setdefaulttimeout(None)


def test_children_do_not_inherit_it() -> None:
    with pair() as (connection, _):
        assert not os.get_inheritable(connection._socket.fileno())


def test_the_rest_arrives_after_finishing_though_something_was_never_read() -> None:
    with pair() as (connection, other):
        other.sendall(b"wake")
        sent = 0
        # As much as the system keeps: what it has not delivered yet would be lost by a reset.
        while taken := connection.send(memoryview(b"x" * 1_000_000), 0.0):
            sent += taken
        connection.finish()
        assert sum(map(len, iter(lambda: other.recv(1 << 20), b""))) == sent


def test_the_end_is_told() -> None:
    with pair() as (connection, other):
        other.close()
        with pytest.raises(ConnectionLost, match="has closed the connection"):
            connection.receive(5.0)
        with pytest.raises(ConnectionLost):
            sendall(connection, b"x" * 10_000_000)


def test_finishing_and_closing_twice_do_nothing() -> None:
    with pair() as (connection, _):
        connection.close()
        connection.finish()
        connection.close()
        with pytest.raises(ConnectionLost):
            connection.receive(0.0)


def test_a_port_that_was_connected_to_itself_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    class SelfConnected(_socket.socket):
        def getpeername(self) -> Any:
            return self.getsockname()

    monkeypatch.setattr(System, "Socket", SelfConnected)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        pytest.raises(ConnectionLost, match="connected to itself"),
    ):
        Connection(listening.getsockname()[1], 5.0)


def test_a_descriptor_beyond_a_thousand_works() -> None:
    # select() takes none of those, and a program may have as many files open.
    with contextlib.ExitStack() as stack:
        connection, other = stack.enter_context(pair())
        high = os.dup2(connection._socket.fileno(), _free_descriptor())
        replaced = connection._socket
        connection._socket = System.Socket(fileno=high)
        replaced.close()
        other.sendall(b"welcome")
        assert connection.receive(5.0) == b"welcome"
        assert connection.send(memoryview(b"x"), 5.0) == 1


def _free_descriptor() -> int:
    return next(number for number in range(1100, 4000) if not _is_open(number))


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@pytest.mark.slow
def test_a_failed_connection_leaves_nothing_behind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConnectionLost):
            Connection(port, 1.0)
        gc.collect()


def test_a_deadline_ends_by_the_clock_or_by_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(System, "now", staticmethod(lambda: now))
    deadline = Deadline(2.0)
    assert deadline.left() == 2.0
    assert deadline.stretch() == 0.1
    now = 101.5
    assert deadline.left() == 0.5
    deadline.waited_in_vain(1.75)
    assert deadline.left() == 0.25
    now = 103.0
    assert deadline.left() == deadline.stretch() == 0.0


def test_sleeping_ends_where_the_clock_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(System, "now", staticmethod(lambda: 100.0))
    slept: list[float] = []
    monkeypatch.setattr(System, "sleep", staticmethod(slept.append))
    deadline = Deadline(0.25)
    while deadline.left() > 0:
        deadline.sleep()
    assert sum(slept) == pytest.approx(0.25)
    nothing_to_wait_for = Deadline(0.01)
    while nothing_to_wait_for.left() > 0:
        nothing_to_wait_for.sleep(0.0)
