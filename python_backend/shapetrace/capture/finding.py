"""Finding the model of a program that names none: the outermost module that is called.

The model is the first one that owns parameters and that any of the paths matches.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import Module

from shapetrace._asynchronous import is_asynchronous, surely
from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding
from shapetrace.capture.paths import ValuePath
from shapetrace.capture.plan import Plan
from shapetrace.capture.replacing import listen, stop_listening
from shapetrace.capture.structure import unwrapped

_MOST_REFUSED = 1000
"""How many refused modules are remembered."""


class _Here(threading.local):
    """State of one thread."""

    outermost: int | None = None
    """Id of our frame that makes the outermost call."""


class ModelFinder:
    """Waits for the model, and calls a function at the model's first call.

    The function returns a listener to that call, which has already begun. If an exception of the
    program's interrupts it, it is called again for the next call.
    """

    def __init__(self, paths: Sequence[ValuePath], found: Callable[[Module], Any]) -> None:
        self.misses: list[str] = []
        """Why the modules that were called were not taken, one line each."""
        self._paths = paths
        self._found = found
        self._here = _Here()
        self._refused: dict[int, weakref.ref[Module]] = {}
        """By id, which another module may get once one is gone."""
        self.was_interrupted = False
        """Whether an exception of the program's has come while a module was looked at or taken."""
        self._listener: Any = None
        self._is_found = False
        self._lock = threading.RLock()

    def start(self) -> None:
        """Begin to wait; can be repeated after an interruption."""
        stop_listening(Module, "__call__", self)
        listen(Module, "__call__", self, outermost=True)

    def stop(self) -> None:
        """Wait no longer."""
        stop_listening(Module, "__call__", self)
        self._refused.clear()

    def begins(self, arguments: tuple[Any, ...], keywords: dict[str, Any], frame: int) -> Any:
        """Any module is called."""
        if self._here.outermost is not None:
            return None
        self._here.outermost = frame
        if self._is_found:
            return (None, None)
        try:
            return self._outermost(arguments[0], frame)
        except BaseException as error:
            if is_asynchronous(error):
                self.was_interrupted = True
                raise
            self._note(f"{type(arguments[0]).__name__} could not be looked at: {error!r}")
            return (None, None)

    def ends(self, state: Any, result: Any) -> None:
        """The outermost call has returned."""
        listener, inner = state
        if inner is not None:
            listener.ends(inner, result)
        self._here.outermost = None

    def fails(self, frame: int) -> None:
        """A call has raised."""
        if self._here.outermost == frame:
            self._here.outermost = None
            if self._listener is not None:
                self._listener.fails(frame)

    @leaving_surely
    def _outermost(self, module: Module, frame: int) -> Any:
        refused = self._refused.get(id(module))
        if (refused is not None and refused() is module) or not self._is_wanted(module):
            return (None, None)
        with holding(self._lock):
            if self._is_found:
                return (None, None)
            listener = self._listener = self._found(module)
            self._is_found = True
        surely(self.stop)
        return (listener, listener.begins((module,), {}, frame))

    def _is_wanted(self, module: Module) -> bool:
        if torch._C._current_graph_task_id() != -1:
            return False
        if next(module.parameters(), None) is not None:
            plan = Plan(unwrapped(module), [self._paths])
            if len(plan.misses) < len(self._paths):
                return True
            self._note(str(plan.misses[0]))
        if len(self._refused) < _MOST_REFUSED:
            self._refused[id(module)] = weakref.ref(module)
        return False

    def _note(self, line: str) -> None:
        if line not in self.misses:
            self.misses.append(line)
