"""Ending the program once its trace is complete (``--stop-after-trace``).

SystemExit is raised where the last wanted forward pass returned, so that ``finally`` blocks run and
files are closed. Where that cannot reach the end of the program, stronger means follow, later:

1. the exception was swallowed (``except:``) or was raised in another thread: the main thread is
   interrupted as by Ctrl-C;
2. the program still goes on: the process ends at once, and what has not been tidied up is not.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import NoReturn

PATIENCE_SECONDS = 60.0
"""For ``finally`` blocks, other threads and exit handlers that are at work."""

SECONDS_AFTER_INTERRUPT = 5.0
"""For a program that has swallowed the exception, or has not got it."""

SECONDS_FOR_OTHER_THREAD = 1.0
"""For an exception from another thread to come to the main one, as futures pass them on."""

POLL_SECONDS = 0.2


class _Life:
    """Kept by an exception: gone when that is gone."""


class ProgramEnding:
    """The steps from a complete trace to the end of the process."""

    def __init__(
        self,
        interrupt_main: Callable[[], bool],
        end_process: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._interrupt_main = interrupt_main
        self._end_process = end_process
        self._clock = clock
        self._raised: weakref.ref[_Life] | None = None
        """None where it was not raised in the main thread."""
        self._is_asked_for = False
        self._deadline = 0.0
        self._asked_at = 0.0
        self._interrupted = False
        self._main_is_over = False

    @property
    def is_asked_for(self) -> bool:
        """Whether the program is to end."""
        return self._is_asked_for

    @property
    def has_interrupted(self) -> bool:
        """Whether an interrupt of the main thread is ours."""
        return self._interrupted

    def raise_in_program(self) -> NoReturn:
        """Begin: called on the program's thread."""
        self._is_asked_for = True
        self._asked_at = self._clock()
        self._deadline = self._asked_at + PATIENCE_SECONDS
        # Of this very class: debuggers stop at those derived from it, and threads report them.
        end = SystemExit(0)
        if threading.current_thread() is threading.main_thread():
            vars(end)["shapetrace"] = _Life()
            self._raised = weakref.ref(vars(end)["shapetrace"])
        try:
            raise end
        finally:
            # The traceback holds this frame: the exception would keep itself alive.
            del end

    def begin_from_beside(self) -> None:
        """Begin: called on a thread of ours, while the program does something else."""
        self._is_asked_for = True
        self._asked_at = self._clock()
        self._deadline = self._asked_at + PATIENCE_SECONDS
        self._interrupted = self._interrupt_main()

    def main_is_over(self) -> None:
        """The main program has ended: the rest is up to exit handlers and other threads."""
        if self._main_is_over:
            return
        self._main_is_over = True
        self._deadline = self._clock() + PATIENCE_SECONDS

    def step(self) -> float:
        """See how far it has come; returns the seconds until the next call."""
        now = self._clock()
        if not self._interrupted and not self._main_is_over and self._is_lost(now):
            self._interrupted = True
            self._interrupted = self._interrupt_main()
            self._deadline = now + (SECONDS_AFTER_INTERRUPT if self._interrupted else 0)
        if now >= self._deadline:
            self._end_process()
        return POLL_SECONDS

    def _is_lost(self, now: float) -> bool:
        """Return whether the exception can no longer end the main program."""
        if self._raised is None:
            return now - self._asked_at >= SECONDS_FOR_OTHER_THREAD
        # As long as it is on its way, the interpreter holds it.
        return self._raised() is None


def interrupt_main_thread() -> bool:
    """Do what Ctrl-C does; False if the program ignores it or would be killed."""
    if not callable(signal.getsignal(signal.SIGINT)):
        return False
    if hasattr(signal, "pthread_kill"):
        # Sent to the thread itself: only so does it leave a system call that it waits in.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
    return True
