"""Whether a value is still as it was when it was seen.

None of the value's own code runs here. ``capture`` adds two exceptions, which
``docs/internals/memory.md`` names.

- Numbers, texts and None: by class and value; a NaN is as it was.
- Lists, tuples, dictionaries, dataclasses: by what is in them, in turn.
- Sets: by how many there are, and which plain values.
- All other objects: by identity, which is that of an object that is still there. A number such as
  ``id`` is given again to the next object.

What is kept of tensors and arrays, and how much of a container is looked at, differs: ``capture``
must not miss a change, and ``variables`` looks at many more values. Each derives its own classes
from these.
"""

from __future__ import annotations

import weakref
from math import copysign
from typing import Any, Protocol

from shapetrace._asynchronous import is_asynchronous
from shapetrace.inspecting.containers import PLAIN


class Seen(Protocol):
    """What is remembered of a value."""

    def is_still(self, value: Any) -> bool:
        """Whether a value is the one that was seen, and as it was."""


class Strong:
    """A reference to what must not have weak ones, or cannot."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        """The object itself."""
        return self.value


def weakly(value: Any) -> Any:
    """A weak reference; None where there cannot be one."""
    # Not for classes of the program's with a `__weakref__` of their own making.
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
        """Whether it is of the same class and equal; a NaN is equal to itself here."""
        known = self.value
        if known is value:
            return True
        if type(value) is not self.kind:
            return False
        if known == value:
            return self.kind is not float or bool(known) or copysign(1, known) == copysign(1, value)
        return bool(known != known and value != value)


class SeenObject:
    """An object that is known by its identity: what it does inside is its own."""

    __slots__ = ("reference",)

    def __init__(self, value: Any) -> None:
        self.reference: Any = weakly(value) or Strong(value)

    def is_still(self, value: Any) -> bool:
        """Whether it is the same object."""
        # A reference to what is gone brings None, which it was not.
        return value is not None and self.reference() is value


class SeenContainer:
    """A list, tuple, dictionary or dataclass, of which the first values may be remembered."""

    __slots__ = ("keys", "kind", "length", "parts")

    def __init__(self, kind: type, length: int, keys: list[Any] | None, parts: list[Any]) -> None:
        self.kind = kind
        self.length = length
        self.keys = keys
        """What the values that are remembered are called, if anything."""
        self.parts = parts
        """What is remembered of each value."""

    def holds(self, length: int, keys: list[Any] | None, values: list[Any]) -> bool:
        """Whether a container of the same class has the same values, as they were."""
        if length != self.length or len(values) < len(self.parts) or not self.has_keys(keys):
            return False
        return all(map(_is_still, self.parts, values))

    def has_keys(self, keys: list[Any] | None) -> bool:
        """Whether these are the same keys, without asking them."""
        known = self.keys
        if known is None or keys is None:
            return known is keys
        return all(map(_is_same_key, known, keys))


class SeenSet:
    """A set: how many there are, and which plain ones."""

    __slots__ = ("content", "kind", "length")

    def __init__(self, kind: type, length: int, plain: set[Any]) -> None:
        self.kind: Any = kind
        self.length = length
        self.content = plain


def is_plain(key: Any) -> bool:
    """Whether none of the program's code runs where it is compared or written."""
    if type(key) is tuple:
        return all(map(is_plain, key))
    return type(key) in PLAIN


def _is_still(part: Seen, value: Any) -> bool:
    return part.is_still(value)


def _is_same_key(one: Any, other: Any) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and is_plain(one) and is_plain(other) and bool(one == other)
