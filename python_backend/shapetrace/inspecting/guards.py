"""Enters several torch contexts, and leaves them whatever is raised."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import starmap
from operator import methodcaller
from typing import Any, Final

from shapetrace._asynchronous import surely
from shapetrace._exception_table import catching_everywhere

_enter: Final = methodcaller("__enter__")


class Guards:
    """Contexts that are entered one after the other, and left whatever is raised.

    ``ExitStack`` and nested ``with`` leave one entered if an asynchronous exception comes right
    after entering it, or right before leaving it.
    """

    def __init__(self, enter: Callable[[Guards], None]) -> None:
        self._enter_all = enter
        self._entered: list[Any] = []

    @catching_everywhere
    def __enter__(self) -> None:
        try:
            self._enter_all(self)
        except BaseException:
            surely(self._leave)
            raise

    @catching_everywhere
    def __exit__(self, *_: object) -> None:
        try:
            self._leave()
        except BaseException:
            surely(self._leave)
            raise

    def enter(self, make: Callable[..., Any], *arguments: object) -> None:
        """Make a context and enter it; it can be left from then on, also twice."""
        self._entered.extend(starmap(make, (arguments,)))  # Some take effect now.
        self._entered[-1].__enter__()

    def _leave(self) -> None:
        while self._entered:
            self._entered[-1].__exit__(None, None, None)
            del self._entered[-1]


class WithoutFunctions:
    """``DisableTorchFunction``, but leaving it before entering it changes nothing."""

    def __init__(self, disable: Callable[[], Any]) -> None:
        self._made: Final[list[Any]] = [disable()]
        self._entered: Final[list[Any]] = []

    def __enter__(self) -> None:
        # In one C call, so that no exception can come after it is entered.
        self._entered.extend(zip(self._made, map(_enter, self._made), strict=True))

    def __exit__(self, *_: object) -> None:
        for made, _entered in self._entered:
            made.__exit__(None, None, None)


class WithoutDispatchModes:
    """Torch's context without dispatch modes, which cannot be left before it is entered."""

    def __init__(self) -> None:
        modes: Any = sys.modules["torch.utils._python_dispatch"]
        self._without: Final = modes._disable_current_modes()

    def __enter__(self) -> None:
        self._without.__enter__()

    def __exit__(self, *_: object) -> None:
        # Closing its generator restores the modes if, and only if, it is suspended.
        self._without.gen.close()
