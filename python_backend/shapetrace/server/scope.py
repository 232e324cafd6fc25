"""Which calls count where the shapes of one call are to be shown, and not those of all calls.

A scope is a module call that is pinned, or the one that the focused stack frame runs in. In a
function that ran within it only these calls count; in a function that it was called from, those
made in the same module call. Everywhere else all calls count as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shapetrace.events.model import Op
from shapetrace.events.stop import Stop, StoppedFunction
from shapetrace.server.file_records import Call
from shapetrace.server.processes import Process
from shapetrace.server.uris import file_key

OWN = 0
"""The level of what the module call's own function did."""

INSIDE = 1
"""The level of all else that ran within the module call. What it was called from follows."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One call, of all that were recorded."""

    process: int
    """The number of the process in the store."""
    call: int | None
    """The module call; None for what ran in none, or for a whole process that is pinned."""
    stop: Stop | None = None
    """Where the focused stack frame is; None for a pin, of which all calls count."""

    @property
    def functions(self) -> tuple[StoppedFunction, ...]:
        """The functions that are running: the focused one, and those that wait for it."""
        return () if self.stop is None else (self.stop.own, *self.stop.outer)


class ScopePath:
    """What a scope takes in of the calls of its process."""

    def __init__(self, scope: Scope, process: Process) -> None:
        self.scope = scope
        self.process = process
        self.calls = tuple(_outwards(scope.call, process))
        """The module call and all that it is in, from the inside to the outermost."""
        self._functions: dict[tuple[str, str], StoppedFunction] = {}
        for each in scope.functions:
            self._functions.setdefault((file_key(each.file), each.function), each)
        self._levels: dict[int, int | None] = {}

    def level(self, module: int | None) -> int | None:
        """How near to the scope something is that was made in a module call; None if outside."""
        if self.scope.call is None:
            return INSIDE if self.scope.stop is None or module is None else None
        if module is None:
            return INSIDE + len(self.calls)
        if module not in self._levels:
            self._levels[module] = self._find_level(module)
        return self._levels[module]

    def began_with(self) -> tuple[str, str] | None:
        """The file and function that the module call began with."""
        call = self.scope.call
        entry = None if call is None else self.process.entries.get(call)
        return None if entry is None else (file_key(entry.file), entry.function)

    def has_begun_with(self, key: str, function: str) -> bool:
        """Whether the module call, or one that it is in, began with a function."""
        entries = (self.process.entries.get(each) for each in self.calls)
        return any(
            entry is not None and (file_key(entry.file), entry.function) == (key, function)
            for entry in entries
        )

    def is_called_from(self, key: str, function: str) -> bool:
        """Whether a function was waiting for the module call, or is the focused one."""
        if (key, function) in self._functions:
            return True
        scope = self.scope
        module = None if scope.call is None else self.process.modules.get(scope.call)
        frames = (
            self.process.frames.get(each) for each in (() if module is None else module.stack)
        )
        return any(
            frame is not None and frame.function == function and file_key(frame.file) == key
            for frame in frames
        )

    def is_focused_on(self, key: str, function: str) -> bool:
        """Whether a function is the focused one."""
        stop = self.scope.stop
        return stop is not None and self.running(key, function) is stop.own

    def running(self, key: str, function: str) -> StoppedFunction | None:
        """How far a function has come that is running."""
        return self._functions.get((key, function))

    def _find_level(self, module: int) -> int | None:
        calls = self.calls
        if module in calls:
            return calls.index(module) + (OWN if module == calls[0] else INSIDE)
        return INSIDE if calls[0] in _outwards(module, self.process) else None


def _outwards(call: int | None, process: Process) -> Iterator[int]:
    """A module call and all that it is in, from the inside out."""
    while call is not None:
        yield call
        module = process.modules.get(call)
        call = None if module is None else module.parent


def module_of(call: Call) -> int | None:
    """The module call that an op or a module call was made in."""
    return call.module if isinstance(call, Op) else call.parent
