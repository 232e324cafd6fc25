"""A stack for the handlers of signals: on one that has overflown nothing can be called any more."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any, Final

_SIZE: Final = 8 << 20
"""As much as a thread has; none of it is taken before it is used."""

_DISABLED: Final = 2
"""SS_DISABLE: there is none."""


class _Stack(ctypes.Structure):
    """Linux's ``stack_t``."""

    _fields_ = (("place", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


class AlternateStack:
    """The stack on which handlers of this thread's signals run, where they are to."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._place = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._former: _Stack | None = None

    def install(self) -> None:
        """Be there for the thread that calls this."""
        former = _exchanged(_Stack(self._place, 0, _SIZE))
        if former is not None and former.place != self._place:
            self._former = former

    def remove(self) -> None:
        """Put back what was there, if this is the thread, and nothing has taken its place since."""
        former, self._former = self._former, None
        present = _exchanged(None)
        if former is not None and present is not None and present.place == self._place:
            _exchanged(former)


def is_possible() -> bool:
    """Return whether Python can run on another stack.

    From 3.14 on it knows where a thread's own ends, and ends the process elsewhere.
    """
    return sys.platform == "linux" and sys.version_info < (3, 14)


def _exchanged(new: _Stack | None) -> _Stack | None:
    """The previous stack; None if it is unknown or must not be replaced."""
    function: Any = ctypes.CDLL(None).sigaltstack
    function.argtypes = [ctypes.POINTER(_Stack), ctypes.POINTER(_Stack)]
    former = _Stack(None, _DISABLED, 0)
    return former if function(new, former) == 0 else None
