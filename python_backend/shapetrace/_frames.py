"""Frames on the program's stack: which are ours, and how to read one and leave nothing there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any, Final, TypeVar

Known = TypeVar("Known")

_SNAPSHOT_STAYS: Final = sys.version_info < (3, 13)
_OURS_AND_THE_FRAMES: Final = 4
"""References to a snapshot that is not shared: the caller's, two here, and the frame's."""


def is_own_file(filename: str) -> bool:
    """Whether code of this file is ours."""
    return filename.startswith(OWN_DIRECTORY)


OWN_DIRECTORY: Final = os.path.dirname(is_own_file.__code__.co_filename) + os.sep
"""As our code has it in its own file names, which need not be the real path."""


def frame_of_program(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is none of ours."""
    while frame is not None and frame.f_code.co_filename.startswith(OWN_DIRECTORY):
        frame = frame.f_back
    return frame


def innermost_of(
    frame: FrameType | None, known: Mapping[int, tuple[CodeType, Known]]
) -> tuple[FrameType, Known] | None:
    """The innermost frame from this one on that something is known of, by id and code.

    The code tells a frame from a later one with the same id.
    """
    while frame is not None:
        found = known.get(id(frame))
        if found is not None and found[0] is frame.f_code:
            return frame, found[1]
        frame = frame.f_back
    return None


def let_go(values: Any, frame: FrameType) -> None:
    """Forget a frame's variables where they are a snapshot, which the frame would keep.

    A debugger writes it back, and the program may have asked for it by ``locals()``.
    """
    is_nobodys = _SNAPSHOT_STAYS and frame.f_trace is None and sys.gettrace() is None
    if is_nobodys and sys.getrefcount(values) <= _OURS_AND_THE_FRAMES:
        values.clear()
