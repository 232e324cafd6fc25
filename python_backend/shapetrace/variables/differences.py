"""Finds the differences of two remembered values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shapetrace._classes import name_of
from shapetrace.events import followed
from shapetrace.events.followed import FollowedValue, PartChanged
from shapetrace.events.model import Container, Tensor
from shapetrace.inspecting.changes import is_plain
from shapetrace.variables.memories import (
    ArrayMemory,
    ContainerMemory,
    Memory,
    NumberMemory,
    ObjectMemory,
    PlainMemory,
    SetMemory,
)
from shapetrace.variables.numbers import Numbers, is_within
from shapetrace.variables.tensor_memories import TensorMemory

NO_PARTS: Final[tuple[tuple[PartChanged, ...], int]] = ((), 0)
MOST_PARTS: Final = 4
"""Limit on the parts of a container that are reported; the others are counted."""


def differences(
    before: Memory | None, after: Memory, is_same_object: bool, tolerance: float | None = None
) -> tuple[str, ...]:
    """The differences of a value from the one before; empty if none are known."""
    if before is None:
        return (followed.NEW,)
    if is_same_object and _is_untouched(before, after):
        return ()
    if type(before) is TensorMemory and before.described is after.described:
        assert type(after) is TensorMemory
        return _of_arrays(before, after, is_same_object, False, tolerance)
    if isinstance(before, ContainerMemory) and isinstance(after, ContainerMemory):
        return _of_containers(before, after, tolerance)
    differs = _looks(before.described, after.described)
    if differs and (followed.KIND in differs or followed.SHAPE in differs):
        return differs
    if isinstance(before, (TensorMemory, ArrayMemory)) and type(before) is type(after):
        assert isinstance(after, (TensorMemory, ArrayMemory))
        return (*differs, *_of_arrays(before, after, is_same_object, bool(differs), tolerance))
    if differs:
        return differs
    if isinstance(before, (PlainMemory, NumberMemory, SetMemory)):
        return _of_values(before, after, tolerance)
    return (followed.ASSIGNED,)


def parts_of(
    before: Memory | None, after: Memory, tolerance: float | None = None
) -> tuple[tuple[PartChanged, ...], int]:
    """The first different parts of a container, and the number of the others."""
    if not isinstance(before, ContainerMemory) or not isinstance(after, ContainerMemory):
        return NO_PARTS
    if before.kind is not after.kind:
        return NO_PARTS  # of different classes: every part would count as removed or added
    changed = list(_parts(before, after, "", tolerance))
    return tuple(changed[:MOST_PARTS]), max(len(changed) - MOST_PARTS, 0)


def _is_untouched(before: Memory, after: Memory) -> bool:
    """Return whether two memories of one object show that it was not changed."""
    if isinstance(before, TensorMemory) and isinstance(after, TensorMemory):
        is_counted = before.version is not None and before.version == after.version
        is_there = before.address == after.address and before.offset == after.offset
        return is_counted and is_there
    if isinstance(before, ArrayMemory) and isinstance(after, ArrayMemory):
        is_alike = before.layout is after.layout and before.content == after.content
        return is_alike and before.described == after.described
    return isinstance(before, ObjectMemory)


def _looks(before: FollowedValue, after: FollowedValue) -> tuple[str, ...]:
    """The differences in the descriptions of two values."""
    if before is after:
        return ()
    one, other = before.value, after.value
    if before.kind != after.kind or type(one) is not type(other):
        return (followed.KIND,)
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        found = []
        if one.kind != other.kind or one.layout != other.layout:
            found.append(followed.KIND)
        if one.shape != other.shape:
            found.append(followed.SHAPE)
        if one.dtype != other.dtype:
            found.append(followed.DTYPE)
        if one.device != other.device:
            found.append(followed.DEVICE)
        return tuple(found)
    if isinstance(one, Container) and isinstance(other, Container):
        if one.kind != other.kind:
            return (followed.KIND,)
        return (followed.ITEMS,) if one != other else ()
    if before.kind == followed.OTHER and one != other:
        return (followed.KIND,)
    return ()


def _of_arrays(
    before: TensorMemory | ArrayMemory,
    after: TensorMemory | ArrayMemory,
    is_same_object: bool,
    looks_different: bool,
    tolerance: float | None,
) -> tuple[str, ...]:
    """The differences in the contents of two arrays of one shape, as far as known."""
    layout = before.layout
    if looks_different or layout is None or after.layout is not layout:
        pass
    elif before.content != after.content:
        return (_degree(before.numbers, after.numbers, tolerance),)
    elif layout.is_whole:
        return ()
    if tolerance is not None:
        within = is_within(before.numbers, after.numbers, tolerance)
        if within is not None:
            return (followed.TOLERANCE if within else followed.VALUES,)
    if looks_different:
        return ()
    return (followed.WRITTEN if is_same_object else followed.ASSIGNED,)


def _degree(before: Numbers | None, after: Numbers | None, tolerance: float | None) -> str:
    """The word for a difference of contents."""
    if tolerance is not None and is_within(before, after, tolerance):
        return followed.TOLERANCE
    return followed.VALUES


def _of_values(before: Memory, after: Memory, tolerance: float | None) -> tuple[str, ...]:
    if type(before) is not type(after):
        return (followed.KIND,)
    if isinstance(before, PlainMemory) and isinstance(after, PlainMemory):
        if before.kind is not after.kind:
            return (followed.KIND,)
        if before.is_still(after.value):
            return ()
        numbers = (int, float, complex)
        if tolerance is not None and before.kind in numbers:
            near = abs(after.value - before.value) <= tolerance
            return (followed.TOLERANCE,) if near else (followed.VALUES,)
    elif isinstance(before, NumberMemory) and isinstance(after, NumberMemory):
        if before.kind is not after.kind:
            return (followed.KIND,)
        if before.content == after.content:
            return ()
        if tolerance is not None and before.number is not None and after.number is not None:
            near = abs(after.number - before.number) <= tolerance
            return (followed.TOLERANCE,) if near else (followed.VALUES,)
    elif isinstance(before, SetMemory) and isinstance(after, SetMemory):
        if before.kind is not after.kind:
            return (followed.KIND,)
        is_equal = before.length == after.length and before.content == after.content
        return () if is_equal else (followed.ITEMS,)
    return (followed.VALUES,)


def _of_containers(
    before: ContainerMemory, after: ContainerMemory, tolerance: float | None
) -> tuple[str, ...]:
    found: dict[str, None] = {}
    if before.kind is not after.kind:
        return (followed.KIND,)
    if before.length != after.length or not _has_same_keys(before, after):
        found[followed.ITEMS] = None
    for part in _parts(before, after, "", tolerance):
        for each in part.differs:
            found[followed.ITEMS if each == followed.NEW else each] = None
    return tuple(found)


def _has_same_keys(before: ContainerMemory, after: ContainerMemory) -> bool:
    return before.has_keys(after.keys)


def _parts(
    before: ContainerMemory, after: ContainerMemory, path: str, tolerance: float | None
) -> Iterator[PartChanged]:
    """The innermost different parts."""
    known = {key: (name, part) for key, name, part in _named(before)}
    is_whole = len(before.parts) == before.length  # or it may only have moved out of sight
    for key, name, part in _named(after):
        _, former = known.pop(key, (name, None))
        if former is None and not is_whole:
            continue
        if (
            isinstance(former, ContainerMemory)
            and isinstance(part, ContainerMemory)
            and former.kind is part.kind
        ):
            yield from _parts(former, part, path + name, tolerance)
            continue
        differs = differences(former, part, _is_one_object(former, part), tolerance)
        if differs:
            yield PartChanged(
                path + name, None if former is None else former.described, part.described, differs
            )
    if is_whole:
        for name, former in known.values():
            yield PartChanged(path + name, former.described, None, (followed.ITEMS,))


def _is_one_object(before: Memory | None, after: Memory) -> bool:
    one, other = getattr(before, "reference", None), getattr(after, "reference", None)
    if one is None or other is None:
        return False
    known = one()
    return known is not None and known is other()


def _named(memory: ContainerMemory) -> Iterator[tuple[object, str, Memory]]:
    """The parts of a container: key, text of the key, and value."""
    if memory.keys is None:
        for position, part in enumerate(memory.parts):
            yield position, f"[{position}]", part
        return
    is_dictionary = dict in memory.kind.__mro__
    for key, part in zip(memory.keys, memory.parts, strict=False):
        if type(key) is str and not is_dictionary:
            yield key, f".{key}", part
        elif is_plain(key):
            yield repr(key), f"[{key!r}]", part
        else:  # the memory keeps it alive, so that its id stays unique
            yield id(key), f"[{name_of(type(key))}]", part
