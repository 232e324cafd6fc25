"""Remembers a variable's value, to tell later whether it has changed.

- Tensors: by identity and version; then, on the CPU, by a sample of their bytes. Tensors of
  inference mode, which have no version, by the sample alone.
- NumPy arrays, which have no version either: by identity and a sample.
- Numbers and texts: by value; NaN equals NaN.
- Lists, tuples, dictionaries, sets, dataclasses: by their items, recursively.
- All other objects: by identity.

Identity is checked by a reference; for arrays with memory of their own, by their address and
content. Values are not kept alive, but for parameters and tensor subclasses until the next check:
weak references would prevent ``swap_tensors``, as they prevent ``resize`` of arrays.
"""

from __future__ import annotations

import sys
import weakref
from itertools import islice
from typing import Any, Final, Protocol

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of, is_kind, name_of
from shapetrace._exception_table import leaving_surely
from shapetrace.events import followed
from shapetrace.events.followed import FollowedValue
from shapetrace.events.model import Container
from shapetrace.inspecting.attributes import own_attributes
from shapetrace.inspecting.changes import (
    SeenContainer,
    SeenObject,
    SeenPlain,
    SeenSet,
    is_plain,
    weakly,
)
from shapetrace.inspecting.containers import MOST_ITEMS, PLAIN, Held
from shapetrace.inspecting.memory import is_held, owns_memory
from shapetrace.inspecting.sampling import UNCOUNTED, SampleLayout, layout_of, read
from shapetrace.inspecting.torch_access import array_type
from shapetrace.panes.texts import key_text, plain_text
from shapetrace.variables.describing import (
    MOST_DEPTH,
    MOST_LOOKED_AT,
    describe,
    describe_array,
    describe_object,
    held_container,
)
from shapetrace.variables.loaded import Tensors, loaded_tensors
from shapetrace.variables.numbers import Numbers, numbers_of_array
from shapetrace.variables.tensor_memories import TensorMemory


class Inspection:
    """State of one check of values."""

    __slots__ = ("left", "tensors", "wants_numbers")

    def __init__(self, tensors: Tensors | None, wants_numbers: bool) -> None:
        self.tensors = tensors
        self.wants_numbers = wants_numbers
        """Whether numbers are kept, to compare them with a tolerance."""
        self.left = MOST_LOOKED_AT
        """How many more values may be visited."""


class Memory(Protocol):
    """A remembered value."""

    described: FollowedValue
    """Its description."""

    def is_still(self, value: Any) -> bool:
        """Return whether a value is the remembered one, and surely unchanged."""

    def is_of(self, value: Any) -> bool:
        """Return whether it is the same object, changed or not."""


class ArrayMemory:
    """A NumPy array."""

    __slots__ = ("arrays", "content", "described", "layout", "number", "numbers", "reference")

    def __init__(self, array: Any, arrays: Any, wants_numbers: bool = False) -> None:
        self.arrays = arrays
        # NumPy refuses to resize an array that has a weak reference.
        self.reference: Any = None if owns_memory(array, arrays) else weakref.ref(array)
        self.number = id(array)
        self.described = describe_array(array, arrays)
        self.layout, self.content = _sample_of(array, arrays)
        self.numbers: Numbers | None = numbers_of_array(array) if wants_numbers else None

    def is_of(self, value: Any) -> bool:
        """Return whether it is the same array, or one at the address of an array that is gone."""
        if self.reference is None:
            return (
                id(value) == self.number
                and is_kind(type(value), self.arrays)
                and owns_memory(value, self.arrays)
            )
        return self.reference() is value and value is not None

    def is_still(self, value: Any) -> bool:
        """Return whether it is the same array, with the same bytes where they are read."""
        return (
            self.is_of(value)
            and _sample_of(value, self.arrays) == (self.layout, self.content)
            and describe_array(value, self.arrays) == self.described
        )


def _sample_of(array: Any, arrays: Any) -> tuple[SampleLayout | None, bytes]:
    """A sample of an array's bytes and of its mask, or its first objects as texts."""
    layout, content = _unmasked_sample_of(array, arrays)
    if type(array) is not arrays:
        masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
        if masked is not None and is_kind(type(array), masked):
            mask = own_attributes(array, classes_of(type(array))).get("_mask")
            if type(mask) is arrays:
                content += _unmasked_sample_of(mask, arrays)[1]
    return layout, content


def _unmasked_sample_of(array: Any, arrays: Any) -> tuple[SampleLayout | None, bytes]:
    try:
        dtype = arrays.dtype.__get__(array)
        if dtype.hasobject:
            return _items_of(array, arrays)
        if not is_held(array, arrays):
            return None, b""
        layout = layout_of(
            arrays.shape.__get__(array), arrays.strides.__get__(array), dtype.itemsize, UNCOUNTED
        )
        address = arrays.__array_interface__.__get__(array)["data"][0] if layout.blocks else 0
        return layout, read(address, layout)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return None, b""


_ALL: Final = SampleLayout((), True, 0)
_SOME: Final = SampleLayout((), False, 0)


def _items_of(array: Any, arrays: Any) -> tuple[SampleLayout, bytes]:
    """The first objects of an array: plain values themselves, others by class."""
    first = list(islice(arrays.flat.__get__(array), MOST_ITEMS))
    texts = [plain_text(item) if type(item) in PLAIN else name_of(type(item)) for item in first]
    is_all = arrays.size.__get__(array) == len(first) and PLAIN.issuperset(map(type, first))
    return _ALL if is_all else _SOME, "\n".join(texts).encode("utf-8", "backslashreplace")


class PlainMemory(SeenPlain):
    """A number, a text or None."""

    __slots__ = ("described",)

    def __init__(self, value: Any) -> None:
        self.kind, self.value = type(value), value  # One call fewer than by the base.
        self.described = describe(value)

    def is_of(self, value: Any) -> bool:
        """Numbers have no identity."""
        return False


class ContainerMemory(SeenContainer):
    """A list, tuple, dictionary or dataclass."""

    __slots__ = ("described", "reference")

    parts: list[Memory]

    def __init__(self, value: Any, held: Held, depth: int, look: Inspection) -> None:
        values = held.values[: max(look.left, 0)]
        look.left -= len(values)
        self.reference: Any = weakly(value)
        keys = None if held.keys is None else [*held.keys[: len(values)]]
        parts = [_remember(each, depth + 1, look) for each in values]
        super().__init__(type(value), held.length, keys, parts)
        items = tuple([part.described.value for part in self.parts])
        names = None if keys is None else tuple(map(key_text, keys))
        length = held.length if held.length > len(items) else None
        self.described = FollowedValue(
            followed.CONTAINER, Container(held.kind, items, names, length)
        )

    def is_of(self, value: Any) -> bool:
        """Return whether it is the same container."""
        known = self.reference
        return known is not None and known() is value and value is not None

    def is_still(self, value: Any) -> bool:
        """Return whether it holds the same values, unchanged."""
        if type(value) is not self.kind:
            return False
        held = held_container(value, self.kind, loaded_tensors())
        return held is not None and self.holds(held.length, held.keys, held.values)


class SetMemory(SeenSet):
    """A set, by size and plain values."""

    __slots__ = ("described",)

    def __init__(self, value: Any, held: Held) -> None:
        super().__init__(type(value), held.length, set(filter(is_plain, held.values)))
        self.described = describe(value)

    def is_of(self, value: Any) -> bool:
        """Sets have no identity: they are compared by content."""
        return False

    def is_still(self, value: Any) -> bool:
        """Return whether the same plain values are in it."""
        if type(value) is not self.kind:
            return False
        held = held_container(value, self.kind, None)
        if held is None or held.length != self.length:
            return False
        is_cut = held.length > len(held.values)
        return is_cut or set(filter(is_plain, held.values)) == self.content


class ObjectMemory(SeenObject):
    """Any other object."""

    __slots__ = ("described",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.described = describe_object(value)

    def is_of(self, value: Any) -> bool:
        """Return whether it is the same object."""
        return self.is_still(value)


@leaving_surely
def remember(value: Any, wants_numbers: bool = False) -> Memory:
    """Remember a value as it is now."""
    tensors = loaded_tensors()
    if tensors is not None and tensors.function_modes():
        with tensors.as_is():
            return _remember(value, 0, Inspection(tensors, wants_numbers))
    return _remember(value, 0, Inspection(tensors, wants_numbers))


@leaving_surely
def _remember(value: Any, depth: int, look: Inspection) -> Memory:
    kind = type(value)
    if kind in PLAIN and kind is not bytearray:
        return PlainMemory(value)
    tensors = look.tensors
    if tensors is not None and is_kind(kind, tensors.tensor):
        with tensors.as_is():
            return TensorMemory(value, tensors, look.wants_numbers)
    arrays = array_type()
    if arrays is not None and is_kind(kind, arrays):
        return ArrayMemory(value, arrays, look.wants_numbers)
    if depth < MOST_DEPTH:
        held = held_container(value, kind, tensors)
        if held is not None:
            if is_kind(kind, set) or is_kind(kind, frozenset):
                return SetMemory(value, held)
            return ContainerMemory(value, held, depth, look)
    if arrays is not None and kind.__module__ == "numpy" and hasattr(kind, "dtype"):
        return NumberMemory(value)
    return ObjectMemory(value)


class NumberMemory:
    """A number of NumPy's, by its bytes."""

    __slots__ = ("content", "described", "kind", "number")

    def __init__(self, value: Any) -> None:
        self.kind = type(value)
        self.content = _bytes_of(value)
        self.described = describe(value)
        number = None if self.content is None else value.item()
        self.number: Any = number if type(number) in (int, float, complex) else None
        """The number, for tolerances."""

    def is_of(self, value: Any) -> bool:
        """Numbers have no identity."""
        return False

    def is_still(self, value: Any) -> bool:
        """Return whether it has the same type and bytes."""
        is_known = type(value) is self.kind and self.content is not None
        return is_known and _bytes_of(value) == self.content


def _bytes_of(number: Any) -> bytes | None:
    """The bytes of a number of NumPy's; None where it shows an array's memory that may be gone."""
    arrays: Any = sys.modules["numpy"].ndarray
    return number.tobytes() if is_held(number, arrays) else None
