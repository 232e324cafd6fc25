"""Which followed calls run, and who called them."""

from __future__ import annotations

import inspect
import itertools
import os
import sys
import threading
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from shapetrace.events.followed import Caller

MOST_CALLERS: Final = 3
_PACKAGE: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")

_numbers = itertools.count(1)


class Running(NamedTuple):
    """A followed call that has begun and is not over."""

    call: int
    depth: int


running: Final[dict[int, Running]] = {}
"""By the frame that it runs in. What is here goes with its call, so a number will do."""


def next_number() -> int:
    """A number for a call that no other in this process has."""
    return next(_numbers)


def frame_of_program(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is none of ours."""
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@lru_cache(maxsize=1024)
def is_ours(filename: str) -> bool:
    """Whether a file is one of this package's."""
    return filename.startswith(_PACKAGE)


def around(frame: FrameType) -> tuple[Running | None, tuple[Caller, ...]]:
    """The followed call that a frame's was made in, and the functions that called."""
    callers: list[Caller] = []
    outer = frame.f_back
    while outer is not None:
        found = running.get(id(outer))
        if len(callers) < MOST_CALLERS:
            code = outer.f_code
            if not _is_between(code.co_filename):
                line = outer.f_lineno or code.co_firstlineno
                callers.append(_caller(code.co_qualname, code.co_filename, line))
        if found is not None:
            return found, tuple(callers)
        outer = outer.f_back
    return None, tuple(callers)


@lru_cache(maxsize=4096)
def _caller(function: str, file: str, line: int) -> Caller:
    return Caller(function, file, line)


@lru_cache(maxsize=1024)
def _is_between(filename: str) -> bool:
    """Whether code only hands calls on: ours, what torch calls modules by, the import system."""
    if is_ours(filename) or filename.startswith("<frozen "):
        return True
    torch = sys.modules.get("torch")
    file = getattr(torch, "__file__", None)
    if not file:
        return False
    return filename == os.path.join(os.path.dirname(file), "nn", "modules", "module.py")


def flavor_of(code: CodeType) -> str:
    """What a call of this code is."""
    flags = code.co_flags
    if flags & inspect.CO_ASYNC_GENERATOR:
        return "async generator"
    if flags & (inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE):
        return "coroutine"
    return "generator" if flags & inspect.CO_GENERATOR else "function"


_main_process = os.getpid()
_process_name: str | None = None


def label(is_async: bool) -> str | None:
    """What tells apart calls that run in turns; None for the main thread of the main process."""
    names = [_process_name] if _process_name else []
    number = threading.get_ident()
    if number != threading.main_thread().ident:
        # Not current_thread(), which would enter threads that Python does not know.
        thread = getattr(threading, "_active", {}).get(number)
        names.append("a thread" if thread is None else thread.name)
    if is_async:
        task = _task_name()
        if task is not None:
            names.append(task)
    return " ".join(names) or None


def _task_name() -> str | None:
    """The task that runs, where it is not the one that the event loop was started for."""
    asyncio: Any = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task()
        name = None if task is None else task.get_name()
    except (AttributeError, RuntimeError):
        return None
    return None if name == "Task-1" else name


def is_worker() -> bool:
    """Whether this process was started by another one of the program's."""
    return _process_name is not None


def _name_process() -> None:
    global _process_name
    multiprocessing: Any = sys.modules.get("multiprocessing.process")
    # One that is started anew knows its name before it knows of its parent.
    name = None if multiprocessing is None else multiprocessing.current_process().name
    if name is not None and (name != "MainProcess" or multiprocessing.parent_process()):
        _process_name = name
    elif os.getpid() != _main_process:
        _process_name = f"process {os.getpid()}"


def _after_fork_in_child() -> None:
    global _name_pending
    _name_pending = True


_name_pending = True


def name_process() -> None:
    """See which process this is, once in each."""
    global _name_pending
    if _name_pending:
        _name_pending = False
        _name_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
