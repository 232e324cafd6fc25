"""Where the program assigned a tensor to a variable, as far as its bytecode leaves no doubt.

    assigned at  ./model.py:42

The editor makes a link of it. Nothing is remembered for this while the program runs: the functions
and modules that are running are searched for the tensor when somebody looks at it. Of what no
variable holds nothing is said: an attribute or an item may have been put there by any code that ran
since.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from shapetrace.recorder.assignments import Assignments

_MOST_FRAMES: Final = 200
_MOST_PLACES: Final = 3
_OPTIMIZED: Final = 0x01
"""The code flag of functions whose locals are fast; a module's or class's body has none."""
_NOT_THE_PROGRAM: Final = ("pydevd", "debugpy", "torch")
_MOST_CHANGED: Final = 1000
_NAMESPACES: Final = frozenset({"globals", "locals", "exec", "f_globals", "f_locals"})
"""What a module uses that may store to its variables by other ways than its own statements."""

_changed: dict[int, None] = {}
"""Frames and modules whose variables somebody has set at a stop. One that is gone may have the
identity of one that is not: of that we say less than we know, and nothing wrong."""


def changed_by_hand(frame: FrameType, *, is_global: bool = False) -> None:
    """Somebody may have set variables of a function that runs: its own stores no longer tell.

    Also those of the module that it is in, where these are global.
    """
    for changed in (frame, frame.f_globals) if is_global else (frame,):
        if len(_changed) >= _MOST_CHANGED:
            del _changed[next(iter(_changed))]
        _changed[id(changed)] = None


def origins(value: Any) -> list[str]:
    """The places, ``file:line``, one of which gave a running function's variable this value."""
    try:
        return _origins(value)
    except Exception:
        return []


def _origins(value: Any) -> list[str]:
    frame: FrameType | None = sys._getframe()
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        if not _is_hidden(frame.f_code.co_filename):
            for name in _names_of(value, frame):
                places = _places(frame, name)
                if places:
                    return places
        frame = frame.f_back
    return []


def _names_of(value: Any, frame: FrameType) -> list[str]:
    """The variables of a running function, script or module that hold a value."""
    from shapetrace.recorder.frames import forget_locals, read_locals

    if _is_of_module(frame):
        return _names_in(value, frame.f_globals)
    if not frame.f_code.co_flags & _OPTIMIZED:
        return []
    values = read_locals(frame)
    try:
        return _names_in(value, values)
    finally:
        forget_locals(frame, values)


def _names_in(value: Any, values: Mapping[str, Any]) -> list[str]:
    return [name for name, held in list(values.items()) if held is value]


def _is_of_module(frame: FrameType) -> bool:
    from shapetrace.recorder.assignments import is_module

    return is_module(frame.f_code) and frame.f_locals is frame.f_globals


def _places(frame: FrameType, name: str) -> list[str]:
    """Where a variable may have got its value; nothing where a caller passed it."""
    from shapetrace.recorder.assignments import BEFORE

    code = frame.f_code
    assignments = _assignments(code)
    offset = assignments.align(max(frame.f_lasti, 0))
    if name not in assignments.names or not assignments.is_settled(offset):
        return []
    since = None
    if _is_of_module(frame):
        if id(frame.f_globals) in _changed or _opens_namespace(code):
            return []
        if not _began_empty(frame):
            since = assignments.align(0)  # Each variable may have had a value there.
    if id(frame) in _changed:
        return []
    stores = assignments.reached(offset, since).stores.get(name, [])
    if BEFORE in stores:
        return []
    lines = sorted({line for store in stores if (line := _line_at(code, store)) is not None})
    return [f"{code.co_filename}:{line}" for line in lines] if len(lines) <= _MOST_PLACES else []


@lru_cache(maxsize=64)
def _assignments(code: CodeType) -> Assignments:
    from shapetrace.recorder.assignments import Assignments

    return Assignments(code)


def _began_empty(frame: FrameType) -> bool:
    """Whether a script or module runs for the first time, and not in what a former run has left."""
    known = frame.f_globals
    if known.get("__name__") == "__main__":
        return known.get("__file__") == frame.f_code.co_filename
    return getattr(known.get("__spec__"), "_initializing", False) is True


@lru_cache(maxsize=64)
def _opens_namespace(code: CodeType) -> bool:
    """Whether a module may store to its variables other than by name, in any function of its."""
    pending = [code]
    while pending:
        current = pending.pop()
        if not _NAMESPACES.isdisjoint(current.co_names) or _asks_for_own_variables(current):
            return True
        pending.extend(part for part in current.co_consts if isinstance(part, CodeType))
    return False


def _asks_for_own_variables(code: CodeType) -> bool:
    """Whether code calls ``vars()``, of nothing else."""
    if "vars" not in code.co_names:
        return False
    loaded = None
    for step in _steps(code):
        if step.opname.startswith("CALL") and loaded == "vars" and step.arg == 0:
            return True
        loaded = step.argval
    return False


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions that do something with values."""
    passed_over = ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "KW_NAMES")
    return (each for each in dis.get_instructions(code) if each.opname not in passed_over)


def _line_at(code: CodeType, offset: int) -> int | None:
    for start, end, line in code.co_lines():
        if start <= offset < end:
            return line
    return None


def _is_hidden(file: str) -> bool:
    """Whether a file is ours, the debugger's or torch's."""
    return os.path.realpath(file).startswith(_hidden_directories())


@cache
def _hidden_directories() -> tuple[str, ...]:
    files = [os.path.dirname(__file__)]
    files += [getattr(sys.modules.get(name), "__file__", None) or "" for name in _NOT_THE_PROGRAM]
    directories = {os.path.dirname(os.path.realpath(file)) + os.sep for file in files if file}
    return tuple(sorted(directories))
