"""What is inside of containers and objects, found without running any code of the program's."""

from __future__ import annotations

import dataclasses
from collections import UserDict, UserList, deque
from functools import partial
from itertools import islice
from types import GetSetDescriptorType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any, Final, NamedTuple

from shapetrace.panes.loaded import Torch, classes_of, is_kind
from shapetrace.views.shapes import CUT, cut_end

MOST_ITEMS: Final = 64
"""Items of one container that are looked at."""
_LONGEST_PLAIN: Final = 40

PLAIN: Final = frozenset(
    {int, float, complex, bool, str, bytes, bytearray, type(None), type(Ellipsis), range}
)
"""Classes of values that hold nothing."""
_DESCRIPTORS: Final = (GetSetDescriptorType, MemberDescriptorType)
"""How Python itself gives out the attributes of an object."""
_LISTED: Final = (list, set, frozenset, deque)
_VIEWS: Final[tuple[type, ...]] = (type({}.values()), type({}.items()), type({}.keys()))
_ORDERED_VIEWS: Final = ("odict_values", "odict_items", "odict_keys")


class Held(NamedTuple):
    """What is inside a container or an object."""

    kind: str
    keys: list[str] | None
    """What the values are called, where somebody wants to know."""
    values: list[Any]
    """The first of them."""
    length: int
    is_own: bool = False
    """Whether these are all there is, and not just some attributes of an object."""


def held_by(
    value: Any, kind: type, torch: Torch | None = None, *, wants_keys: bool = True
) -> Held | None:
    """What is inside a value, found without running any code of the program's."""
    name = kind.__name__
    if kind is list or kind is tuple:
        return Held(name, None, list(islice(value, MOST_ITEMS)), len(value), True)
    if kind is dict:
        return _of_dict(value, name, wants_keys)
    classes = classes_of(kind)
    if type in classes or (torch is not None and torch.optimizer in classes):
        return None  # classes hold what all their objects share; optimizers show themselves well
    if dict in classes:
        return _of_dict(value, name, wants_keys)
    if tuple in classes:
        return _of_tuple(value, kind)
    for each in _LISTED:
        if each in classes:
            # Not through the class's own iterator: it may be the program's code.
            first = list(islice(each.__iter__(value), MOST_ITEMS))
            return Held(name, None, first, each.__len__(value), True)
    if kind in _VIEWS or name in _ORDERED_VIEWS:
        return Held(name, None, list(islice(value, MOST_ITEMS)), len(value), True)
    if kind is MappingProxyType:
        copied = dict(islice(value.items(), MOST_ITEMS))
        return _of_dict(copied, name, wants_keys)._replace(length=len(value))
    if kind is slice:
        return Held(name, None, [value.start, value.stop, value.step], 3, True)
    if is_kind(kind, partial):
        return _of_partial(value, kind)
    return _of_object(value, kind, classes)


def plain_text(value: Any) -> str:
    """A number or a text as the program would write it, where that is short."""
    kind = type(value)
    if kind is int and value.bit_length() > 256:
        return "int"
    if kind in (bytes, bytearray, range):
        return f"{kind.__name__}[{len(value)}]"
    if kind is str and len(value) > _LONGEST_PLAIN:
        return repr(value[:_LONGEST_PLAIN]) + CUT
    return repr(value)


def _of_dict(value: Any, name: str, wants_keys: bool) -> Held:
    keys = None
    if wants_keys:
        keys = [_key_text(key) for key in islice(dict.keys(value), MOST_ITEMS)]
    values = list(islice(dict.values(value), MOST_ITEMS))
    return Held(name, keys, values, dict.__len__(value), True)


def _of_tuple(value: Any, kind: Any) -> Held:
    fields = getattr(kind, "_fields", None)
    length = tuple.__len__(value)
    keys = None
    if type(fields) is tuple and len(fields) == length:
        keys = [str(field) for field in fields[:MOST_ITEMS]]
    first = list(islice(tuple.__iter__(value), MOST_ITEMS))
    return Held(kind.__name__.rsplit(".", 1)[-1], keys, first, length, True)


def _of_partial(value: Any, kind: type) -> Held:
    members: Any = partial
    function = members.func.__get__(value)
    positional, named = members.args.__get__(value), members.keywords.__get__(value)
    keys = [getattr(function, "__name__", "function"), *map(str, range(len(positional))), *named]
    values = [function, *positional, *named.values()]
    return Held(kind.__name__, keys[:MOST_ITEMS], values[:MOST_ITEMS], len(values))


def _of_object(value: Any, kind: type, classes: tuple[type, ...]) -> Held | None:
    attributes = own_attributes(value, classes)
    name = kind.__name__
    for each in (UserDict, UserList):
        data = attributes.get("data") if each in classes else None
        if type(data) in (dict, list):
            return held_by(data, type(data))._replace(kind=name)  # type: ignore[union-attr]
    fields = _in_classes(classes, "__dataclass_fields__")
    if type(fields) is dict:
        names = [each.name for each in fields.values() if isinstance(each, dataclasses.Field)]
        present = [each for each in names if each in attributes]
        values = [attributes[each] for each in present[:MOST_ITEMS]]
        return Held(name, present[:MOST_ITEMS], values, len(present), True)
    if BaseException in classes:
        members: Any = BaseException
        arguments = members.args.__get__(value)
        attributes = {**{str(at): item for at, item in enumerate(arguments)}, **attributes}
    if not attributes:
        return None
    keys = list(islice(attributes, MOST_ITEMS))
    return Held(name, list(map(str, keys)), [attributes[key] for key in keys], len(attributes))


def own_attributes(value: Any, classes: tuple[type, ...]) -> dict[str, Any]:
    """The attributes that an object has by itself, not by its own lookup or properties."""
    attributes: dict[str, Any] = {}
    for each in classes:
        slots = each.__dict__.get("__slots__")
        if slots is None:
            continue
        for name in (slots,) if type(slots) is str else islice(slots, MOST_ITEMS):
            slot = each.__dict__.get(name)
            if type(slot) is MemberDescriptorType:
                try:
                    attributes[name] = slot.__get__(value)
                except AttributeError:
                    continue  # not set
    descriptor = _in_classes(classes, "__dict__")
    if type(descriptor) in _DESCRIPTORS and ModuleType not in classes:
        held: dict[str, Any] = descriptor.__get__(value)
        return {**attributes, **held} if attributes else held
    return attributes


def _in_classes(classes: tuple[type, ...], name: str) -> Any:
    for each in classes:
        if name in each.__dict__:
            return each.__dict__[name]
    return None


def _key_text(key: Any) -> str:
    kind = type(key)
    if kind is str:
        return cut_end(key, _LONGEST_PLAIN)
    return plain_text(key) if kind in PLAIN else kind.__name__
