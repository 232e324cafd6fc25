"""A lock that no exception of the program's leaves locked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from shapetrace._asynchronous import surely


class Turn:
    """Something that one thread does at a time.

    An exception may come just as a lock has been acquired, before any ``try`` begins. So what is
    let go of at the end is what this thread has, and not what it knows to have acquired.
    """

    def __init__(self) -> None:
        # Of its own means to say who has it: there are none in public.
        self._lock: Final[Any] = threading.RLock()

    def take(self, action: Callable[[], object], wait: bool) -> bool:
        """Call an action, unless another thread, or this one further out, is at it."""
        lock = self._lock
        if lock._is_owned():
            return False
        try:
            is_taken: bool = lock.acquire(wait)
            if is_taken:
                action()
            return is_taken
        finally:
            surely(self._let_go)

    def _let_go(self) -> None:
        if self._lock._is_owned():
            self._lock.release()
