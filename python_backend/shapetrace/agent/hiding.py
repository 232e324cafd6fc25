"""Keeping the debugger from taking our code for the program's.

A rule of the launch configuration hides the files of ours, yet that is not all:

- A trampoline has the program's own file and line. A breakpoint on its line would stop in it as
  well, and a step would end in it: ``hide_code``.
- Where the user debugs libraries too, a step would go into the library functions that we call, and
  errors that are raised and caught in there would be shown: ``unseen``.
- The first time a step meets a file that a rule hides, the debugger tells the user so. It is not to
  tell of ours: ``hide_skips``.

pydevd knows all of this for code of its own, but has no public way to make use of it. Each function
here does without where a pydevd is not as those we know.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, Final, TypeVar

from shapetrace._asynchronous import is_asynchronous
from shapetrace._frames import is_own_file

Function = TypeVar("Function", bound=Callable[..., Any])

_SKIPPED: Final = "notify_skipped_step_in_because_of_filters"

_hidden: set[CodeType] = set()
"""The code objects hidden by ``hide_code``; pydevd keeps these too."""


def hide_code(code: CodeType) -> bool:
    """Have the debugger pass over a code object; False where that cannot be done.

    To be called before the code first runs: what pydevd made of it then, it goes on believing.
    """
    try:
        return _hide_code(code)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return False


def unseen(function: Function) -> Function:
    """Wrap a function so that the debugger does not trace its thread while it runs."""
    try:
        stand_in: Function = _looking_away(function)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return function
    return stand_in


def hide_skips() -> Callable[[], None]:
    """Keep it from the user that steps skip what is ours; returns how to undo that."""
    try:
        owner, name, original, stand_in = _hide_skips()
    except Exception as error:
        if is_asynchronous(error):
            raise
        return _nothing

    def undo() -> None:
        if getattr(owner, name) is stand_in:
            setattr(owner, name, original)

    return undo


def _nothing() -> None:
    """Where nothing was done."""


def _hide_code(code: CodeType) -> bool:
    modules: Any = sys.modules
    pydevd = modules["pydevd"]
    kinds = pydevd._CACHE_FILE_TYPE
    of_debugger = modules["_pydevd_bundle.pydevd_dont_trace_files"].PYDEV_FILE
    paths = modules["pydevd_file_utils"].get_abs_path_real_path_and_base_from_file(code.co_filename)
    kinds[code.co_firstlineno, paths[0], code] = of_debugger
    # Requests as pydevd itself asks, which needs no more of a frame than its code.
    answer = pydevd.PyDB.get_file_type(None, SimpleNamespace(f_code=code), paths)
    if answer != of_debugger:
        return False
    _hidden.add(code)
    return True


def _has_events() -> bool:
    """Whether pydevd follows the program by ``sys.monitoring``, and not by trace functions."""
    constants: Any = sys.modules["_pydevd_bundle.pydevd_constants"]
    return bool(constants.PYDEVD_USE_SYS_MONITORING)


def _event_handlers() -> Any:
    """The module of pydevd's that handles events: there is a compiled one, and one that is not."""
    chosen: Any = sys.modules["_pydevd_sys_monitoring.pydevd_sys_monitoring"]
    return sys.modules[chosen.ThreadInfo.__module__]


def _looking_away(function: Any) -> Any:
    return _without_events(function) if _has_events() else _as_if_tracing(function)


def _threads() -> Any:
    """Python's own table of threads: ``current_thread`` would make up one that it did not start."""
    internals: Any = threading
    return internals._active


def _as_if_tracing(function: Any) -> Any:
    """By trace functions: pydevd counts up where it is itself at work."""
    active = _threads()

    @wraps(function)
    def run(*args: Any, **keywords: Any) -> Any:
        information = getattr(active.get(get_ident()), "additional_info", None)
        if information is None:
            return function(*args, **keywords)
        # No interrupt can come between the first statement and what needs its undoing.
        try:
            information.is_tracing += 1
            return function(*args, **keywords)
        finally:
            information.is_tracing -= 1

    return run


def _without_events(function: Any) -> Any:
    """By events: pydevd has a note for each thread on whether to heed them."""
    handlers = _event_handlers()
    make_note, here = handlers.ThreadInfo, handlers._thread_local_info
    active = _threads()

    @wraps(function)
    def run(*args: Any, **keywords: Any) -> Any:
        note = getattr(here, "thread_info", None)
        thread = active.get(get_ident())
        if note is None or thread is None:
            return function(*args, **keywords)
        not_to_trace = make_note(thread, get_ident(), False, None)
        try:
            here.thread_info = not_to_trace
            return function(*args, **keywords)
        finally:
            here.thread_info = note

    return run


def _hide_skips() -> tuple[Any, str, Any, Any]:
    modules: Any = sys.modules
    if _has_events():
        handlers = _event_handlers()
        debugger = modules["pydevd"].PyDB
        tell = getattr(debugger, _SKIPPED)

        def tell_of_others(self: Any, frame: FrameType) -> None:
            if _is_ours(frame.f_code):
                handlers._global_notify_skipped_step_in = False  # The user was not notified.
            else:
                tell(self, frame)

        setattr(debugger, _SKIPPED, tell_of_others)
        return debugger, _SKIPPED, tell, tell_of_others
    dispatch = modules["_pydevd_bundle.pydevd_trace_dispatch"].trace_dispatch
    tracers = modules[dispatch.__module__]
    notify = getattr(tracers, _SKIPPED)

    def notify_of_others(debugger: Any, frame: FrameType) -> None:
        if not _is_ours(frame.f_code):
            notify(debugger, frame)

    setattr(tracers, _SKIPPED, notify_of_others)
    return tracers, _SKIPPED, notify, notify_of_others


def _is_ours(code: CodeType) -> bool:
    return is_own_file(code.co_filename) or code in _hidden
