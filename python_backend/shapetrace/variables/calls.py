"""Which followed calls run, and who called them."""

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
from shapetrace._frames import is_own_file
from shapetrace.events.followed import Caller

MOST_CALLERS: Final = 3
MODULE: Final = "<module>"
"""The function of a module's own code. Callers end there: what is around it imports or runs it."""
_STANDARD_LIBRARY: Final = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")

next_number: Final = itertools.count(1).__next__
"""A number for a call that no other in this process has."""

Running: TypeAlias = tuple[int, int, CodeType]
"""A followed call that has begun and is not over: its number, its depth and what runs, as another
frame may have got the number of one that ended at the recursion limit."""

running: Final[dict[int, Running]] = {}
"""By the frame that it runs in. What is here goes with its call, so a number will do."""


def around(frame: FrameType) -> tuple[Running | None, tuple[Caller, ...]]:
    """The followed call that a frame's was made in, and the functions that called."""
    callers: list[Caller] = []
    outer = frame.f_back
    if not running:
        return None, callers_of(frame)
    is_whole = False
    while outer is not None:
        caller = None if is_whole else _caller_in(outer)
        if caller is not None:
            callers.append(caller)
            is_whole = len(callers) == MOST_CALLERS or caller.function == MODULE
        found = running.get(id(outer))
        if found is not None and found[2] is outer.f_code:
            return found, tuple(callers)
        outer = outer.f_back
    return None, tuple(callers)


def callers_of(frame: FrameType) -> tuple[Caller, ...]:
    """The functions that called what runs in a frame, the innermost first; a few of them."""
    callers: list[Caller] = []
    outer = frame.f_back
    while outer is not None:
        known = _callers.get((id(outer.f_code), outer.f_lasti))  # most calls come again
        caller = _caller_in(outer) if known is None else known[1]
        if caller is not None:
            callers.append(caller)
            if len(callers) == MOST_CALLERS or caller.function == MODULE:
                break
        outer = outer.f_back
    return tuple(callers)


_callers: Final[dict[tuple[int, int], tuple[CodeType, Caller | None]]] = {}
"""By code and instruction; the code is kept, so that its number stays its own."""
_MOST_CALLERS_KNOWN: Final = 4096


def _caller_in(frame: FrameType) -> Caller | None:
    """What runs in a frame; None where it only hands calls on."""
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
    """Whether code only hands calls on: ours, torch's, and that of the standard library."""
    if is_own_file(filename) or filename.startswith(("<frozen ", "<string>")):
        return True
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    if torch and filename.startswith(os.path.join(os.path.dirname(torch), "")):
        return True
    within = filename.startswith(_STANDARD_LIBRARY)
    return within and "-packages" not in filename[len(_STANDARD_LIBRARY) :]


def flavor_of(code: CodeType) -> str:
    """What a call of this code is."""
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
"""What this process is called, where it was started by another one of the program's."""
_main_thread = threading.main_thread().ident


def label(is_async: bool) -> str | None:
    """What tells apart calls that run in turns; None for the main thread of the main process."""
    number = get_ident()
    if number == _main_thread and process_name is None and not is_async:
        return None
    names = [process_name] if process_name else []
    if number != _main_thread:
        # Not current_thread(), which would enter threads that Python does not know.
        thread = getattr(threading, "_active", {}).get(number)
        names.append("a thread" if thread is None else thread.name)
    if is_async:
        task = _task_name()
        if task is not None:
            names.append(task)
    return " ".join(names) or None


_first_tasks: Final[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()
"""Of each event loop the task that was heard of first."""


def _task_name() -> str | None:
    """The task that runs, where it is not the first that is heard of in its event loop."""
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
    # One that is started anew knows its name before it knows of its parent.
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
"""Whether it has to be seen which process this is."""


def name_process(name: str | None = None) -> None:
    """See which process this is, once in each, or be told; one that it forks is seen again."""
    global is_new_process, process_name
    is_new_process = False
    if name is None:
        _name_process()
    else:
        process_name = name


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
