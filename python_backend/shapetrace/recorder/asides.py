"""Compiled regions, which a recording steps around."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace._dynamo import in_region

if TYPE_CHECKING:
    from shapetrace.recorder.thread_state import ThreadState
    from shapetrace.recorder.watched_threads import WatchedThreads


def stay_out_of_region(recorder: WatchedThreads, state: ThreadState) -> None:
    """Step aside where this thread runs something that torch.compile made."""
    if in_region() and not state.in_region:
        state.outside_region = state.aside
        state.in_region = True
        recorder.step_aside(state)


def leave_region(recorder: WatchedThreads, state: ThreadState) -> None:
    """What torch.compile made has returned."""
    if state.in_region:
        recorder.step_back(state, state.outside_region)
        state.in_region = False
