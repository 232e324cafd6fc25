"""Noticing that the process is about to end without the end that Python gives it."""

from __future__ import annotations

from collections.abc import Callable

from shapetrace.process.exits import WatchedExits
from shapetrace.process.fatal import FatalSignals


class EarlyExit:
    """Calls a function first where a signal ends the process, or ``os._exit`` or ``os.exec*``.

    It gets a line that says so of a signal, and None where the program leaves by itself.
    """

    def __init__(self, before_end: Callable[[str | None], None]) -> None:
        self._exits = WatchedExits(lambda: before_end(None))
        self._signals = FatalSignals(lambda name: before_end(ended_by(name)))

    def watch(self) -> None:
        """Begin to watch."""
        self._exits.install()
        self._signals.install()

    def cancel(self) -> None:
        """End it: the report is made or no longer wanted."""
        self._exits.remove()
        self._signals.remove()


def ended_by(name: str) -> str:
    """The message if a signal of this name ends the program."""
    return f"the program is ended by {name}; this is the trace so far"
