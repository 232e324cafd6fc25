"""Keeping the debugger from taking our code for the program's.

A rule of the launch configuration hides the files of ours, yet that is not all:

- A trampoline has the program's own file and line. A breakpoint on its line would stop in it as
  well, and a step would end in it.
- Each step into a file that a rule hides makes the debugger say, once, that it has skipped one.
- Where the user debugs libraries too, a step would go into the library functions that we call, and
  errors raised and caught in there would be shown.

pydevd has answers to all of this for code of its own: it remembers which code objects are part of a
debugger, and notes that a thread is busy with tracing. There is no public way to make use of them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from threading import get_ident
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def hide_code(code: CodeType) -> bool:
    """Have the debugger pass over a code object; False where that cannot be done.

    To be called before the code first runs: what pydevd made of it then, it goes on believing. A
    step out of a function that such code called ends on the caller's next line, and not where it
    would have ended without that code in between.
    """
    try:
        return _hide_code(code)
    except Exception:
        return False  # a pydevd that is not as those we know


def hide_functions(names: Iterable[Any], but: Callable[[CodeType], bool]) -> None:
    """Hide functions, those of classes, and all that are written inside of them."""
    for code in _codes_in(names):
        if not but(code):
            hide_code(code)


def unseen(function: Function) -> Function:
    """The same function, while which runs the debugger does not look at its thread.

    Where that cannot be done it is the function itself.
    """
    try:
        looking_away = _looking_away(function)
    except Exception:
        return function
    if not hide_code(looking_away.__code__):
        return function
    return looking_away


def _hide_code(code: CodeType) -> bool:
    modules: Any = sys.modules
    pydevd = modules["pydevd"]
    kinds = pydevd._CACHE_FILE_TYPE
    of_debugger = modules["_pydevd_bundle.pydevd_dont_trace_files"].PYDEV_FILE
    paths = modules["pydevd_file_utils"].get_abs_path_real_path_and_base_from_file(code.co_filename)
    kinds[code.co_firstlineno, paths[0], code] = of_debugger
    # Asked as pydevd itself asks, which needs no more of a frame than its code.
    answer = pydevd.PyDB.get_file_type(None, SimpleNamespace(f_code=code), paths)
    return bool(answer == of_debugger)


def _codes_in(names: Iterable[Any]) -> Iterable[CodeType]:
    waiting = list(names)
    while waiting:
        each = waiting.pop()
        if isinstance(each, CodeType):
            yield each
            waiting += (constant for constant in each.co_consts if isinstance(constant, CodeType))
        elif isinstance(each, FunctionType):
            waiting.append(each.__code__)
        elif isinstance(each, (staticmethod, classmethod)):
            waiting.append(each.__func__)
        elif isinstance(each, property):
            waiting += (each.fget, each.fset)
        elif isinstance(each, type):
            waiting += vars(each).values()


def _looking_away(function: Any) -> Any:
    constants: Any = sys.modules["_pydevd_bundle.pydevd_constants"]
    if constants.PYDEVD_USE_SYS_MONITORING:
        return _without_events(function)
    return _as_if_tracing(function)


def _as_if_tracing(function: Any) -> Any:
    """By trace functions: pydevd itself counts up where it is not to be traced."""
    active: Any = threading._active  # type: ignore[attr-defined]

    def run(*args: Any) -> Any:
        information = getattr(active.get(get_ident()), "additional_info", None)
        if information is None:
            return function(*args)
        # No interrupt can come between the first statement and what needs its undoing.
        try:
            information.is_tracing += 1
            return function(*args)
        finally:
            information.is_tracing -= 1

    return run


def _without_events(function: Any) -> Any:
    """By ``sys.monitoring``: pydevd has a note for each thread on whether to trace it."""
    modules: Any = sys.modules
    make: Any = modules["_pydevd_sys_monitoring.pydevd_sys_monitoring"].ThreadInfo
    here: Any = modules[make.__module__]._thread_local_info
    active: Any = threading._active  # type: ignore[attr-defined]

    def run(*args: Any) -> Any:
        note = getattr(here, "thread_info", None)
        thread = active.get(get_ident())
        if note is None or thread is None:
            return function(*args)
        blind = make(thread, get_ident(), False, None)
        try:
            here.thread_info = blind
            return function(*args)
        finally:
            here.thread_info = note

    return run
