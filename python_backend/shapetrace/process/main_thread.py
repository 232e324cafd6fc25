"""Having the main thread do something in between, as soon as it runs Python code again.

What it runs meanwhile is not disturbed: the interpreter calls in between two instructions, as it
does for the handler of a signal.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import catching_everywhere
from shapetrace._pending_exceptions import raise_later

_waiting: deque[Callable[[FrameType], object]] = deque()
_entry: Any = None
"""The callback for the interpreter; kept for good, as it may be pending."""


def soon_on_main_thread(function: Callable[[FrameType], object]) -> bool:
    """Have the main thread call a function with the frame it is in; False where that cannot be.

    The function reports its own errors.
    """
    global _entry
    try:
        import ctypes

        if _entry is None:
            _entry = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_call_next)
        _waiting.append(function)
        # Zero is what success is; there is room for a few dozens.
        if ctypes.pythonapi.Py_AddPendingCall(_entry, None) == 0:
            return True
        _waiting.remove(function)
    except (ImportError, AttributeError, ValueError):
        pass  # a Python without ctypes
    return False


@catching_everywhere
def _call_next(_: int | None) -> int:
    try:
        _waiting.popleft()(sys._getframe(1))
        return 0
    except BaseException as error:
        if is_asynchronous(error):
            later = raise_later(error)  # Here it would be lost.
            del later
        return 0


def raise_on_main_thread() -> bool:
    """Have the main thread raise what ends it, as soon as it is back from what it waits for."""
    import ctypes

    ident = threading.main_thread().ident or 0
    raised: Callable[..., int] = ctypes.pythonapi.PyThreadState_SetAsyncExc
    return raised(ctypes.c_ulong(ident), ctypes.py_object(SystemExit)) == 1
