"""Stand-ins for what torch does around the program's code, and never while it runs.

Those that stay on the stack meanwhile are in ``watch_importlib_bootstrap``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import torch

from shapetrace._asynchronous import surely
from shapetrace._exception_table import catching_everywhere
from shapetrace.recorder import watch_importlib_bootstrap
from shapetrace.recorder.stacks import dispatch_modes, function_modes, leave_function_mode
from shapetrace.recorder.tracebacks import clean
from shapetrace.recorder.watch_importlib_bootstrap import (
    DispatchMode,
    FunctionMode,
    PassingMode,
    Running,
    put_back,
)

_MODES_AT_WORK: Final = frozenset(
    {
        FunctionMode.__torch_function__.__code__,
        PassingMode.__torch_function__.__code__,
        DispatchMode.__torch_dispatch__.__code__,
        torch.overrides.handle_torch_function.__code__,
    }
)


def remove_left_over_modes() -> None:
    """Take what only passes calls on off this thread's stacks."""
    for mode in function_modes():
        if type(mode) is PassingMode:
            leave_function_mode(mode)
    for mode in dispatch_modes():
        if type(mode) is DispatchMode and mode.retired:
            mode.retire()


def may_come_back(frame: FrameType) -> bool:
    """Return whether a mode of ours may be off this thread's stacks for the time of a call alone.

    Torch takes a mode off to call it, and puts it back afterwards whatever was done meanwhile.
    """
    caller: FrameType | None = frame
    while caller is not None:
        if caller.f_code in _MODES_AT_WORK:
            return True
        caller = caller.f_back
    return False


class SymbolicSizes:
    """Has all tensors described with care while a fake mode with symbolic sizes is on.

    Comparing a symbolic size with a number decides what it is, for good: an export would find that
    the program had specialized it.
    """

    def __init__(self) -> None:
        self._modes = 0

    def make_enter(self, original: Any) -> Any:
        """Replacement for ``FakeTensorMode.__enter__``."""

        @catching_everywhere
        def __enter__(mode: Any) -> Any:  # noqa: N807 (a method)
            try:
                modes = self._modes
                try:
                    if getattr(mode, "shape_env", None) is not None:
                        self._set(modes + 1)
                    return original(mode)
                except BaseException:
                    surely(self._set, modes)
                    raise
            except BaseException as error:
                clean(error)
                raise

        return __enter__

    def make_exit(self, original: Any) -> Any:
        """Replacement for ``FakeTensorMode.__exit__``."""

        @catching_everywhere
        def __exit__(mode: Any, *error: Any) -> Any:  # noqa: N807 (a method)
            try:
                if getattr(mode, "shape_env", None) is not None:
                    surely(self._set, self._modes - 1)
                return original(mode, *error)
            except BaseException as another:
                clean(another)
                raise

        return __exit__

    def _set(self, modes: int) -> None:
        self._modes = max(modes, 0)
        watch_importlib_bootstrap._STRIDED = None if self._modes else torch.strided

    def forget(self) -> None:
        """Reset, for the next recording."""
        self._set(0)


def make_set_default_device(original: Any, running: Running) -> Any:
    """A stand-in for ``torch.set_default_device`` that sorts the stack of modes again.

    Within ``with torch.device(...)`` it brings that device's mode to the bottom, below ours, and
    the end of the ``with`` block takes off what is on top.
    """

    @catching_everywhere
    def set_default_device(device: Any) -> None:
        try:
            original(device)
            recorder = running.recorder
            if recorder is not None:
                put_back(recorder, recorder.sort_modes)
        except BaseException as error:
            clean(error)
            raise

    return set_default_device


def make_inference_exit(original: Any, put_back: Callable[[], None]) -> Any:
    """A replacement for ``torch.inference_mode.__exit__`` that removes what had to wait for it."""

    @catching_everywhere
    def __exit__(context: Any, *error: Any) -> Any:  # noqa: N807 (a method)
        try:
            try:
                return original(context, *error)
            finally:
                surely(remove_left_over_modes)
                put_back()
        except BaseException as another:
            clean(another)
            raise

    return __exit__
