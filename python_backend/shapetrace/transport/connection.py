"""One connection to the language server, as the agent holds it."""

from __future__ import annotations

import _socket
import errno
import os
import sys
from typing import Final

from shapetrace._exception_table import covering_jumps
from shapetrace.transport.originals import System

_LOOPBACK: Final = "127.0.0.1"
_RECEIVE_AT_ONCE = 64 * 1024
# A program may have given SIGPIPE its default action back, which ends the process.
_NO_SIGNAL: int = getattr(_socket, "MSG_NOSIGNAL", 0)
_NO_SIGNAL_OPTION = 0x1022 if sys.platform == "darwin" else None


class ConnectionLost(Exception):
    """The connection cannot be made, or has ended; the message says how."""


class Connection:
    """A socket of ours in the program's process.

    Nothing here waits longer than it is told to, and nothing touches the descriptor once the
    program has closed it behind our back, as programs that turn into daemons do: the number may
    stand for a file of the program's then.
    """

    def __init__(self, port: int, timeout: float) -> None:
        self._identity: tuple[int, int] | None = None
        try:
            self._socket = System.Socket(_socket.AF_INET, _socket.SOCK_STREAM)
        except OSError as error:
            raise ConnectionLost(_said(error)) from None
        try:
            # Before anything else: the program may have set a default timeout, or none.
            self._socket.settimeout(max(timeout, 0.01))
            self._identity = self._status()
            self._connect(port)
        except OSError as error:
            self.close()
            raise ConnectionLost(_said(error)) from None
        except BaseException:
            self.close()
            raise

    def send(self, data: memoryview, timeout: float) -> int:
        """Send some of it; how many bytes, which is 0 when the other end took none in time."""
        self._check()
        try:
            self._socket.settimeout(timeout)
            return self._socket.send(data, _NO_SIGNAL)
        except (TimeoutError, BlockingIOError):
            return 0
        except OSError as error:
            raise ConnectionLost(_said(error)) from None

    def receive(self, timeout: float) -> bytes | None:
        """The received bytes; None if none arrived in time."""
        self._check()
        try:
            self._socket.settimeout(timeout)
            data = self._socket.recv(_RECEIVE_AT_ONCE)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError as error:
            raise ConnectionLost(_said(error)) from None
        if not data:
            raise ConnectionLost("the language server has closed the connection")
        return data

    @covering_jumps
    def finish(self) -> None:
        """Say that nothing more follows, so that the other end gets all of what was sent."""
        try:
            self._check()
            self._socket.shutdown(_socket.SHUT_WR)
            # What has arrived and is never read would make closing take back what was sent.
            while self.receive(0.0):
                pass
        except (OSError, ConnectionLost):
            pass
        self.close()

    def close(self) -> None:
        """Let go of the descriptor. In a forked child the parent's connection lives on."""
        try:
            if self._is_ours():
                self._socket.close()
            else:
                self._socket.detach()
        except OSError:
            pass

    def _connect(self, port: int) -> None:
        problem = self._socket.connect_ex((_LOOPBACK, port))
        if problem:
            raise OSError(problem, os.strerror(problem))
        if self._socket.getsockname() == self._socket.getpeername():
            # If no process listens, TCP can connect a port of this range to itself.
            raise OSError(errno.ECONNREFUSED, "connected to itself")
        self._socket.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        if _NO_SIGNAL_OPTION is not None:
            self._socket.setsockopt(_socket.SOL_SOCKET, _NO_SIGNAL_OPTION, 1)

    def _check(self) -> None:
        if not self._is_ours():
            raise ConnectionLost("the program has closed the connection's descriptor")

    def _is_ours(self) -> bool:
        return self._identity is None or self._identity == self._status()

    def _status(self) -> tuple[int, int] | None:
        """A value that identifies the socket among all files; None if the system has none."""
        if sys.platform == "win32":
            return None
        try:
            status = System.file_status(self._socket.fileno())
        except OSError:
            return None
        return status.st_dev, status.st_ino


def _said(error: OSError) -> str:
    return str(error.strerror or error)
