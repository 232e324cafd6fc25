"""Locks that are free again whatever is raised meanwhile, and after a fork."""

from __future__ import annotations

import os
import threading
from itertools import compress, repeat, starmap
from typing import Any, Final

from shapetrace._asynchronous import surely
from shapetrace._exception_table import catching_everywhere


def module_lock() -> Any:
    """Return a lock that a thread may take again, and that is free in each forked child.

    The thread that had it as the program forked is not there to let go of it.
    """
    lock: Any = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock


class holding:  # noqa: N801 (as ``threading.Lock``)
    """A lock that is taken for a block, and let go of whatever is raised meanwhile.

    A lock's own ``with`` loses what comes as it is entered, in Python 3.14. Used once.
    """

    __slots__ = ("_lock", "_taken")

    def __init__(self, lock: Any) -> None:
        self._lock: Final = lock
        self._taken: Final[list[bool]] = []

    @catching_everywhere
    def __enter__(self) -> None:
        try:
            # In one call, in which no exception comes after the lock has been taken.
            self._taken.extend(starmap(self._lock.acquire, ((),)))
        except BaseException:
            surely(self._let_go)
            raise

    @catching_everywhere
    def __exit__(self, *_: object) -> None:
        try:
            self._let_go()
        except BaseException:
            surely(self._let_go)
            raise

    def _let_go(self) -> None:
        # In one call again, or it would not be known whether it has been let go of already.
        taken = starmap(self._taken.pop, repeat((), len(self._taken)))
        for _each in starmap(self._lock.release, compress(repeat(()), taken)):
            pass
