"""Beginning to watch a program that is in the middle of something: attached to, or just forked.

Its module calls go on without our frames in them. Those of torch say which modules they are of, as
they do for a ``forward`` that was called directly; what they were called with is not known any
more, as arguments are mostly given other values.
"""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any, Final

import torch

from shapetrace.recorder.callsite import (
    BOUNDARY,
    CALL_IMPL,
    FORWARD,
    HANDLER,
    HIDDEN,
    CodeKinds,
)
from shapetrace.recorder.frames import forget_locals, read_locals
from shapetrace.recorder.fused import fused_path_check
from shapetrace.recorder.modules import is_compiled

_COMPILED_CODE_RUNS: Final = os.path.join(os.sep, "_dynamo", "eval_frame.py")
"""The end of its path: torch may lie behind a symbolic link."""


def running_forwards(kinds: CodeKinds) -> frozenset[tuple[int, int]]:
    """The frames of methods called forward, on all threads: each by its identity and its code's."""
    found: set[tuple[int, int]] = set()
    frames = list(sys._current_frames().values())
    while frames:
        # No variable keeps this function's own frame, which would keep itself and the program's.
        frame: FrameType | None = frames.pop()
        while frame is not None:
            if kinds.of(frame.f_code) == FORWARD:
                found.add((id(frame), id(frame.f_code)))
            frame = frame.f_back
    return frozenset(found)


def can_join(frame: FrameType, kinds: CodeKinds) -> bool:
    """Whether the modes can be put on this thread's stacks now, where it is in this frame.

    Not while torch or we are at work on them, and not where that would change what runs: within
    compiled regions, fused paths and what torch.jit traces. Nor within a backward pass, at whose
    end torch puts the stacks back as they were.
    """
    if kinds.of(frame.f_code) in (HIDDEN, BOUNDARY, HANDLER) or kinds.is_torch(frame.f_code):
        return False
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return False
    if torch._C._current_graph_task_id() != -1:
        return False
    current: FrameType | None = frame
    while current is not None:
        code = current.f_code
        if code.co_filename.endswith(_COMPILED_CODE_RUNS) and kinds.is_torch(code):
            return False
        if code is CALL_IMPL and _is_closed(current):
            return False
        current = current.f_back
    return True


def _is_closed(frame: FrameType) -> bool:
    """Whether a frame of torch's module call runs a module that is stepped around."""
    values = read_locals(frame)
    module: Any = values.get("self")
    forget_locals(frame, values)
    if module is None:
        return False
    return is_compiled(module) or (not module.training and fused_path_check(module) is not None)
