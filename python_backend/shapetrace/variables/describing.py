"""Describes values for events. None of the program's code runs."""

from __future__ import annotations

import weakref
from collections import UserDict, UserList, deque
from functools import lru_cache, partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of, is_kind, name_of
from shapetrace._exception_table import leaving_surely
from shapetrace.events import followed
from shapetrace.events.followed import FollowedValue
from shapetrace.events.model import Container, Other, Tensor
from shapetrace.inspecting.attributes import dataclass_fields
from shapetrace.inspecting.containers import PLAIN, Held, held_by
from shapetrace.inspecting.memory import is_held
from shapetrace.inspecting.torch_access import array_type
from shapetrace.panes.texts import key_text, plain_text
from shapetrace.variables.loaded import Tensors, loaded_tensors
from shapetrace.variables.tensor_memories import describe_tensor, look_at

MOST_DEPTH: Final = 4
"""Limit on the depth of nested containers."""
MOST_LOOKED_AT: Final = 256
"""Limit on the values in one container and its nested ones."""
_MOST_KNOWN: Final = 4096

_known: dict[Any, FollowedValue] = {}
"""Shared descriptions of arrays with equal dtype, shape and class."""

NONE: Final = FollowedValue(followed.SCALAR, Other("None"))
"""The description of None."""


@leaving_surely
def describe(value: Any) -> FollowedValue:
    """Describe a value."""
    if value is None:
        return NONE
    tensors = loaded_tensors()
    if tensors is None:
        return _described(value, tensors, 0, [MOST_LOOKED_AT])
    is_as_it_is = not tensors.function_modes()
    kind = type(value)
    if kind in tensors.plain:
        look = look_at(value, tensors) if is_as_it_is else None
        return describe_tensor(value, tensors) if look is None else look.described
    known = _objects.get(id(kind))
    if known is not None and known[0]() is kind:
        return known[1]
    if not is_as_it_is:
        with tensors.as_is():
            return _described(value, tensors, 0, [MOST_LOOKED_AT])
    return _described(value, tensors, 0, [MOST_LOOKED_AT])


def _described(value: Any, tensors: Tensors | None, depth: int, budget: list[int]) -> FollowedValue:
    kind = type(value)
    if kind in PLAIN:
        return _described_plain(value)
    if tensors is not None and is_kind(kind, tensors.tensor):
        return describe_tensor(value, tensors)
    arrays = array_type()
    if arrays is not None:
        if is_kind(kind, arrays):
            return describe_array(value, arrays)
        number = numpy_number_text(value, kind)
        if number is not None:
            return FollowedValue(followed.SCALAR, Other(number))
    torch = None if tensors is None else tensors.torch
    if torch is not None and kind in torch.symbolic:
        return FollowedValue(followed.SCALAR, Other(kind.__name__))
    if not _holds(kind):
        described = describe_object(value)
        if not issubclass(kind, type):
            if len(_objects) >= _MOST_KNOWN:
                _objects.clear()
            _objects[id(kind)] = (weakref.ref(kind), described)
        return described
    held = held_container(value, kind, tensors) if depth < MOST_DEPTH else None
    if held is not None:
        return FollowedValue(followed.CONTAINER, _container(held, tensors, depth, budget))
    return describe_object(value)


_objects: Final[dict[int, tuple[weakref.ref[type], FollowedValue]]] = {}
"""Descriptions of plain objects by the id of their class, which is not kept alive."""


def describe_object(value: Any) -> FollowedValue:
    """Describe any other object, by its class."""
    kind = type(value)
    if issubclass(kind, type):  # not isinstance, which asks the value for its class
        return _of_class(f"<class {name_of(value)}>")
    return _of_class(name_of(kind))


@lru_cache(maxsize=1024)
def _of_class(name: str) -> FollowedValue:
    return FollowedValue(followed.OTHER, Other(name))


def held_container(value: Any, kind: type, tensors: Tensors | None) -> Held | None:
    """The contents of a value that is a pure container; None for other values."""
    if not _holds(kind):
        return None
    try:
        held = held_by(value, kind, None if tensors is None else tensors.torch)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return None  # changed by another thread meanwhile
    return held if held is not None and held.is_own else None


_HOLDERS: Final = (
    *(dict, tuple, list, set, frozenset, deque, UserDict, UserList, partial),
    *(MappingProxyType, SimpleNamespace),
    *map(type, ({}.keys(), {}.values(), {}.items())),
)
_kinds: dict[int, tuple[weakref.ref[type], bool]] = {}
"""Whether a class is a container, by its id. Keeping the class would keep its module alive."""


def _holds(kind: type) -> bool:
    """Return whether objects of this class may be pure containers."""
    known = _kinds.get(id(kind))
    if known is None or known[0]() is not kind:
        classes = classes_of(kind)
        # By identity: a metaclass may have a hash and an equality of its own.
        holds = any(each is holder for each in classes for holder in _HOLDERS)
        holds = holds or name_of(kind) == "Namespace" or bool(dataclass_fields(classes))
        if len(_kinds) >= _MOST_KNOWN:
            _kinds.clear()
        known = _kinds[id(kind)] = (weakref.ref(kind), holds)
    return known[1]


def _container(held: Held, tensors: Tensors | None, depth: int, budget: list[int]) -> Container:
    items = []
    for value in held.values:
        budget[0] -= 1
        if budget[0] < 0:
            break
        items.append(_described(value, tensors, depth + 1, budget).value)
    keys = None
    if held.keys is not None:
        keys = tuple(map(key_text, held.keys[: len(items)]))
    length = held.length if held.length > len(items) else None
    return Container(held.kind, tuple(items), keys, length)


@lru_cache(maxsize=1024)
def _of_text(text: str) -> FollowedValue:
    return FollowedValue(followed.SCALAR, Other(text))


def _described_plain(value: Any) -> FollowedValue:
    return _of_text(plain_text(value))


def describe_array(array: Any, arrays: Any) -> FollowedValue:
    """Describe a NumPy array."""
    try:
        shape = arrays.shape.__get__(array)
        dtype = arrays.dtype.__get__(array)
        key = (shape, dtype, type(array))
        known = _known.get(key)
        if known is None:
            name = type(array).__name__
            known = FollowedValue(
                followed.ARRAY, Tensor(tuple(shape), dtype_name(dtype), kind=name)
            )
            if len(_known) < _MOST_KNOWN:
                _known[key] = known
        return known
    except Exception as error:
        if is_asynchronous(error):
            raise
        return FollowedValue(followed.OTHER, Other(type(array).__name__))


def dtype_name(dtype: Any) -> str:
    """NumPy's name of a dtype; a word for structured ones."""
    return f"({', '.join(dtype.names)})" if dtype.names else str(dtype.name)


def numpy_number_text(value: Any, kind: type) -> str | None:
    """The text of a NumPy number, with its type; None for other values."""
    if kind.__module__ != "numpy" or not hasattr(kind, "dtype"):
        return None
    numpy_kind: Any = kind
    try:
        dtype = numpy_kind.dtype.__get__(value)
        is_there = is_held(value, array_type())
        number = numpy_kind.item(value) if is_there else None
    except Exception as error:
        if is_asynchronous(error):
            raise
        return None
    name = _short(dtype.name)
    return f"{plain_text(number)} {name}" if is_there and type(number) in PLAIN else name


@lru_cache(maxsize=64)
def _short(name: str) -> str:
    from shapetrace.views.shapes import dtype_text

    return dtype_text(name)
