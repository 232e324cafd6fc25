"""Replaces functions of classes by stand-ins that report calls to any number of listeners.

In whichever order listeners come and go, the class is restored in the end.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from shapetrace._dynamo import Bystander, stand_aside, stand_by
from shapetrace.capture.watch_importlib_bootstrap import CallListener, inherited_call, watched

_replacements: dict[tuple[type, str], _Replacement] = {}


class _Replacement(Bystander):
    """A stand-in for one function of a class, which Dynamo does not get to see."""

    def __init__(self, kind: type, name: str) -> None:
        self.listeners: list[CallListener] = []
        self._kind = kind
        self._name = name
        self._own: Any = vars(kind).get(name)
        original = self._own
        if original is None:
            found = inspect.getattr_static(kind, name, None)
            original = found if name != "__call__" else inherited_call(kind)
        self._stand_in = watched(original, self.listeners)
        self._regions: set[int] = set()

    def begin(self) -> None:
        """Install the stand-in."""
        setattr(self._kind, self._name, self._stand_in)
        stand_by(self)

    def enter(self, thread: int) -> None:
        """Restore the class's own function, which Dynamo guards on."""
        self._regions.add(thread)
        if self._own is not None:
            self.show()

    def leave(self, thread: int) -> None:
        """Stand in for it again."""
        self._regions.discard(thread)
        if not self._regions and self._own is not None:
            self.hide()

    def remove(self) -> None:
        """Restore the class's own function."""
        stand_aside(self)
        self.show()

    def show(self) -> None:
        """Restore the class's own function for a while."""
        if vars(self._kind).get(self._name) is not self._stand_in:
            return  # Other code has replaced the stand-in, which only passes calls on from now on.
        if self._own is None:
            delattr(self._kind, self._name)
        else:
            setattr(self._kind, self._name, self._own)

    def hide(self) -> None:
        """Stand in for it again."""
        is_guarded = self._own is not None and self._regions
        if vars(self._kind).get(self._name) is self._own and not is_guarded:
            setattr(self._kind, self._name, self._stand_in)

    def original(self, value: object) -> object:
        """The function that the stand-in replaces."""
        if value is not self._stand_in:
            return value
        if self._own is not None:
            return self._own
        found = (vars(each) for each in self._kind.__mro__[1:] if self._name in vars(each))
        return next(found)[self._name]


def listen(
    kind: type, name: str, listener: CallListener, *, outermost: bool = False
) -> Callable[[], None]:
    """Report all calls of a class's function to a listener; returns a function that ends it.

    ``stop_listening`` does so too, for a caller that was interrupted before it got that function.
    """
    key = (kind, name)
    replacement = _replacements.get(key)
    if replacement is None:
        replacement = _replacements[key] = _Replacement(kind, name)
        replacement.begin()
    replacement.listeners.insert(0 if outermost else len(replacement.listeners), listener)
    return functools.partial(stop_listening, kind, name, listener)


def stop_listening(kind: type, name: str, listener: CallListener) -> None:
    """Stop reporting calls to a listener, if any are reported."""
    replacement = _replacements.get((kind, name))
    if replacement is None:
        return
    replacement.listeners[:] = [each for each in replacement.listeners if each is not listener]
    if not replacement.listeners:
        replacement.remove()
        _replacements.pop((kind, name), None)


def can_be_replaced(kind: type, name: str) -> bool:
    """Return whether a class's function is a plain one."""
    return isinstance(inspect.getattr_static(kind, name, None), FunctionType)
