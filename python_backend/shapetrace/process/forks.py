"""Keep forks out of critical sections of a thread of ours.

A forked child has none of the other threads. Where one of these was importing a module, a child
that wants it too would wait for that thread forever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from threading import get_ident
from typing import Final

from shapetrace._locks import holding

MOST_SECONDS: Final = 5.0
"""The longest time that a fork waits: the section may wait for the forking thread."""

_at_work = threading.Lock()
_forking: int | None = None
"""The thread that has waited, and forks now."""


def undivided() -> holding:
    """Entered to do something during which forks have to wait."""
    return holding(_at_work)


def watch_forks(in_child: Callable[[bool], object]) -> None:
    """Have forks wait from now on, and say in children whether a section was cut in two."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_before,
            after_in_parent=_after_in_parent,
            after_in_child=lambda: in_child(_after_in_child()),
        )


def _before() -> None:
    global _forking
    if _at_work.acquire(timeout=MOST_SECONDS):
        _forking = get_ident()


def _after_in_parent() -> None:
    global _forking
    if _forking == get_ident():
        _forking = None
        _at_work.release()


def _after_in_child() -> bool:
    global _at_work, _forking
    was_whole = _forking == get_ident()
    _at_work, _forking = threading.Lock(), None
    return was_whole
