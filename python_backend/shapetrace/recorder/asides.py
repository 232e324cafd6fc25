"""Regions of the program that are stepped around."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.thread_state import ThreadState


class Aside:
    """A region that is stepped around. Not a generator: those touch the exceptions in it."""

    def __init__(self, recorder: Recorder, state: ThreadState) -> None:
        self._recorder = recorder
        self._state = state

    def __enter__(self) -> None:
        try:
            self._recorder.step_aside(self._state)
        except Exception as fault:
            self._recorder.fault(fault)

    def __exit__(self, *error: object) -> None:
        try:
            self._recorder.step_back(self._state)
        except Exception as fault:
            self._recorder.fault(fault)
