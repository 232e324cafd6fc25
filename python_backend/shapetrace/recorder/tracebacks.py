"""Taking our frames, and those that torch added because of us, out of a traceback."""

from __future__ import annotations

import itertools
from types import CodeType, TracebackType
from typing import Final

from shapetrace.recorder.callsite import HANDLE_TORCH_FUNCTION, OWN_DIRECTORY

TRAMPOLINE_NAME: Final = "<shapetrace call>"
"""The qualified name of a trampoline's code, which otherwise looks like the program's own."""


def is_ours(code: CodeType) -> bool:
    """Whether a frame with this code is one of ours."""
    return code.co_qualname == TRAMPOLINE_NAME or code.co_filename.startswith(OWN_DIRECTORY)


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback as it would be without us. Entries are unlinked in place.

    A Python-level torch function that a mode sees runs twice, once to hand the call over and once
    to do the work; the first run and the hand-over are taken out too.
    """
    kept: list[TracebackType] = []
    entry = traceback
    while entry is not None:
        code = entry.tb_frame.f_code
        if not is_ours(code):
            if kept and kept[-1].tb_frame.f_code is HANDLE_TORCH_FUNCTION:
                _drop_first_run(kept, code)
            kept.append(entry)
        entry = entry.tb_next
    if not kept:
        return None
    for previous, following in itertools.pairwise(kept):
        if previous.tb_next is not following:
            previous.tb_next = following
    if kept[-1].tb_next is not None:
        kept[-1].tb_next = None
    return kept[0]


def _drop_first_run(kept: list[TracebackType], code: CodeType) -> None:
    for index in range(len(kept) - 2, max(len(kept) - 6, -1), -1):
        if kept[index].tb_frame.f_code is code:
            del kept[index:]
            return
