"""Remembers a value, to tell later whether it has changed.

None of the value's own code runs here. ``capture`` adds two exceptions, which
``docs/internals/memory.md`` names.

- Numbers, texts and None: by class and value; NaN equals NaN.
- Lists, tuples, dictionaries, dataclasses: by their items, recursively.
- Sets: by size and plain values.
- All other objects: by identity, checked by a reference. An ``id`` would not do: the next object
  may get it.

Tensors and arrays, and the limits for containers, are left to derived classes: ``capture`` must not
miss a change, and ``variables`` checks many more values.
"""

from __future__ import annotations

import weakref
from math import copysign
from typing import Any, Protocol

from shapetrace._asynchronous import is_asynchronous
from shapetrace.inspecting.containers import PLAIN


class Seen(Protocol):
    """A remembered value."""

    def is_still(self, value: Any) -> bool:
        """Return whether a value is the remembered one, unchanged."""


class Strong:
    """A strong reference, for objects that cannot or must not have weak ones."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        """The object itself."""
        return self.value


def weakly(value: Any) -> Any:
    """A weak reference; None if the object cannot have one."""
    # Not for classes of the program's that define a `__weakref__` themselves.
    try:
        return weakref.ref(value)
    except TypeError as error:
        if is_asynchronous(error):
            raise
        return None


class SeenPlain:
    """A value that never changes: a number, a text or None."""

    __slots__ = ("kind", "value")

    def __init__(self, value: Any) -> None:
        self.kind, self.value = type(value), value

    def is_still(self, value: Any) -> bool:
        """Return whether a value has the same class and is equal; NaN equals NaN."""
        known = self.value
        if known is value:
            return True
        if type(value) is not self.kind:
            return False
        if known == value:
            return self.kind is not float or bool(known) or copysign(1, known) == copysign(1, value)
        return bool(known != known and value != value)


class SeenObject:
    """An object that is compared by identity alone."""

    __slots__ = ("reference",)

    def __init__(self, value: Any) -> None:
        self.reference: Any = weakly(value) or Strong(value)

    def is_still(self, value: Any) -> bool:
        """Return whether it is the same object."""
        # A dead reference gives None, which the value was not.
        return value is not None and self.reference() is value


class SeenContainer:
    """A list, tuple, dictionary or dataclass, by its first items."""

    __slots__ = ("keys", "kind", "length", "parts")

    def __init__(self, kind: type, length: int, keys: list[Any] | None, parts: list[Any]) -> None:
        self.kind = kind
        self.length = length
        self.keys = keys
        """Keys of the remembered items, if they have keys."""
        self.parts = parts
        """The remembered items."""

    def holds(self, length: int, keys: list[Any] | None, values: list[Any]) -> bool:
        """Return whether a container of the same class has the same items, unchanged."""
        if length != self.length or len(values) < len(self.parts) or not self.has_keys(keys):
            return False
        return all(map(_is_still, self.parts, values))

    def has_keys(self, keys: list[Any] | None) -> bool:
        """Return whether these are the same keys, without running their code."""
        known = self.keys
        if known is None or keys is None:
            return known is keys
        return all(map(_is_same_key, known, keys))


class SeenSet:
    """A set, by size and plain values."""

    __slots__ = ("content", "kind", "length")

    def __init__(self, kind: type, length: int, plain: set[Any]) -> None:
        self.kind: Any = kind
        self.length = length
        self.content = plain


def is_plain(key: Any) -> bool:
    """Return whether comparing and printing a value runs none of the program's code."""
    if type(key) is tuple:
        return all(map(is_plain, key))
    return type(key) in PLAIN


def _is_still(part: Seen, value: Any) -> bool:
    return part.is_still(value)


def _is_same_key(one: Any, other: Any) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and is_plain(one) and is_plain(other) and bool(one == other)
