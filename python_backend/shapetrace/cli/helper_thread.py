"""A thread of ours beside the program, which the program does not see."""

from __future__ import annotations

import _thread
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, repeat, takewhile
from operator import not_
from typing import Any

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding

NAP_SECONDS = 0.0005
MOST_NAPS = 20


class HelperThread:
    """Calls a function again and again; it returns the seconds until the next time, or None to end.

    The thread is not one of ``threading``'s, as programs that join all threads would wait for ever.
    While it waits it has no frame, as programs print those of all threads (pytest-timeout does).
    It is not there while the program forks: python warns of a fork among threads, and the child
    would inherit what the thread holds.
    """

    def __init__(self, step: Callable[[], float | None]) -> None:
        self._step = step
        self._pid = os.getpid()
        self._idents: list[int] = []
        """The thread's, while it runs."""
        self._stopped = True
        # Both are held while the thread runs: releasing the first asks it to end, and it releases
        # the second when it does.
        self._wanted = _thread.allocate_lock()
        self._running = _thread.allocate_lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork)

    def start(self) -> None:
        """Begin; the first call is made at once."""
        self._stopped = False
        self._begin()

    def stop(self) -> None:
        """End, and wait for that, unless called from the thread itself."""
        self._stopped = True
        self._end()

    def _begin(self) -> None:
        if self._idents:
            return
        self._wanted.acquire(blocking=False)
        # It may be held since a start that an exception of the program's has prevented.
        self._running.acquire(blocking=False)
        try:
            # In one call, so that none comes between the start of a thread and its being known.
            start: Any = _thread.start_new_thread
            self._idents.extend(map(start, (deque,), ((self._steps(), 0),)))
        except RuntimeError as error:
            if is_asynchronous(error):
                raise
            # The interpreter is shutting down, or may start no further thread.

    @leaving_surely
    def _end(self) -> None:
        if not self._idents or self._idents[0] == _thread.get_ident():
            return
        is_running = self._running.locked()
        threads = _thread._count()
        if self._wanted.locked():
            self._wanted.release()
        with holding(self._running):
            self._idents.clear()
        for _ in range(MOST_NAPS):
            if not is_running or _thread._count() < threads:
                break
            # It has done its last step, and leaves the interpreter when it is let run.
            time.sleep(NAP_SECONDS)

    def _steps(self) -> Iterator[object]:
        """The work of the thread as an iterator in C: it steps and waits by turns, then ends."""
        are_wanted = map(self._wanted.acquire, repeat(True), iter(self._next_wait, None))
        return chain(takewhile(not_, are_wanted), iter(self._end_thread, None))

    def _next_wait(self) -> float | None:
        try:
            wait = self._step()
        except BaseException:
            # Nothing that it does is worth an error in the program's output.
            wait = None
        if wait is None:
            self._stopped = True
        return wait

    def _end_thread(self) -> None:
        self._running.release()

    def _before_fork(self) -> None:
        if os.getpid() == self._pid:
            self._end()

    def _after_fork(self) -> None:
        if os.getpid() == self._pid and not self._stopped:
            self._begin()
