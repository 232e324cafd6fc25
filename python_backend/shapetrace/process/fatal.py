"""Doing something first where a signal is about to end the process, as ``faulthandler`` does.

Python's own handlers run only once the main thread is back in Python, which it is not after a
segmentation fault. So these are handlers of the system's, in place for one signal: they run on a
stack of their own, as that of what was interrupted may be full, put back what was there, and raise
the signal again, so that the process ends by it as it would have. Python knows nothing of them
(``signal.getsignal``), a handler that the program sets takes their place, and a forked or executed
child has none.

What is done may find a lock held, or memory damaged. So a second fault ends the process at once,
and so does the clock, after a while. It is set before Python is entered: the fault may have come
while the interpreter's own lock was being taken or given back.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from shapetrace.process.alarm_first import AlarmFirst
from shapetrace.process.alternate_stack import AlternateStack
from shapetrace.process.alternate_stack import is_possible as alternate_stack_is_possible

SECONDS: Final = 10
"""How long the end of the process is put off at most."""

_FAULTS: Final = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT")
"""Signals for which there may be a handler already: ``faulthandler``'s, which comes after ours."""

_REQUESTS: Final = ("SIGTERM", "SIGHUP", "SIGQUIT")
"""Signals that end the process unless something is done about them; then they are left alone."""

_DEEPER: Final = 1000
"""How many more calls within each other there may be for it."""

_Handler: Any = ctypes.CFUNCTYPE(None, ctypes.c_int)


class FatalSignals:
    """Calls a function with the name of the signal that is about to end this process."""

    def __init__(self, before_end: Callable[[str], None]) -> None:
        self._before_end = before_end

    def install(self) -> None:
        """Be there from now on, where the system has such handlers."""
        if os.name != "posix":
            return
        global _handlers
        if _handlers is None:
            _handlers = _Handlers()
        _handlers.add(self._before_end)

    def remove(self) -> None:
        """Put back what was there, unless others are there still."""
        if _handlers is not None:
            _handlers.take_away(self._before_end)


class _Handlers:
    """The system's signal handlers: one set for this process, however many callbacks there are."""

    def __init__(self) -> None:
        self._told: list[Callable[[str], None]] = []
        self._pid = os.getpid()
        self._formers: dict[int, int] = {}
        # Kept for as long as the process runs: a signal may be under way.
        self._handler = _Handler(self._handle)
        self._entry = AlarmFirst(_address(self._handler), SECONDS)
        self._stack = AlternateStack() if alternate_stack_is_possible() else None
        os.register_at_fork(after_in_child=self._begin_child)

    def add(self, before_end: Callable[[str], None]) -> None:
        """Tell this as well, and before the others. May be called again, where it was left."""
        if before_end not in self._told:
            self._told.append(before_end)
        if len(self._told) > 1:
            return
        if self._stack is not None:
            self._stack.install()
        ours = self._entry.address
        for name in (*_FAULTS, *_REQUESTS):
            number = int(getattr(signal, name))
            former = _get(number)
            if former == ours or (former != _DEFAULT and name in _REQUESTS):
                continue
            _set(number, ours, once=name in _REQUESTS)
            self._formers[number] = former

    def take_away(self, before_end: Callable[[str], None]) -> None:
        """Tell this no more."""
        if before_end in self._told:
            self._told.remove(before_end)
            if not self._told:
                self._put_back()

    def _put_back(self) -> None:
        """Put back what was there; what the program has set since stays."""
        ours = self._entry.address
        while self._formers:
            number, former = self._formers.popitem()
            # The system removes a handler after one signal by itself.
            if _get(number) == ours:
                _set(number, former)
        if self._stack is not None:
            self._stack.remove()

    def _begin_child(self) -> None:
        self._told.clear()
        self._put_back()
        self._pid = os.getpid()

    def _handle(self, number: int) -> None:
        former = self._formers.get(number, _DEFAULT)
        told, self._told = self._told, []
        try:
            # Once more, where there is no code to do so first.
            signal.alarm(0)
            _set(int(signal.SIGALRM), _DEFAULT)
            signal.alarm(SECONDS)
            self._put_back()
            # Whatever has come so deep may have left us no room.
            sys.setrecursionlimit(sys.getrecursionlimit() + _DEEPER)
            if os.getpid() == self._pid:
                for before_end in reversed(told):
                    before_end(signal.Signals(number).name)
        except BaseException as error:
            if os.environ.get("SHAPETRACE_DEBUG"):
                sys.excepthook(type(error), error, error.__traceback__)
        finally:
            _set(number, former)
            # Held back until this returns, where signals do not come within their own handlers.
            signal.pthread_kill(threading.get_ident(), number)


_handlers: _Handlers | None = None
_DEFAULT: Final = 0


def _get(number: int) -> int:
    function: Any = ctypes.pythonapi.PyOS_getsig
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_int]
    return function(number) or _DEFAULT


def _set(number: int, handler: int, *, once: bool = False) -> None:
    """Have the system call this; for one signal only, where that is wanted and the system can.

    A thread that never gives the interpreter back keeps ours from running: a second signal ends the
    process all the same.
    """
    function: Any = ctypes.pythonapi.PyOS_setsig
    if once:
        function = getattr(ctypes.CDLL(None), "sysv_signal", function)
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
    function(number, handler)


def _address(handler: Any) -> int:
    return int(ctypes.cast(handler, ctypes.c_void_p).value or 0)
