"""What a recording is to look at, and who else is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from shapetrace.recorder.debuggers import Debugger

if TYPE_CHECKING:
    from torch.nn import Module


@dataclass(frozen=True, slots=True)
class RecorderOptions:
    """What to record, and until when."""

    level: str = "torch"
    """``torch``: calls as the program wrote them. ``aten``: the kernels below them as well."""
    passes: int | None = None
    """Stop after this many outermost forward passes; None for no end."""
    through_step: bool = False
    """With ``passes``: go on until the step would begin anew, so that loss, backward and optimizer
    are recorded too, and the passes of other modules in it."""
    settle_after: int | None = None
    """Rest after this many forward passes that brought nothing new; None never to rest."""
    expand_fused: bool = False
    """Look into modules for which torch would take a fused path, at the price of not taking it."""
    fingerprint: bool = False
    """Look at the values that calls return as well, and keep a few numbers of each."""
    on_change: Callable[[], object] | None = None
    """Called whenever there is something new to tell, on the program's thread: once for each
    variant, and not for calls that repeat one."""
    follows_forks: bool = False
    """Somebody sees to it that forked children are recorded too."""
    debugger: Debugger | None = None
    """The debugger that the program runs under."""
    hide_code: Callable[[CodeType], bool] | None = None
    """Keeps a debugger from taking our code for the program's; False where it cannot."""
    program_began_at: float | None = None
    """When its files may have been read first; None for when the recording began."""
    unseen: Callable[[Any], Any] | None = None
    """Turns a function into one that a debugger does not look into, nor into what it calls."""
    before_pass: Callable[[Module], object] | None = None
    """Called before each outermost call of a module with parameters, on the program's thread."""
