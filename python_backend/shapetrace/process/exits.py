"""Noticing that the program is about to be gone at once: ``os._exit`` and ``os.exec*``.

Neither runs anything more of this process, so what was recorded has to be given out before. They
are watched in the process that was started; its children leave as they like.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from shapetrace._asynchronous import clean
from shapetrace._exception_table import catching_everywhere
from shapetrace.process.undisturbed import undisturbed


class WatchedExits:
    """Calls a function first where the program leaves by ``os._exit``, ``os.execv``, ``execve``."""

    def __init__(self, before_leaving: Callable[[], None]) -> None:
        self._before_leaving = before_leaving
        self._pid = os.getpid()
        self._originals: dict[str, Callable[..., Any]] = {}
        self._watched: dict[str, Callable[..., Any]] = {}

    def install(self) -> None:
        """Begin to watch."""
        self._watch("_exit", lambda *arguments, **keywords: True)
        # The other functions of the family call one of these two.
        self._watch("execv", _can_execute)
        self._watch("execve", _can_execute)

    def remove(self) -> None:
        """Put back what was there; what the program has put there itself stays."""
        for name, original in self._originals.items():
            if getattr(os, name) is self._watched[name]:
                setattr(os, name, original)

    def leave(self, status: int) -> None:
        """``os._exit`` as it is."""
        self._originals.get("_exit", os._exit)(status)

    def _watch(self, name: str, will_leave: Callable[..., bool]) -> None:
        original = getattr(os, name)

        @functools.wraps(original)
        @catching_everywhere
        def watched(*arguments: Any, **keywords: Any) -> Any:
            try:
                if os.getpid() == self._pid and will_leave(*arguments, **keywords):
                    undisturbed(self._before_leaving)
                return original(*arguments, **keywords)
            except BaseException as error:
                # A bare raise does not add this frame again.
                clean(error)
                raise

        # Where it is found, so that it is pickled as a reference that any process can follow.
        watched.__module__ = "os"
        self._originals[name] = original
        self._watched[name] = watched
        setattr(os, name, watched)


def _can_execute(path: Any, *arguments: Any, **keywords: Any) -> bool:
    """Return whether executing this will not just fail: the search along PATH tries many."""
    try:
        return os.access(path, os.X_OK)
    except (TypeError, ValueError):
        return False
