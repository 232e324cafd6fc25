"""Which calls count where the shapes of one call are to be shown, and not those of all calls.

A scope is a module call that is pinned, or the one that the focused stack frame runs in. In a
function that ran within it only these calls count; in a function that it was called from, those
made in the same module call. Everywhere else all calls count as ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from shapetrace.events.model import ModuleCall, Op
from shapetrace.server.file_records import Call
from shapetrace.server.held import NOTHING_KNOWN, Locals
from shapetrace.server.processes import Process
from shapetrace.server.uris import file_key

OWN = 0
"""The level of what the module call's own function did."""

INSIDE = 1
"""The level of all else that ran within the module call. What it was called from follows."""


@dataclass(frozen=True, slots=True)
class Stand:
    """How far a function has come that waits for the focused one."""

    reached: frozenset[int]
    function: str
    file: str
    line: int | None = None
    locals: Locals = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Scope:
    """One call, of all that were recorded."""

    process: int
    """The number of the process in the store."""
    call: int | None
    """The module call; None for what ran in none, or for a whole process that is pinned."""
    reached: frozenset[int] | None = None
    """The calls that the focused function has made so far; None where all of them count."""
    function: str | None = None
    """The focused function, by its qualified name."""
    file: str | None = None
    line: int | None = None
    """Where the focused function stands."""
    outer: tuple[Stand, ...] = ()
    """The functions that wait for the focused one, from the inside out."""
    locals: Locals = NOTHING_KNOWN
    """What the variables of the focused function hold."""

    @property
    def stands(self) -> tuple[Stand, ...]:
        """How far each function has come that is running: the focused one, and those around."""
        if self.reached is None or self.function is None or self.file is None:
            return ()
        own = Stand(self.reached, self.function, self.file, self.line, self.locals)
        return (own, *self.outer)


class Reach:
    """What a scope takes in of the calls of its process."""

    def __init__(self, scope: Scope, process: Process) -> None:
        self.scope = scope
        self.process = process
        self.version = 0
        """Grows when more is known of what the module call is in."""
        self._stands: dict[tuple[str, str], Stand] = {}
        for stand in scope.stands:
            self._stands.setdefault((file_key(stand.file), stand.function), stand)
        self._path: tuple[int, ...] = ()
        self._is_whole = False
        self._levels: dict[int, int | None] = {}

    @property
    def path(self) -> tuple[int, ...]:
        """The module call and all that it is in, from the inside to the outermost."""
        # What the focused frame runs in may be told only after the frame was focused.
        if not self._is_whole:
            path, self._is_whole = self._find_path()
            if path != self._path or self._is_whole:
                self.version += 1
                self._path = path
                self._levels.clear()
        return self._path

    def level(self, module: int | None) -> int | None:
        """How near to the scope something is that was made in a module call; None if outside."""
        path = self.path
        if self.scope.call is None:
            return INSIDE if self.scope.function is None or module is None else None
        if module is None:
            return INSIDE + len(path)
        if module not in self._levels:
            level, is_known = self._find_level(module)
            if not is_known:
                return level
            self._levels[module] = level
        return self._levels[module]

    def began_with(self) -> tuple[str, str] | None:
        """The file and function that the module call began with."""
        call = self.scope.call
        entry = None if call is None else self.process.entries.get(call)
        return None if entry is None else (file_key(entry.file), entry.function)

    def has_begun_with(self, key: str, function: str) -> bool:
        """Whether the module call, or one that it is in, began with a function."""
        entries = (self.process.entries.get(each) for each in self.path)
        return any(
            entry is not None and (file_key(entry.file), entry.function) == (key, function)
            for entry in entries
        )

    def is_called_from(self, key: str, function: str) -> bool:
        """Whether a function was waiting for the module call, or is the focused one."""
        scope = self.scope
        if scope.file is not None and (file_key(scope.file), scope.function) == (key, function):
            return True
        if (key, function) in self._stands:
            return True
        module = None if scope.call is None else self.process.modules.get(scope.call)
        frames = (
            self.process.frames.get(each) for each in (() if module is None else module.stack)
        )
        return any(
            frame is not None and frame.function == function and file_key(frame.file) == key
            for frame in frames
        )

    def is_focused_on(self, key: str, function: str) -> bool:
        """Whether a function is the focused one, and is followed on its way."""
        scope = self.scope
        is_followed = scope.reached is not None and scope.file is not None
        return is_followed and (file_key(scope.file or ""), scope.function) == (key, function)

    def stand_of(self, key: str, function: str) -> Stand | None:
        """How far a function has come, where it is running and followed on its way."""
        return self._stands.get((key, function))

    def _find_path(self) -> tuple[tuple[int, ...], bool]:
        path: list[int] = []
        identity = self.scope.call
        while identity is not None and identity not in path:
            path.append(identity)
            module = self.process.modules.get(identity)
            if module is None:
                return tuple(path), False
            identity = module.parent
        return tuple(path), True

    def _find_level(self, module: int) -> tuple[int | None, bool]:
        """The level, and whether it will stay so."""
        path = self._path
        if module in path:
            return path.index(module) + (OWN if module == path[0] else INSIDE), self._is_whole
        inner: ModuleCall | None = self.process.modules.get(module)
        seen = {module}
        while inner is not None and inner.parent is not None and inner.parent not in seen:
            if inner.parent == path[0]:
                return INSIDE, True
            seen.add(inner.parent)
            inner = self.process.modules.get(inner.parent)
        return None, self._is_whole and inner is not None


def module_of(call: Call) -> int | None:
    """The module call that an op or a module call was made in."""
    return call.module if isinstance(call, Op) else call.parent
