"""Finding the model of a program that names none: the outermost module that is called.

Of those that own parameters, the first is taken in which any of the paths means something.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import Module

from shapetrace.capture.paths import ValuePath
from shapetrace.capture.plan import Plan
from shapetrace.capture.replacing import listen
from shapetrace.capture.structure import unwrapped

_MOST_REFUSED = 1000
"""Modules that are known not to be the one."""


class ModelFinder:
    """Waits for the model, and calls back when it is called for the first time.

    What is called back gives a listener to that call, which is under way already.
    """

    def __init__(self, paths: Sequence[ValuePath], found: Callable[[Module], Any]) -> None:
        self.misses: list[str] = []
        """Why the modules that were called were not taken, one line each."""
        self._paths = paths
        self._found = found
        self._here = threading.local()
        self._refused: weakref.WeakValueDictionary[int, Module] = weakref.WeakValueDictionary()
        """By number, which another module may have once one is gone."""
        self._is_found = False
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = listen(Module, "__call__", self, outermost=True)

    def stop(self) -> None:
        """Wait no longer."""
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()
        self._refused.clear()

    def begins(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Any module is called."""
        depth = getattr(self._here, "depth", 0)
        self._here.depth = depth + 1
        if depth or self._is_found:
            return (None, None)
        try:
            return self._outermost(arguments[0])
        except Exception as error:
            self._note(f"{type(arguments[0]).__name__} could not be looked at: {error!r}")
            return (None, None)

    def ends(self, state: Any, result: Any) -> None:
        """It has returned."""
        self._here.depth -= 1
        listener, inner = state
        if inner is not None:
            listener.ends(inner, result)

    def fails(self, state: Any) -> None:
        """It has raised."""
        self._here.depth -= 1
        listener, inner = state
        if inner is not None:
            listener.fails(inner)

    def _outermost(self, module: Module) -> Any:
        if self._refused.get(id(module)) is module or not self._is_wanted(module):
            return (None, None)
        with self._lock:
            if self._is_found:
                return (None, None)
            self._is_found = True
        listener = self._found(module)
        self.stop()
        return (listener, listener.begins((module,), {}))

    def _is_wanted(self, module: Module) -> bool:
        if torch._C._current_graph_task_id() != -1:
            return False
        if next(module.parameters(), None) is not None:
            plan = Plan(unwrapped(module), [self._paths])
            if len(plan.misses) < len(self._paths):
                return True
            self._note(plan.misses[0])
        if len(self._refused) < _MOST_REFUSED:
            self._refused[id(module)] = module
        return False

    def _note(self, line: str) -> None:
        if line not in self.misses:
            self.misses.append(line)
