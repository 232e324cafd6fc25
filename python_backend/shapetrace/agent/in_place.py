"""Evaluate an expression in a frame at a stop, for the editor, and record it.

The editor has the debugger evaluate ``run(number, text)`` in the frame, which is how that comes to
the frame's own thread. That may take long, and the program may go on or end meanwhile; so the
outcome is asked for apart from it, and without a frame.
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from shapetrace._asynchronous import is_asynchronous, surely
from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding
from shapetrace.agent import debugger, stop_query

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder

MOST_TEXT: Final = 600
"""Characters of an outcome."""


class Cancelled(BaseException):
    """The user does not want to wait for what is being evaluated."""


@dataclass(slots=True)
class _Running:
    """The evaluation that is running."""

    number: int
    thread: int
    is_cancelled: bool = False


_lock = threading.Lock()
_running: _Running | None = None
_unwanted: set[object] = set()
"""The evaluations that were cancelled before they began."""
_outcomes: dict[int, dict[str, Any]] = {}
"""Of what was evaluated last, by the number that the editor has given it."""


@leaving_surely
def run(number: int, frame: int, text: str) -> None:
    """Evaluate an expression in the frame with this number, and remember what came of it.

    ``number`` is the evaluation's own and is not used again.
    """
    global _running
    running = _Running(number, threading.get_ident())
    with holding(_lock):
        _outcomes.clear()
        is_wanted = number not in _unwanted
        _unwanted.clear()
        _running = running
    try:
        try:
            came = _run(frame, text) if is_wanted else {"kind": "cancelled"}
        finally:
            _end(running)
    except Cancelled:
        _end(running)  # The exception may have come just as it was to end.
        came = {"kind": "cancelled"}
    _outcomes[number] = came


def outcome(number: int) -> str:
    """The outcome, as JSON; ``null`` until there is one.

    {"kind": "value", "value": "f32[2,10]", "calls": 143}
    {"kind": "error", "value": "RuntimeError: ...", "calls": 12, "origin": ["/net.py", 41]}
    {"kind": "refused", "value": "nothing is being recorded", "calls": 0}
    {"kind": "cancelled"}
    """
    return json.dumps(_outcomes.get(number))


@leaving_surely
def cancel(number: int) -> None:
    """Have an evaluation end soon, if it still runs.

    That may be asked by way of the language server: while the debugger waits for the end of an
    evaluation to go on, it answers no questions.
    """
    with holding(_lock):
        running = _running
        if running is None or running.number != number:
            _unwanted.add(number)  # It may not have begun yet.
        elif not running.is_cancelled:
            running.is_cancelled = _raise_in(running.thread, Cancelled)


@leaving_surely
def _end(running: _Running) -> None:
    """Nothing is to be raised any more in a thread that goes back to what it did before."""
    global _running
    while True:
        try:
            with holding(_lock):
                if _running is running:
                    _running = None
            # What is to be raised is raised in here. To take it back (with NULL) would leave 3.11
            # hanging at the next function that is traced: it does not forget that there was one.
            for _ in range(100):
                pass
        except Cancelled:
            continue
        return


def _raise_in(thread: int, error: type[BaseException]) -> bool:
    """Have a thread raise an exception when it runs Python code again."""
    import ctypes

    raise_soon: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
    return bool(raise_soon(ctypes.c_ulong(thread), ctypes.py_object(error)) == 1)


def _run(number: int, text: str) -> dict[str, Any]:
    recorder = stop_query.recording()
    found = debugger.frame_numbered(number)
    if recorder is None:
        return _came("refused", "nothing is being recorded in this process")
    if found is None:
        return _came("refused", "the program has continued")
    before, _ = recorder.counters()
    try:
        came = _evaluate(recorder, found[0], text)
    finally:
        recorder.wake()
        stop_query.someone_looks()
    came["calls"] = recorder.counters()[0] - before
    return came


def _evaluate(recorder: Recorder, frame: FrameType, text: str) -> dict[str, Any]:
    from shapetrace.recorder.evaluation import CannotEvaluate, evaluate, origin_of
    from shapetrace.recorder.randomness import kept_randomness

    put_back = kept_randomness()
    try:
        with _captured_by_nobody():
            return _came("value", _text_of(evaluate(recorder, frame, text)))
    except Cancelled:
        raise
    except CannotEvaluate as error:
        return _came("refused", str(error))
    except BaseException as error:
        came = _came("error", _text_of_error(error))
        came["origin"] = origin_of(recorder, error)
        return came
    finally:
        surely(put_back)


def _captured_by_nobody() -> AbstractContextManager[None]:
    """A context in which no iteration is counted: an evaluation is none of the program's."""
    iterations = sys.modules.get("shapetrace.capture.iterations")
    return nullcontext() if iterations is None else iterations.none_counted()


def _came(kind: str, value: str) -> dict[str, Any]:
    return {"kind": kind, "value": value[:MOST_TEXT], "calls": 0}


def _text_of(value: Any) -> str:
    from shapetrace.panes import presentation

    text = presentation(value)
    if text is None:
        is_plain = type(value) in (bool, int, float, complex, str, type(None))
        text = repr(value) if is_plain else type(value).__qualname__
    return text


def _text_of_error(error: BaseException) -> str:
    name = type(error).__qualname__
    try:
        return f"{name}: {error}".rstrip(": ")
    except Exception as another:
        if is_asynchronous(another):
            raise
        return name  # Its class's own text could not be had.
