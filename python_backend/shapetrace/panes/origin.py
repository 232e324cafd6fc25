"""Where the program assigned a tensor to a variable, as far as its bytecode leaves no doubt.

    assigned at  ./model.py:42

The editor makes a link of it. Nothing is remembered for this while the program runs: the functions
and modules that are running are searched for the tensor when the user opens it. If no
variable holds it there is no answer: any code that ran since may have put it into an attribute or
item.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

from shapetrace._asynchronous import is_asynchronous

if TYPE_CHECKING:
    from shapetrace.recorder.assignments import Assignments

_MOST_FRAMES: Final = 200
_MOST_PLACES: Final = 3
_OPTIMIZED: Final = 0x01
"""The code flag of functions whose locals are fast; a module's or class's body has none."""
_NOT_THE_PROGRAM: Final = ("pydevd", "debugpy", "torch")


def origins(value: Any) -> list[str]:
    """The places, ``file:line``, one of which gave a running function's variable this value."""
    try:
        return _origins(value)
    except Exception as error:
        if is_asynchronous(error):
            raise
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
    from shapetrace.recorder.origins import is_of_module

    if is_of_module(frame):
        return _names_in(value, frame.f_globals)
    if not frame.f_code.co_flags & _OPTIMIZED:
        return []
    values = read_locals(frame)
    try:
        return _names_in(value, values)
    finally:
        forget_locals(frame, values)


def _names_in(value: Any, values: Mapping[str, Any]) -> list[str]:
    # Names made by a tool are skipped, such as pytest's for the parts of an assertion.
    return [
        name for name, held in list(values.items()) if held is value and str(name).isidentifier()
    ]


def _places(frame: FrameType, name: str) -> list[str]:
    """Where a variable may have got its value; nothing where a caller passed it."""
    from shapetrace.recorder.origins import stores_of

    code = frame.f_code
    stores = stores_of(frame, _assignments(code), name)
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
    """Return whether a file is ours, the debugger's or torch's."""
    return os.path.realpath(file).startswith(_hidden_directories())


@cache
def _hidden_directories() -> tuple[str, ...]:
    files = [os.path.dirname(__file__)]
    files += [getattr(sys.modules.get(name), "__file__", None) or "" for name in _NOT_THE_PROGRAM]
    directories = {os.path.dirname(os.path.realpath(file)) + os.sep for file in files if file}
    return tuple(sorted(directories))
