"""Finds attributes of an object without running any code of the program's."""

from __future__ import annotations

import dataclasses
from itertools import islice
from types import GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, Final

from shapetrace._classes import classes_of, in_classes

_DESCRIPTORS: Final = (GetSetDescriptorType, MemberDescriptorType)
"""Python's own descriptors for the attributes of an object."""
_MOST_SLOTS: Final = 64
"""Limit on the slots of one class that are read."""
_internals: Final[Any] = dataclasses
_FIELD: Final = _internals._FIELD
"""The marker of a dataclass's real fields, which a ClassVar or an InitVar does not have."""


def dataclass_fields(classes: tuple[type, ...]) -> list[str]:
    """The names of a dataclass's fields, in order; none for other classes."""
    fields = in_classes(classes, "__dataclass_fields__")
    if type(fields) is not dict:
        return []
    found = [each for each in fields.values() if type(each) is dataclasses.Field]
    return [each.name for each in found if getattr(each, "_field_type", None) is _FIELD]


def tuple_fields(kind: type) -> tuple[str, ...] | None:
    """The names of a named tuple's items."""
    classes = classes_of(kind)
    fields = in_classes(classes, "_fields") if tuple in classes else None
    if type(fields) is not tuple or not all(type(each) is str for each in fields):
        return None
    return fields


def own_attributes(value: Any, classes: tuple[type, ...]) -> dict[str, Any]:
    """The attributes stored in an object, without its own lookup and properties."""
    attributes: dict[str, Any] = {}
    for each in classes:
        slots = each.__dict__.get("__slots__")
        if slots is None:
            continue
        for name in (slots,) if type(slots) is str else islice(slots, _MOST_SLOTS):
            slot = each.__dict__.get(name)
            if type(slot) is MemberDescriptorType:
                try:
                    attributes[name] = slot.__get__(value)
                except AttributeError:
                    continue  # not set
    descriptor = in_classes(classes, "__dict__")
    if type(descriptor) in _DESCRIPTORS and ModuleType not in classes:
        held: dict[str, Any] = descriptor.__get__(value)
        return {**attributes, **held} if attributes else held
    return attributes
