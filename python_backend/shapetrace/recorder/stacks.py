"""Entering and leaving torch's mode stacks in the middle of a program.

A plain push would put our mode above one that the program is about to leave, and a plain pop would
take whatever is on top: both corrupt a ``with torch.device("meta")`` around us. So the stack is
rebuilt with ours at the bottom, and ours is taken out by identity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import starmap
from operator import call
from typing import Any, Final

import torch

_NO_CONTEXT: Final = object()


def enter_function_mode(mode: Any) -> None:
    """Put a function mode at the bottom, above the default device's own, which insists on it.

    Where it is on the stack already, it comes down from there.

    ``with torch.device(...)`` puts the same kind of mode on the stack, but takes off whatever is on
    top when it is left; so ours must be below that one.
    """
    modes = [each for each in function_modes() if each is not mode]
    position = 1 if modes and modes[0] is _default_device_context() else 0
    _set_function_modes([*modes[:position], mode, *modes[position:]])


def has_function_mode(mode: Any) -> bool:
    """Whether a function mode is on this thread's stack."""
    return any(each is mode for each in function_modes())


def leave_function_mode(mode: Any) -> bool:
    """Take a function mode out, wherever it is; False where it is not on this thread's stack."""
    modes = function_modes()
    others = [each for each in modes if each is not mode]
    if len(others) == len(modes):
        return False
    _set_function_modes(others)
    return True


def function_modes() -> list[Any]:
    """The modes on this thread's stack, outermost first."""
    count = torch._C._len_torch_function_stack()
    return [torch._C._get_function_stack_at(index) for index in range(count)]


def _set_function_modes(modes: Iterable[Any]) -> None:
    _rebuild(
        torch._C._len_torch_function_stack,
        (torch._C._pop_torch_function_stack,),
        torch._C._push_on_torch_function_stack,
        modes,
    )


def _default_device_context() -> Any:
    """The mode of ``torch.set_default_device`` on this thread's stack, if it must be at the bottom.

    Before torch 2.5 it takes off whatever is on top when it is left, as any other mode does.
    """
    default = getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None)
    context = getattr(default, "device_context", None)
    if context is None:
        return _NO_CONTEXT
    names = type(context).__exit__.__code__.co_names
    return context if "_len_torch_function_stack" in names else _NO_CONTEXT


def enter_dispatch_mode(mode: Any) -> None:
    """Put a dispatch mode at the bottom of the program's own, wherever it is."""
    _set_dispatch_modes([mode, *(each for each in dispatch_modes() if each is not mode)])


def leave_dispatch_mode(mode: Any) -> bool:
    """Take a dispatch mode out, wherever it is; False where it is not on this thread's stack."""
    modes = dispatch_modes()
    others = [each for each in modes if each is not mode]
    if len(others) == len(modes):
        return False
    _set_dispatch_modes(others)
    return True


def dispatch_modes() -> list[Any]:
    """The dispatch modes on this thread's stack, outermost first."""
    count = torch._C._len_torch_dispatch_stack()
    return [torch._C._get_dispatch_stack_at(index) for index in range(count)]


def _set_dispatch_modes(modes: Iterable[Any]) -> None:
    _rebuild(
        torch._C._len_torch_dispatch_stack,
        (torch._C._pop_torch_dispatch_stack, None),
        torch._C._push_on_torch_dispatch_stack,
        modes,
    )


def _rebuild(
    count: Callable[[], int],
    pop: tuple[Any, ...],
    push: Callable[[Any], Any],
    modes: Iterable[Any],
) -> None:
    """Replace a stack, by a single call from C: nothing that is raised meanwhile can divide it."""
    steps = [pop] * count() + [(push, mode) for mode in modes]
    deque(starmap(call, steps), maxlen=0)
