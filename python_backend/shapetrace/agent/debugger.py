"""What the debugger knows: which files have breakpoints, and whether the program is stopped.

debugpy's debugger, pydevd, offers none of this to others. So each question is asked with care, and
has an answer that does no harm where a newer pydevd no longer understands it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Collection
from types import FrameType
from typing import Any, Final

from shapetrace._exception_table import covering_jumps
from shapetrace.recorder.debuggers import Debugger

_SUSPENDED: Final = 2
"""pydevd's state of a thread that has stopped, or evaluates an expression while it has."""

_CARRIERS: Final = frozenset(
    {
        *("__main__.py", "cli.py", "pydev_monkey.py", "pydevd_runpy.py"),
        *("_pydev_execfile.py", "pydevd_tracing.py"),
        # The rest of this file stops threads, and asks for conditions and values.
        *("pydevd.py:<module>", "pydevd.py:main", "pydevd.py:run", "pydevd.py:_exec"),
    }
)
"""What of the debugger runs the program, or a thread of it."""


def loaded_debugger() -> Debugger | None:
    """How to know the debugger's frames; None where there is no debugger."""
    directories = [os.path.realpath(each) + os.sep for each in debugger_folders()]
    return Debugger(tuple(directories), _CARRIERS) if directories else None


def debugger_folders() -> list[str]:
    """Where the debugger's own files are."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in ("debugpy", "pydevd"))
    return [os.path.dirname(file) for file in files if isinstance(file, str)]


@covering_jumps
def has_breakpoint_in(files: Collection[str]) -> bool:
    """Return whether a line breakpoint is set in any of these files; paths are real ones."""
    debugger = _pydevd()
    breakpoints = getattr(debugger, "breakpoints", None)
    if not isinstance(breakpoints, dict):
        return False
    try:
        wanted = [path for path, lines in list(breakpoints.items()) if lines]
        return any(os.path.realpath(path) in files for path in wanted)
    except (TypeError, ValueError, RuntimeError):
        return False


def frame_numbered(number: int) -> tuple[FrameType, str | None] | None:
    """The frame of a stopped thread that has this number in the editor, and the thread's name."""
    schemas: Any = sys.modules.get("_pydevd_bundle._debug_adapter.pydevd_base_schema")
    manager: Any = getattr(_pydevd(), "suspended_frames_manager", None)
    try:
        known = schemas.BaseSchema._translate_id_from_dap(number)
        thread = manager.get_thread_id_for_variable_reference(known)
        frame = manager.find_frame(thread, known)
    except (AttributeError, KeyError, TypeError):
        return None
    return (frame, thread) if isinstance(frame, FrameType) else None


def is_stopped() -> bool:
    """Return whether the debugger holds a thread of the program."""
    for thread in threading.enumerate():
        information = getattr(thread, "additional_info", None)
        if getattr(information, "pydev_state", None) == _SUSPENDED:
            return True
    return False


def is_running_code_of(files: Collection[str]) -> bool:
    """Return whether the main thread is in the middle of a function in one of these files."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if os.path.realpath(frame.f_code.co_filename) in files:
            return True
        frame = frame.f_back
    return False


def _pydevd() -> Any:
    constants = sys.modules.get("_pydevd_bundle.pydevd_constants")
    get = getattr(constants, "get_global_debugger", None)
    return get() if get is not None else None
