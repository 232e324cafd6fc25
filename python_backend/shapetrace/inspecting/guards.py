"""Contexts of torch's, several at once, that are left whatever is raised meanwhile."""

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
    """Contexts that are entered one after the other, and left whatever is raised meanwhile.

    Python's own ways to make one of several leave them entered where an exception of the program's
    comes between entering one and knowing it, or just as they are to be left.
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
        """Make a context and enter it; it can be left from when it is made on, and twice."""
        self._entered.extend(starmap(make, (arguments,)))  # Some have their effect at once.
        self._entered[-1].__enter__()

    def _leave(self) -> None:
        while self._entered:
            self._entered[-1].__exit__(None, None, None)
            del self._entered[-1]


class WithoutFunctions:
    """``DisableTorchFunction``, which enables them where it is left before it is entered."""

    def __init__(self, disable: Callable[[], Any]) -> None:
        self._made: Final[list[Any]] = [disable()]
        self._entered: Final[list[Any]] = []

    def __enter__(self) -> None:
        # In one call, in which no exception comes after it has been entered.
        self._entered.extend(zip(self._made, map(_enter, self._made), strict=True))

    def __exit__(self, *_: object) -> None:
        for made, _entered in self._entered:
            made.__exit__(None, None, None)


class WithoutDispatchModes:
    """What torch has for that, which cannot be left before it is entered."""

    def __init__(self) -> None:
        modes: Any = sys.modules["torch.utils._python_dispatch"]
        self._without: Final = modes._disable_current_modes()

    def __enter__(self) -> None:
        self._without.__enter__()

    def __exit__(self, *_: object) -> None:
        # Its generator puts the modes back where it has begun and is not over, and only there.
        self._without.gen.close()
