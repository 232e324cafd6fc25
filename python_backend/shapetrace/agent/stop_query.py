"""What the editor asks at a stop: which recorded call a frame of the stack belongs to.

The editor has the debugger evaluate ``describe_stop(number)`` with the number that the debugger has
given the frame. It names no frame to evaluate that in: so nothing of the program's is in reach,
looked up, or kept alive by it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from shapetrace._asynchronous import is_asynchronous
from shapetrace.agent import debugger
from shapetrace.agent.lookups import only_looks_up

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.standing import Stand, Standing

_recorder: Callable[[], Recorder | None] | None = None
_asked: Callable[[], None] | None = None


def answer_for(
    recorder: Callable[[], Recorder | None], asked: Callable[[], None]
) -> Callable[[], None]:
    """Say whose recording is asked about, and who is to know that it is; returns how to undo it."""
    global _recorder, _asked
    _recorder, _asked = recorder, asked

    def undo() -> None:
        global _recorder, _asked
        if _recorder is recorder:
            _recorder = _asked = None

    return undo


def recording() -> Recorder | None:
    """The recording that is asked about."""
    return None if _recorder is None else _recorder()


def someone_looks() -> None:
    """Say that what has changed is to be told at once."""
    if _asked is not None:
        _asked()


def describe_stop(number: int) -> str:
    """What a frame belongs to, as JSON; ``null`` where that is not known.

    {"process": 4711, "call": 12, "reached": [13, 14],
     "file": "/models/gpt.py", "function": "Block.forward", "line": 42,
     "variables": [{"name": "h", "value": [0, [2, 3], ...], "stores": [[41, 8, 41, 9]],
                    "isFresh": true}],
     "unbound": ["y"],
     "outer": [{"reached": [9], "file": "/models/gpt.py", "function": "GPT.forward", "line": 71,
                "variables": [], "unbound": null}]}
    """
    try:
        return json.dumps(_described(number))
    except Exception as error:
        if is_asynchronous(error):
            raise
        return "null"


def is_side_effect_free(number: int, expression: str) -> str:
    """Whether the program takes no notice of an expression with items in it, as JSON."""
    found = debugger.frame_numbered(number)
    return json.dumps(found is not None and only_looks_up(expression, found[0]))


def _described(number: int) -> dict[str, Any] | None:
    recorder = recording()
    found = debugger.frame_numbered(number)
    if recorder is None or found is None:
        return None
    someone_looks()
    return _told(recorder, *found)


def _told(recorder: Recorder, frame: FrameType, thread: str | None) -> dict[str, Any] | None:
    from shapetrace.recorder.standing import standing_of

    standing = standing_of(recorder, frame, _identity(thread))
    return None if standing is None else answer_of(standing)


def answer_of(standing: Standing) -> dict[str, Any]:
    """What is told of a frame."""
    return {
        "process": os.getpid(),
        "call": standing.call,
        **_stand(standing.own),
        "outer": [_stand(each) for each in standing.outer],
    }


def _stand(stand: Stand) -> dict[str, Any]:
    """How far a function has come, and what its variables hold."""
    return {
        "reached": stand.reached,
        "file": stand.file,
        "function": stand.function,
        "line": stand.line,
        "variables": [
            {"name": it.name, "value": it.value, "stores": it.stores, "isFresh": it.is_fresh}
            for it in stand.locals.variables
        ],
        "unbound": stand.locals.unbound,
    }


def _identity(name: str | None) -> int | None:
    """The identity of the thread that the debugger calls by a name."""
    for thread in threading.enumerate():
        if name is not None and getattr(thread, "__pydevd_id__", None) == name:
            return thread.ident
    return None
