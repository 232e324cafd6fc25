"""Functions of classes that are listened to from the outside, by any number of listeners.

Whoever comes and goes last, a class is left as it was found.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from shapetrace.capture.watch_importlib_bootstrap import CallListener, inherited_call, watched

_replacements: dict[tuple[type, str], _Replacement] = {}


class _Replacement:
    """A stand-in for one function of a class."""

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
        setattr(kind, name, self._stand_in)

    def remove(self) -> None:
        """Put back what was there."""
        if vars(self._kind).get(self._name) is not self._stand_in:
            return  # Somebody has put another on top; ours only passes calls on from now on.
        if self._own is None:
            delattr(self._kind, self._name)
        else:
            setattr(self._kind, self._name, self._own)


def listen(
    kind: type, name: str, listener: CallListener, *, outermost: bool = False
) -> Callable[[], None]:
    """Tell a listener of all calls of a class's function; returns how to stop that."""
    key = (kind, name)
    replacement = _replacements.get(key)
    if replacement is None:
        replacement = _replacements[key] = _Replacement(kind, name)
    replacement.listeners.insert(0 if outermost else len(replacement.listeners), listener)

    def stop() -> None:
        replacement.listeners.remove(listener)
        if not replacement.listeners:
            _replacements.pop(key, None)
            replacement.remove()

    return stop


def can_be_replaced(kind: type, name: str) -> bool:
    """Whether a class's function is a plain one."""
    return isinstance(inspect.getattr_static(kind, name, None), FunctionType)
