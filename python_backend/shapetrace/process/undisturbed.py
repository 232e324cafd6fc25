"""Run code after the program's end that its signal handlers must not interrupt.

A timer that the program has left running would not have fired any more without us. What it raises
now must not keep us from giving out what was recorded.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import catching_everywhere, covering_jumps

_Result = TypeVar("_Result")


@covering_jumps
def undisturbed(action: Callable[[], _Result]) -> _Result:
    """Do something during which handlers of the program's raise nothing; Ctrl-C still interrupts.

    Python itself drops what they raise at the end of a program.
    """
    if threading.current_thread() is not threading.main_thread():
        return action()  # They run in the main thread only.
    handlers: dict[int, tuple[Any, Any]] = {}
    try:
        while not _are_replaced(handlers):
            pass
        return action()
    finally:
        for replaced, (handler, stand_in) in handlers.items():
            if signal.getsignal(replaced) is stand_in:
                signal.signal(replaced, handler)


@catching_everywhere
def _are_replaced(handlers: dict[int, tuple[Any, Any]]) -> bool:
    """Replace handlers by harmless ones; returns whether none of them has run meanwhile."""
    try:
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler) and handler is not signal.default_int_handler:
                if number in handlers and handler is handlers[number][1]:
                    continue
                stand_in = _harmless(handler)
                handlers[number] = (handler, stand_in)
                signal.signal(number, stand_in)
        return True
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not is_asynchronous(error):
            raise
        return False


def _harmless(handler: Callable[[int, FrameType | None], Any]) -> Callable[..., None]:
    def handle(number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except KeyboardInterrupt:
            raise
        except BaseException:
            pass

    return handle
