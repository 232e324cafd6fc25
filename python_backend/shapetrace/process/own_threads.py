"""Threads of ours in the program's process."""

from __future__ import annotations

import threading
from collections.abc import Callable


def own_thread(run: Callable[[], None], name: str) -> threading.Thread:
    """A thread that a debugger neither shows nor stops, and that the program does not wait for."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    # What the debugger asks of threads of its own.
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    return thread
