"""The facts about the program's debugger that a recorder needs."""

from __future__ import annotations

import dis
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

RECORDER_METHODS: Final = (
    *("adopt_thread", "release_thread", "modes_again", "sort_modes"),
    *("begin_pass", "after_outermost", "wants_to_look"),
    *("is_stepped_aside", "swallows"),
)
"""The part of the recorder that our frames on the program's stack use."""
STATE_METHODS: Final = (
    *("find", "trampoline_of", "draft", "with_output", "failed", "add_kernel"),
    *("enter", "leave", "leave_failed", "unwind"),
)
"""The part of a thread's state that they use."""

_NEVER_ASK: Final = (
    *("LOAD_", "STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "POP_TOP", "COPY", "SWAP", "PUSH_NULL"),
    *("RESUME", "NOP", "MAKE_", "JUMP_FORWARD", "JUMP_BACKWARD", "BUILD_LIST", "BUILD_TUPLE"),
)
"""How the names of instructions begin that never find out whether a value is true."""


@dataclass(frozen=True, slots=True)
class Debugger:
    """How to know its frames."""

    directories: tuple[str, ...]
    """Where its code lies."""
    carriers: frozenset[str]
    """Its frames below the program: names of files, or ``file:function``."""

    def carries(self, file: str, function: str) -> bool:
        """Whether a function of the debugger's runs the program, and not an expression."""
        name = os.path.basename(file)
        return name in self.carriers or f"{name}:{function}" in self.carriers

    def asks_for_truth(self, frame: FrameType) -> bool:
        """Whether it is the debugger, and not the frame, that asks if a value is true.

        A compiled debugger has no frame of its own when it looks at what the condition of a
        breakpoint was worth. The frame is at the beginning of a line then.
        """
        instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return instruction.startswith(_NEVER_ASK)


def hide_methods(owner: object, names: Iterable[str], unseen: Callable[[Any], Any] | None) -> None:
    """Have a debugger look away while these methods of an object run."""
    if unseen is not None:
        for name in names:
            setattr(owner, name, unseen(getattr(owner, name)))
