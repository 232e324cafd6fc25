"""A program whose variables are watched: their history is printed as it happens.

What there is to say of names that brought nothing comes in the end, on stderr.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING

from shapetrace._dynamo import Bystander, stand_by
from shapetrace.cli.program_end import keep_interrupt
from shapetrace.cli.terminal import Terminal, ViewChoice
from shapetrace.process.exits import WatchedExits
from shapetrace.process.undisturbed import undisturbed

if TYPE_CHECKING:
    from shapetrace.watch.program_watch import Watch


@dataclass(frozen=True, slots=True)
class WatchChoice:
    """The variables that the user asked to watch."""

    names: tuple[str, ...]
    packages: tuple[str, ...] = ()
    """Installed packages in which it is watched too."""


class WatchedRun:
    """Prints the history of a program's variables."""

    def __init__(self, choice: WatchChoice, terminal: Terminal, look: ViewChoice) -> None:
        from shapetrace.variables.outlets import Printing
        from shapetrace.watch.program_watch import Watch

        self._terminal = terminal
        # The stream itself: what the program puts in its place is for what the program prints.
        printing = Printing(terminal.stdout, look.color, look.width)
        self._watch: Watch = Watch(choice.names, choice.packages, printing)
        self._pid = os.getpid()
        self._exits = WatchedExits(self.finish)
        self._is_over = False
        self._stop_counting_regions: Callable[[], None] | None = None

    def begin(self) -> None:
        """Get ready; nothing of the program has run."""
        atexit.register(self._at_exit)
        self._exits.install()
        # What is compiled is counted only while there is a bystander.
        self._stop_counting_regions = stand_by(Bystander())
        self._watch.begin()

    def abandon(self) -> None:
        """There was no program to run after all."""
        atexit.unregister(self._at_exit)
        self._exits.remove()
        self._end()

    def prepared(self, code: CodeType, module: str, text: Callable[[], str | None]) -> CodeType:
        """The code to run in place of a module's code."""
        return self._watch.prepared(code, module, text)

    def finish(self) -> None:
        """Say what brought nothing, once."""
        if self._is_over or os.getpid() != self._pid:
            return
        self._is_over = True
        self._exits.remove()
        self._end()
        try:
            sys.stdout.flush()
            self._terminal.stdout.flush()
        except (AttributeError, OSError, ValueError):
            pass  # Closed or replaced; there is no reader.
        for line in self._watch.lines():
            self._terminal.note(line)

    def _end(self) -> None:
        stop, self._stop_counting_regions = self._stop_counting_regions, None
        if stop is not None:
            stop()
        self._watch.end()

    def _at_exit(self) -> None:
        undisturbed(self.finish)
        keep_interrupt()
