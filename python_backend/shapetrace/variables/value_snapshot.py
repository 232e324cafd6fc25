"""Describes a value once, with statistics: what ``_log_change`` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from shapetrace._classes import name_of
from shapetrace.events import followed
from shapetrace.events.followed import NamedValue
from shapetrace.inspecting.containers import PLAIN
from shapetrace.variables.describing import describe, held_container
from shapetrace.variables.loaded import loaded_tensors
from shapetrace.variables.value_statistics import with_statistics

MOST: Final = 16
"""Limit on the tensors and arrays of one value."""
_DEPTH: Final = 3


def look_at(name: str, value: Any) -> list[NamedValue]:
    """A tensor, or the tensors and arrays in a value, each with statistics; else the value."""
    tensors = loaded_tensors()
    if tensors is not None and tensors.tracing() is not None:
        return []  # torch.jit.trace would record it
    found = []
    for inner_name, inner in _arrays(name, value, 0):
        found.append(NamedValue(inner_name, with_statistics(describe(inner), inner)))
        if len(found) == MOST:
            break
    return found or [NamedValue(name, describe(value))]


def _arrays(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if describe(value).kind in (followed.TENSOR, followed.ARRAY):
        yield name, value
        return
    kind = type(value)
    if depth == _DEPTH or kind in PLAIN:
        return
    held = held_container(value, kind, loaded_tensors())
    if held is None:
        return
    for position, inner in enumerate(held.values):
        yield from _arrays(f"{name}{_step(held.keys, position, kind)}", inner, depth + 1)


def _step(keys: list[Any] | None, position: int, kind: type) -> str:
    if keys is None:
        return f"[{position}]"
    key = keys[position]
    if type(key) is str and dict not in kind.__mro__:
        return f".{key}"
    return f"[{key!r}]" if type(key) in PLAIN else f"[{name_of(type(key))}]"
