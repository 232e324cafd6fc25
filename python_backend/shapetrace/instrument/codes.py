"""Switches a followed function's code: with hooks, or its own inside compiled regions.

TorchDynamo guards on the code of functions that it inlines, and keeps what it compiled with the
code that it compiled. So in compiled regions every function has its own code, whether it was
compiled before or is compiled there, and nothing is reported.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple

from shapetrace._dynamo import Bystander, stand_aside, stand_by


class _Codes(NamedTuple):
    own: types.CodeType
    hooked: types.CodeType
    say: Callable[[], None] | None
    """Told when the function is not followed, inside a compiled region."""


class _Given(Bystander):
    """The functions that have code with hooks."""

    def __init__(self) -> None:
        self.codes: Final[weakref.WeakKeyDictionary[types.FunctionType, _Codes]] = (
            weakref.WeakKeyDictionary()
        )
        self.regions: Final[set[int]] = set()
        """Threads inside a compiled region."""

    def enter(self, thread: int) -> None:
        """Enter a region; the first one gives all functions their own code."""
        self.regions.add(thread)
        if len(self.regions) == 1:
            for function, codes in list(self.codes.items()):
                if function.__code__ is codes.hooked:
                    function.__code__ = codes.own
                if codes.say is not None:
                    codes.say()

    def leave(self, thread: int) -> None:
        """Leave a region; the last one gives all functions their hooks."""
        if thread in self.regions:
            self.regions.remove(thread)
            if not self.regions:
                for function, codes in list(self.codes.items()):
                    if function.__code__ is codes.own:
                        function.__code__ = codes.hooked


_GIVEN: Final = _Given()


def give_hooks(
    function: types.FunctionType,
    own: types.CodeType,
    hooked: types.CodeType,
    say: Callable[[], None] | None = None,
) -> None:
    """Give a function code with hooks, outside compiled regions."""
    stand_by(_GIVEN)
    _GIVEN.codes[function] = _Codes(own, hooked, say)
    function.__code__ = own if _GIVEN.regions else hooked


def take_hooks(function: types.FunctionType, code: types.CodeType) -> None:
    """Restore a function's own code."""
    _GIVEN.codes.pop(function, None)
    function.__code__ = code
    if not _GIVEN.codes:
        stand_aside(_GIVEN)
        _GIVEN.regions.clear()
