"""Tracks the followed calls that run, and their callers."""

from __future__ import annotations

import inspect
import itertools
import os
import sys
import threading
import weakref
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

from shapetrace._asynchronous import is_asynchronous
from shapetrace._frames import innermost_of, is_own_file
from shapetrace.events.followed import Caller

MOST_CALLERS: Final = 3
MODULE: Final = "<module>"
"""The name of a module's own code. Callers end there: frames around it import or run it."""
_STANDARD_LIBRARY: Final = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")

next_number: Final = itertools.count(1).__next__
"""A number for a call, unique in this process."""

Running: TypeAlias = tuple[int, int]
"""A running followed call: its number and its depth."""

running: Final[dict[int, tuple[CodeType, Running]]] = {}
"""Running calls and their code by the id of their frame, removed when the call ends."""


def around(frame: FrameType) -> tuple[Running | None, tuple[Caller, ...]]:
    """The followed call that encloses a frame, and the frame's callers within that."""
    found = innermost_of(frame.f_back, running) if running else None
    if found is None:
        return None, callers_of(frame)
    return found[1], callers_of(frame, found[0])


def callers_of(frame: FrameType, last: FrameType | None = None) -> tuple[Caller, ...]:
    """The callers of a frame's function, the innermost first, up to a limit or a last frame."""
    callers: list[Caller] = []
    outer = frame.f_back
    while outer is not None:
        known = _callers.get((id(outer.f_code), outer.f_lasti))  # most calls come again
        caller = _caller_in(outer) if known is None else known[1]
        if caller is not None:
            callers.append(caller)
            if len(callers) == MOST_CALLERS or caller.function == MODULE:
                break
        if outer is last:
            break
        outer = outer.f_back
    return tuple(callers)


_callers: Final[dict[tuple[int, int], tuple[CodeType, Caller | None]]] = {}
"""By code and instruction; the code is kept alive, so that its id stays unique."""
_MOST_CALLERS_KNOWN: Final = 4096


def _caller_in(frame: FrameType) -> Caller | None:
    """The function of a frame; None if it only passes calls on."""
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    known = _callers.get(key)
    if known is None:
        caller = None
        if not _is_between(code.co_filename):
            line = frame.f_lineno or code.co_firstlineno
            caller = Caller(code.co_qualname, code.co_filename, line)
        if len(_callers) >= _MOST_CALLERS_KNOWN:
            _callers.clear()
        known = _callers[key] = (code, caller)
    return known[1]


def _is_between(filename: str) -> bool:
    """Return whether code only passes calls on: ours, torch's and the standard library's."""
    if is_own_file(filename) or filename.startswith(("<frozen ", "<string>")):
        return True
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    if torch and filename.startswith(os.path.join(os.path.dirname(torch), "")):
        return True
    within = filename.startswith(_STANDARD_LIBRARY)
    return within and "-packages" not in filename[len(_STANDARD_LIBRARY) :]


def flavor_of(code: CodeType) -> str:
    """The kind of a call of this code."""
    flags = code.co_flags
    if flags & inspect.CO_ASYNC_GENERATOR:
        return "async generator"
    if flags & (inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE):
        return "coroutine"
    return "generator" if flags & inspect.CO_GENERATOR else "function"


def parameters_of(code: CodeType) -> tuple[str, ...]:
    """The parameters of a function, in the order in which they are written."""
    named, keywords = code.co_argcount, code.co_kwonlyargcount
    rest = [*code.co_varnames[named + keywords :]]
    star = [rest.pop(0)] if code.co_flags & inspect.CO_VARARGS else []
    double = [rest.pop(0)] if code.co_flags & inspect.CO_VARKEYWORDS else []
    return (
        *code.co_varnames[:named],
        *star,
        *code.co_varnames[named : named + keywords],
        *double,
    )


_main_process = os.getpid()
process_name: str | None = None
"""The name of this process, if another process of the program started it."""
_main_thread = threading.main_thread().ident


def label(is_async: bool) -> str | None:
    """The label of the process, thread and task; None for the main thread of the main process."""
    number = get_ident()
    if number == _main_thread and process_name is None and not is_async:
        return None
    names = [process_name] if process_name else []
    if number != _main_thread:
        # Not current_thread(), which would register threads unknown to Python.
        thread = getattr(threading, "_active", {}).get(number)
        names.append("a thread" if thread is None else thread.name)
    if is_async:
        task = _task_name()
        if task is not None:
            names.append(task)
    return " ".join(names) or None


_first_tasks: Final[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()
"""The first task of each event loop that a call was reported in."""


def _task_name() -> str | None:
    """The name of the running task, unless it is the first reported one of its event loop."""
    asyncio: Any = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task()
        if task is None:
            return None
        first = _first_tasks.setdefault(task.get_loop(), weakref.ref(task))
        return None if first() is task else str(task.get_name())
    except (AttributeError, RuntimeError, TypeError) as error:
        if is_asynchronous(error):
            raise
        return None  # another library's tasks


def _name_process() -> None:
    global process_name
    multiprocessing: Any = sys.modules.get("multiprocessing.process")
    # A spawned process knows its name before its parent process.
    name = None if multiprocessing is None else multiprocessing.current_process().name
    if name is not None and (name != "MainProcess" or multiprocessing.parent_process()):
        process_name = name
    elif os.getpid() != _main_process:
        process_name = f"process {os.getpid()}"


def _after_fork_in_child() -> None:
    global is_new_process, _main_thread
    is_new_process = True
    _main_thread = get_ident()


is_new_process = True
"""Whether this process has not determined its name yet."""


def name_process(name: str | None = None) -> None:
    """Determine or set the name of this process, once; a forked child does so again."""
    global is_new_process, process_name
    is_new_process = False
    if name is None:
        _name_process()
    else:
        process_name = name


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
