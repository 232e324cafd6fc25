"""Count the processes that `multiprocessing` spawns: nothing of ours runs in them.

These are processes of the contexts `spawn` and `forkserver`. The step that each takes to start a
process is replaced. None of the program's own code runs in it: pickling comes before or after.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Final

from shapetrace._asynchronous import clean
from shapetrace._exception_table import catching_everywhere
from shapetrace.cli.notes import counted
from shapetrace.recorder.arrival import when_imported

_STEPS: Final = {
    "multiprocessing.spawn": "get_command_line",
    "multiprocessing.forkserver": "connect_to_new_process",
}
_REMEDIES: Final = {
    "traced": ("shapetrace.trace", "run"),
    "captured": ("shapetrace.ModelTracer", "capture"),
}
"""What to use instead in a process, and under torchrun."""


class SpawnedProcesses:
    """Counts these processes from when this is begun until it is ended. Imports none of it."""

    def __init__(self) -> None:
        self.number = 0
        self._undo: Final[list[Callable[[], None]]] = []

    def begin(self) -> None:
        """From now on."""
        for module in _STEPS:
            self._undo.append(when_imported(module, functools.partial(self._replace, module)))

    def end(self) -> None:
        """Put back what was there."""
        while self._undo:
            self._undo.pop()()

    def line(self, missed: str) -> str | None:
        """The message for the end; None if there was no such process.

        They were not ``missed``: "traced" or "captured".
        """
        if not self.number:
            return None
        processes = counted(self.number, "process", "processes")
        was = "was" if self.number == 1 else "were"
        within, command = _REMEDIES[missed]
        return (
            f"{processes} that the program spawned {was} not {missed}; "
            f"use {within} in their code, or start ranks with torchrun -m shapetrace {command}"
        )

    def _replace(self, module: str) -> None:
        owner: Any = sys.modules[module]
        name = _STEPS[module]
        original = getattr(owner, name)

        @functools.wraps(original)
        @catching_everywhere
        def start(*arguments: Any, **keywords: Any) -> Any:
            try:
                result = original(*arguments, **keywords)
                self.number += 1
                return result
            except BaseException as error:
                clean(error)
                raise

        def put_back() -> None:
            if getattr(owner, name) is start:
                setattr(owner, name, original)

        setattr(owner, name, start)
        self._undo.append(put_back)
