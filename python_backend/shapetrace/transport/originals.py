"""What the agent uses of the system, out of the program's reach.

A program may replace anything: gevent puts its own into ``socket``, ``select``, ``threading`` and
``time``, freezegun and pyfakefs look through the names of *every* module, tests put doubles into
standard ones. So these are C functions, taken when the agent is imported, which is before the
program runs, and kept in a class, where no tool searches. Waiting is done by the socket itself, or
by a lock: ``select`` is replaced by gevent, and fails on POSIX once a program has a thousand files
open.
"""

from __future__ import annotations

import _socket
import _thread
import os
import time


class System:
    """References to the real ones."""

    Socket = _socket.socket
    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)
    lock = staticmethod(_thread.allocate_lock)
    file_status = staticmethod(os.fstat)
    process_id = staticmethod(os.getpid)


LONGEST_WAIT = 0.1
"""Seconds for which nothing waits at a stretch, so that closing never has to wait long."""


class Deadline:
    """A time by which something must end, even if the clock was made to stop."""

    def __init__(self, seconds: float) -> None:
        self._budget = seconds
        self._until = System.now() + seconds

    def left(self) -> float:
        """The seconds that remain, at least 0."""
        return max(0.0, min(self._until - System.now(), self._budget))

    def stretch(self) -> float:
        """How long to wait now."""
        return min(self.left(), LONGEST_WAIT)

    def waited_in_vain(self, seconds: float) -> None:
        """Count a wait that brought nothing."""
        self._budget -= seconds

    def sleep(self, longest: float = LONGEST_WAIT) -> None:
        """Wait for a stretch, but not longer than this."""
        seconds = min(self.stretch(), longest)
        System.sleep(seconds)
        # Something is always counted: a sleep of 0 must not become a loop without end.
        self.waited_in_vain(max(seconds, 0.0001))
