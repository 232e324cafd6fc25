"""Where the program assigned a tensor to a local variable, as far as its bytecode leaves no doubt.

    assigned at  ./model.py:42

The editor makes a link of it: of a path in the folder that is open, which begins with ``./``, also
where the program runs on another machine than the editor is shown on. Nothing is remembered for
this while the program runs: the functions that are running are searched for the tensor when
somebody looks at it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
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

_changed: dict[int, None] = {}
"""Frames whose variables somebody has set at a stop. One that is gone may have the identity of one
that is not: of that we say less than we know, and nothing wrong."""


def changed_by_hand(frame: FrameType) -> None:
    """Somebody may have set variables of a function that runs: its own stores no longer tell."""
    if len(_changed) >= _MOST_CHANGED:
        del _changed[next(iter(_changed))]
    _changed[id(frame)] = None


def origins(value: Any, folder: str | None = None) -> list[str]:
    """The places, ``file:line``, one of which gave a running function's variable this value."""
    try:
        return [_beginning_in(folder, place) for place in _origins(value)]
    except Exception:
        return []


def _beginning_in(folder: str | None, place: str) -> str:
    start = None if not folder else folder.rstrip("/\\") + os.sep
    if start is None or not place.startswith(start):
        return place
    return f"./{place[len(start) :].replace(os.sep, '/')}"


def _origins(value: Any) -> list[str]:
    from shapetrace.recorder.frames import forget_locals, read_locals

    frame: FrameType | None = sys._getframe()
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_flags & _OPTIMIZED and not _is_hidden(frame.f_code.co_filename):
            values = read_locals(frame)
            try:
                name = _name_of(value, values)
            finally:
                forget_locals(frame, values)
            places = [] if name is None else _places(frame, name)
            if places:
                return places
        frame = frame.f_back
    return []


def _name_of(value: Any, values: Mapping[str, Any]) -> str | None:
    return next((name for name, held in values.items() if held is value), None)


def _places(frame: FrameType, name: str) -> list[str]:
    """Where a variable may have got its value; nothing where a caller passed it."""
    from shapetrace.recorder.assignments import BEFORE

    code = frame.f_code
    assignments = _assignments(code)
    offset = assignments.align(max(frame.f_lasti, 0))
    if name not in assignments.names or not assignments.is_settled(offset):
        return []
    if id(frame) in _changed:
        return []
    stores = assignments.reached(offset, None).stores.get(name, [])
    if BEFORE in stores:
        return []
    lines = sorted({line for store in stores if (line := _line_at(code, store)) is not None})
    return [f"{code.co_filename}:{line}" for line in lines] if len(lines) <= _MOST_PLACES else []


@lru_cache(maxsize=64)
def _assignments(code: CodeType) -> Assignments:
    from shapetrace.recorder.assignments import Assignments

    return Assignments(code)


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
