"""The tensors in a value, in the order in which ``describe`` tells of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from itertools import islice
from types import MemberDescriptorType
from typing import Any, Final

from torch import Tensor

from shapetrace._asynchronous import is_asynchronous
from shapetrace.recorder.describe import MOST_DEPTH, MOST_ITEMS, in_class

_NO_ITEMS: Final = frozenset({int, float, bool, str, type(None), complex, bytes})


def tensors_in(value: Any) -> list[Any]:
    """The tensors of a value, those in containers included."""
    found: list[Any] = []
    _collect(value, found, 0)
    return found


def _collect(value: Any, found: list[Any], depth: int) -> None:
    kind = type(value)
    if kind in _NO_ITEMS:
        return
    if issubclass(kind, Tensor):
        found.append(value)
    elif depth < MOST_DEPTH:
        for item in islice(_items(value, kind), MOST_ITEMS):
            _collect(item, found, depth + 1)


def _items(value: Any, kind: type) -> Iterable[Any]:
    if issubclass(kind, tuple):
        return tuple.__iter__(value)
    if issubclass(kind, dict):
        return dict.values(value)
    if issubclass(kind, list):
        return list.__iter__(value)
    return _fields(value, kind) if hasattr(kind, "__dataclass_fields__") else ()


def _fields(value: Any, kind: Any) -> Iterable[Any]:
    attributes = in_class(kind, "__dict__")
    held = {} if attributes is None else attributes.__get__(value)
    for field in dataclasses.fields(kind):
        slot = in_class(kind, field.name)
        try:
            yield slot.__get__(value) if type(slot) is MemberDescriptorType else held[field.name]
        except (AttributeError, KeyError) as error:
            if is_asynchronous(error):
                raise
            continue  # not set
