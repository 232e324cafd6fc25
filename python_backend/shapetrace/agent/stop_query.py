"""What the editor asks at a stop: which recorded call a frame of the stack belongs to.

The editor has the debugger evaluate ``describe_stop(number)`` with the number that the debugger has
given the frame. It names no frame to evaluate that in: so nothing of the program's is in reach,
looked up, or kept alive by it. The debugger passes on only which stop it is: what there is to say
goes to the language server, behind the rows that it refers to.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from shapetrace._asynchronous import is_asynchronous
from shapetrace.agent import debugger
from shapetrace.agent.lookups import only_looks_up
from shapetrace.transport.messages import NumberedStop, write

if TYPE_CHECKING:
    from shapetrace.events.stop import Stop
    from shapetrace.recorder.session import Recorder
    from shapetrace.transport.sender import Sender

_numbers = itertools.count(1)
_queries: StopQueries | None = None


class StopQueries:
    """The stops of one process that the editor asks about, of which the last is sent."""

    def __init__(self, recorder: Callable[[], Recorder | None], asked: Callable[[], None]) -> None:
        """``asked`` is called when there is something to send at once."""
        self.recorder = recorder
        self.asked = asked
        self._last: NumberedStop | None = None
        self._sent: NumberedStop | None = None

    def install(self) -> Callable[[], None]:
        """Answer what is asked from now on; returns how to undo it."""
        global _queries
        _queries = self
        return self._remove

    def _remove(self) -> None:
        global _queries
        if _queries is self:
            _queries = None

    def describe(self, frame: FrameType, thread: str | None) -> int | None:
        """The number of the stop that is sent about a frame; None where nothing is known of it."""
        recorder = self.recorder()
        stop = None if recorder is None else _stop_at(recorder, frame, thread)
        if stop is None:
            return None
        last = self._last = NumberedStop(next(_numbers), stop)
        self.asked()
        return last.number

    @property
    def unsent(self) -> NumberedStop | None:
        """The last stop, if the server has not been sent it."""
        return None if self._last is self._sent else self._last

    def send(self, stop: NumberedStop, sender: Sender) -> None:
        """Send a stop, once all rows are sent that it refers to."""
        self._sent = stop  # Whatever comes of it: to try again would be no better.
        sender.offer(write(stop), important=True)

    def begin_anew(self) -> None:
        """Send the last stop again: the editor may still be showing it."""
        self._sent = None


def recording() -> Recorder | None:
    """The recording that is asked about."""
    return None if _queries is None else _queries.recorder()


def someone_looks() -> None:
    """Say that what has changed is to be told at once."""
    if _queries is not None:
        _queries.asked()


def describe_stop(number: int) -> str:
    """Send what a frame belongs to; ``[process, stop]`` by their numbers, or ``null``, as JSON."""
    try:
        found = debugger.frame_numbered(number)
        if found is None or _queries is None:
            return "null"
        stop = _queries.describe(*found)
        return "null" if stop is None else json.dumps([os.getpid(), stop])
    except Exception as error:
        if is_asynchronous(error):
            raise
        return "null"


def is_side_effect_free(number: int, expression: str) -> str:
    """Whether the program takes no notice of an expression with items in it, as JSON."""
    found = debugger.frame_numbered(number)
    return json.dumps(found is not None and only_looks_up(expression, found[0]))


def _stop_at(recorder: Recorder, frame: FrameType, thread: str | None) -> Stop | None:
    from shapetrace.recorder.standing import standing_of

    return standing_of(recorder, frame, _identity(thread))


def _identity(name: str | None) -> int | None:
    """The identity of the thread that the debugger calls by a name."""
    for thread in threading.enumerate():
        if name is not None and getattr(thread, "__pydevd_id__", None) == name:
            return thread.ident
    return None
