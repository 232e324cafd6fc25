"""Removes modes of ours that are on the main thread's stacks when the agent has left.

They only pass calls on by then. The interpreter has the main thread take them off, in between two
instructions. While a mode is at work that is too early: torch has taken it off for the call, and
puts it back afterwards. So it is tried again until none is at work.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

from shapetrace.process.main_thread import soon_on_main_thread
from shapetrace.transport.originals import System

_POLL_SECONDS = 0.05


class LeftOverModes:
    """The modes that a recording has left on the main thread's stacks."""

    def __init__(self) -> None:
        self._is_removing = False
        self._may_be_left = False

    def remove(self) -> None:
        """Have the main thread take them off."""
        self._may_be_left = self._is_removing = True
        if not soon_on_main_thread(self._remove_here):
            self._may_be_left = self._is_removing = False

    def remove_until_gone(self, is_over: Callable[[], bool]) -> None:
        """Try again until none is left, or the program is over. On a thread of ours."""
        while self._may_be_left and not is_over():
            if not self._is_removing:
                self.remove()
            System.sleep(_POLL_SECONDS)

    def _remove_here(self, frame: FrameType) -> None:
        from shapetrace.recorder.stand_ins import may_come_back, remove_left_over_modes

        remove_left_over_modes()
        self._may_be_left = may_come_back(frame)
        self._is_removing = False
