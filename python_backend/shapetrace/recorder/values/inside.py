"""The tensors in a value, in the order in which ``describe`` tells of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from torch import Tensor

from shapetrace.inspecting.containers import contained_by
from shapetrace.recorder.describe import MOST_DEPTH, MOST_ITEMS

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
    # Without lists of them, for the usual ones: this is asked of each result.
    if issubclass(kind, tuple):
        return tuple.__iter__(value)
    if issubclass(kind, dict):
        return dict.values(value)
    if issubclass(kind, list):
        return list.__iter__(value)
    if not hasattr(kind, "__dataclass_fields__"):
        return ()
    inside = contained_by(value, kind, MOST_ITEMS)
    return () if inside is None else inside[1]
