"""Having an asynchronous exception come at a chosen instruction of a program.

A timer's signal comes anywhere. Here it comes just before the n-th instruction that runs, for each
n if need be: Python then calls the handler at the next place where it looks for signals, exactly as
it does for a signal that had come by itself.
"""

from __future__ import annotations

import _imp
import _thread
import ctypes
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle, repeat
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

SIGNAL = signal.SIGUSR1


def import_lock_let_go() -> bool:
    """Let go of the import system's lock, and return whether this thread had kept it.

    Python itself keeps it where an exception comes as it is about to let go of it. All other
    threads wait for ever then when they import.
    """
    kept = False
    while _imp.lock_held():
        try:
            _imp.release_lock()
        except RuntimeError:
            break  # It is another thread's, which is importing.
        kept = True
    return kept


class _Holder:
    """Lets go of itself without a call, at which Python would look for signals too early."""


@contextmanager
def handled_by(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Have a handler of the program's called for the signal."""
    before = signal.signal(SIGNAL, handler)
    try:
        yield
    finally:
        signal.signal(SIGNAL, before)


def raising(kind: type[BaseException]) -> Callable[[int, Any], None]:
    """Return a handler that raises."""

    def handle(signum: int, frame: object) -> None:
        raise kind

    return handle


def signals() -> Iterator[Any]:
    """Each item that is taken has the signal come."""
    return map(_thread.interrupt_main, repeat(SIGNAL))


def exceptions(kind: type[BaseException]) -> Iterator[Any]:
    """Each item that is taken has an exception set in this thread, as other threads may do it."""
    set_exception: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
    return map(set_exception, repeat(ctypes.c_ulong(get_ident())), repeat(ctypes.py_object(kind)))


def signals_and_exceptions(kind: type[BaseException]) -> Iterator[Any]:
    """By turns, the signal comes and an exception is set in this thread."""
    return map(next, cycle((signals(), exceptions(kind))))


class Interrupter:
    """Runs functions and interrupts them."""

    def __init__(
        self, effects: Iterator[Any], counts: Callable[[CodeType], bool] = lambda code: True
    ) -> None:
        self._effects = effects
        self._counts = counts
        """Of which code the instructions are counted."""
        self.count = 0
        """Instructions that ran until the interrupt, or in all."""
        self.place = ""
        """Where the program was then."""
        self._reference: Any = None

    def run(self, function: Callable[[], Any], at: int | None = None) -> Any:
        """Call a function, with an interrupt before the n-th instruction from now on."""
        self.count = 0
        self.place = ""
        effects, counts = self._effects, self._counts

        def trace_code(frame: FrameType, event: str, _: Any) -> Any:
            if event != "opcode":
                return trace_code
            self.count += 1
            if self.count != at:
                return trace_code
            sys.settrace(None)
            code = frame.f_code
            self.place = f"{code.co_filename}:{frame.f_lineno} {code.co_qualname} {frame.f_lasti}"
            holder = _Holder()
            self._reference = weakref.ref(holder, partial(next, effects))
            del holder  # From here on it is on its way; no call may follow.
            return None

        def trace_call(frame: FrameType, _event: str, _: Any) -> Any:
            if not counts(frame.f_code):
                return None
            frame.f_trace = trace_code  # which Python 3.13 asks for before the next
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return trace_code

        before = sys.gettrace()
        # Python 3.12 looks at what frames ask for when tracing begins, and not again.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(trace_call)
        try:
            return function()
        finally:
            sys.settrace(before)
            import_lock_let_go()
