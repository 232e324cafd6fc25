"""Entering and leaving torch's mode stacks in the middle of a program.

A plain push would put our mode above one that the program is about to leave, and a plain pop would
take whatever is on top: both corrupt a ``with torch.device("meta")`` around us. So the stack is
rebuilt with ours at the bottom, and ours is taken out by identity.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.utils._python_dispatch import _pop_mode as _pop_dispatch_mode
from torch.utils._python_dispatch import _push_mode as _push_dispatch_mode

_NO_CONTEXT: Final = object()


def _pop_all_functions() -> list[Any]:
    count = torch._C._len_torch_function_stack()
    return [torch._C._pop_torch_function_stack() for _ in range(count)][::-1]


def enter_function_mode(mode: Any) -> None:
    """Put a function mode at the bottom, above the default device's own, which insists on it.

    ``with torch.device(...)`` puts the same kind of mode on the stack, but takes off whatever is on
    top when it is left; so ours must be below that one.
    """
    modes = _pop_all_functions()
    position = 1 if modes and modes[0] is _default_device_context() else 0
    modes.insert(position, mode)
    for each in modes:
        torch._C._push_on_torch_function_stack(each)


def leave_function_mode(mode: Any) -> bool:
    """Take a function mode out, wherever it is; False where it is not on this thread's stack."""
    if not _holds_function_mode(mode):
        return False
    for each in _pop_all_functions():
        if each is not mode:
            torch._C._push_on_torch_function_stack(each)
    return True


def _default_device_context() -> Any:
    """The mode that ``torch.set_default_device`` put on this thread's stack, if any."""
    default = getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None)
    return getattr(default, "device_context", None) or _NO_CONTEXT


def function_modes() -> list[Any]:
    """The modes on this thread's stack, outermost first."""
    count = torch._C._len_torch_function_stack()
    return [torch._C._get_function_stack_at(index) for index in range(count)]


def _holds_function_mode(mode: Any) -> bool:
    return any(each is mode for each in function_modes())


def _pop_all_dispatchers() -> list[Any]:
    count = torch._C._len_torch_dispatch_stack()
    return [_pop_dispatch_mode() for _ in range(count)][::-1]


def dispatch_modes() -> list[Any]:
    """The dispatch modes on this thread's stack, outermost first."""
    count = torch._C._len_torch_dispatch_stack()
    return [torch._C._get_dispatch_stack_at(index) for index in range(count)]


def enter_dispatch_mode(mode: Any) -> None:
    """Put a dispatch mode at the bottom of the program's own."""
    modes = [mode, *_pop_all_dispatchers()]
    for each in modes:
        _push_dispatch_mode(each)


def leave_dispatch_mode(mode: Any) -> bool:
    """Take a dispatch mode out, wherever it is; False where it is not on this thread's stack."""
    if not any(each is mode for each in dispatch_modes()):
        return False
    for each in _pop_all_dispatchers():
        if each is not mode:
            _push_dispatch_mode(each)
    return True
