"""Finds the items of containers and objects, and makes containers anew around other items.

None of the program's code runs, but where a caller asks for computed fields.
"""

from __future__ import annotations

from collections import OrderedDict, UserDict, UserList, deque
from collections.abc import Callable, Iterable
from functools import partial
from gc import get_referents
from itertools import islice
from types import (
    MappingProxyType,
    SimpleNamespace,
)
from typing import Any, Final, NamedTuple

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of, is_kind, name_of
from shapetrace.inspecting.attributes import dataclass_fields, own_attributes, tuple_fields
from shapetrace.inspecting.torch_access import Torch

MOST_ITEMS: Final = 64
"""Limit on the items of one container that are read."""

PLAIN: Final = frozenset(
    {int, float, complex, bool, str, bytes, bytearray, type(None), type(Ellipsis), range}
)
"""Classes of values that hold nothing."""
INSIDE: Final = object()
"""Says of a value that it is to be looked into."""
_MISSING: Final = object()
_LISTED: Final = (list, set, frozenset, deque)
_ORDERED: Final[OrderedDict[Any, Any]] = OrderedDict()
_VIEWS: Final[dict[type, Callable[[dict[Any, Any]], Iterable[Any]]]] = {
    type({}.values()): dict.values,
    type(_ORDERED.values()): dict.values,
    type({}.items()): dict.items,
    type(_ORDERED.items()): dict.items,
    type({}.keys()): dict.keys,
    type(_ORDERED.keys()): dict.keys,
}
"""How to iterate each kind of dictionary view."""


class Held(NamedTuple):
    """The items of a container or an object."""

    kind: str
    keys: list[Any] | None
    """The keys of the values."""
    values: list[Any]
    """The first values."""
    length: int
    is_own: bool = False
    """Whether these are all contents, and not just some attributes of an object."""


def contained_by(
    value: Any, kind: type, most: int | None = None, *, computed: bool = False
) -> tuple[list[Any] | None, list[Any]] | None:
    """The first keys and values of a list, tuple, dictionary or dataclass.

    Lists and tuples have no keys. With ``computed``, fields of dataclasses that no attribute keeps
    are asked for: a property or ``__getattr__`` of the program's computes them.
    """
    # The usual cases, and this runs for each captured value.
    if kind is list or kind is tuple:
        return None, [*islice(value, most)]
    classes = classes_of(kind)
    if dict in classes:
        # Both at once: another thread may change it.
        items = [*islice(dict.items(value), most)]
        return [key for key, _ in items], [inner for _, inner in items]
    if tuple in classes:
        return None, [*islice(tuple.__iter__(value), most)]
    if list in classes:
        return None, [*islice(list.__iter__(value), most)]
    fields = dataclass_fields(classes)
    if not fields or type in classes:
        return None
    attributes = own_attributes(value, classes)
    if computed and any(each not in attributes for each in fields):
        every = [(each, getattr(value, each, _MISSING)) for each in fields]
        attributes = {name: inner for name, inner in every if inner is not _MISSING}
    present = [each for each in fields if each in attributes][:most]
    return present, [attributes[each] for each in present]


def remade(
    value: Any,
    leaf: Callable[[Any], Any],
    key: Callable[[Any], Any],
    other: Callable[[Any], Any],
    deepest: int,
    memo: dict[int, Any] | None = None,
) -> Any:
    """A list, tuple, dictionary or dataclass made anew around its items made anew.

    Each value is given to ``leaf`` first, which returns ``INSIDE`` for what may be a container, and
    keys of dictionaries to ``key``. ``other`` makes what is none, or is too deep.
    """
    made = leaf(value)
    if made is not INSIDE:
        return made
    memo = {} if memo is None else memo
    number, kind = id(value), type(value)
    if number in memo:
        return memo[number]
    inside = contained_by(value, kind, computed=True) if deepest else None
    if inside is None:
        return other(value)
    keys, values = inside
    if keys is None and is_kind(kind, tuple):
        memo[number] = other(value)  # A value that contains itself, by way of a list.
        parts = [remade(each, leaf, key, other, deepest - 1, memo) for each in values]
        return tuple(parts) if tuple_fields(kind) is None else _named_tuple(kind, parts)
    if keys is None:
        row: list[Any] = []
        memo[number] = row
        row.extend(remade(each, leaf, key, other, deepest - 1, memo) for each in values)
        return row
    if is_kind(kind, dict):
        table: dict[Any, Any] = {}
        memo[number] = table
        for name, each in zip(keys, values, strict=True):
            table[key(name)] = remade(each, leaf, key, other, deepest - 1, memo)
        return table
    copy = memo[number] = object.__new__(kind)
    for name, each in zip(keys, values, strict=True):
        object.__setattr__(copy, name, remade(each, leaf, key, other, deepest - 1, memo))
    return copy


def _named_tuple(kind: Any, parts: list[Any]) -> tuple[Any, ...]:
    try:
        made: tuple[Any, ...] = tuple.__new__(kind, parts)
        return made
    except TypeError as error:
        if is_asynchronous(error):
            raise
        return tuple(parts)


def held_by(value: Any, kind: type, torch: Torch | None = None) -> Held | None:
    """The items of a value, found without running any code of the program's."""
    name = name_of(kind)
    if kind is list or kind is tuple:
        return Held(name, None, list(islice(value, MOST_ITEMS)), len(value), True)
    if kind is dict:
        return _of_dict(value, name)
    classes = classes_of(kind)
    if type in classes:
        return None  # a class holds shared attributes
    if torch is not None and kind in torch.symbolic:
        return None
    if torch is not None and torch.optimizer in classes:
        return _of_optimizer(value, name)
    if dict in classes:
        return _of_dict(value, name)
    if tuple in classes:
        return _of_tuple(value, kind)
    for each in _LISTED:
        if each in classes:
            # Not through the class's own iterator: it may be the program's code.
            first = list(islice(each.__iter__(value), MOST_ITEMS))
            return Held(name, None, first, each.__len__(value), True)
    if kind in _VIEWS or kind is MappingProxyType:
        return _of_shown(value, kind)
    if kind is slice:
        return Held(name, None, [value.start, value.stop, value.step], 3, True)
    if is_kind(kind, partial):
        return _of_partial(value, kind)
    return _of_object(value, kind, classes)


def _of_dict(value: Any, name: str) -> Held:
    keys = list(islice(dict.keys(value), MOST_ITEMS))
    values = list(islice(dict.values(value), MOST_ITEMS))
    return Held(name, keys, values, dict.__len__(value), True)


def _of_shown(value: Any, kind: type) -> Held | None:
    """The items of a view or proxy of another value, which may have a class of the program's."""
    inside = get_referents(value)
    if len(inside) != 1:
        return None
    if dict not in classes_of(type(inside[0])):
        return Held(name_of(kind), None, inside, 1, True)
    if kind is MappingProxyType:
        return _of_dict(inside[0], name_of(kind))
    first = list(islice(_VIEWS[kind](inside[0]), MOST_ITEMS))
    return Held(name_of(kind), None, first, dict.__len__(inside[0]), True)


def _of_tuple(value: Any, kind: Any) -> Held:
    fields = tuple_fields(kind)
    length = tuple.__len__(value)
    keys = None
    if fields is not None and len(fields) == length:
        keys = list(fields[:MOST_ITEMS])
    first = list(islice(tuple.__iter__(value), MOST_ITEMS))
    return Held(name_of(kind).rsplit(".", 1)[-1], keys, first, length, True)


def _of_partial(value: Any, kind: type) -> Held:
    members: Any = partial
    function = members.func.__get__(value)
    positional, named = members.args.__get__(value), members.keywords.__get__(value)
    keys = ["of", *map(str, range(len(positional))), *named]
    values = [function, *positional, *named.values()]
    return Held(name_of(kind), keys[:MOST_ITEMS], values[:MOST_ITEMS], len(values), True)


def _of_object(value: Any, kind: type, classes: tuple[type, ...]) -> Held | None:
    attributes = own_attributes(value, classes)
    name = name_of(kind)
    for each in (UserDict, UserList):
        data = attributes.get("data") if each in classes else None
        if type(data) in (dict, list):
            # A dictionary or a list always has items.
            return held_by(data, type(data))._replace(kind=name)  # type: ignore[union-attr]
    fields = dataclass_fields(classes)
    if fields:
        present = [each for each in fields if each in attributes]
        values = [attributes[each] for each in present[:MOST_ITEMS]]
        return Held(name, present[:MOST_ITEMS], values, len(present), True)
    if BaseException in classes:
        members: Any = BaseException
        arguments = members.args.__get__(value)
        attributes = {**{str(at): item for at, item in enumerate(arguments)}, **attributes}
    if not attributes:
        return None
    is_own = kind is SimpleNamespace or name == "Namespace"  # whose repr shows all attributes
    keys = list(islice(attributes, MOST_ITEMS))
    return Held(name, keys, [attributes[key] for key in keys], len(attributes), is_own)


def _of_optimizer(value: Any, name: str) -> Held | None:
    """An optimizer's repr is good, but for options that are tensors."""
    groups = own_attributes(value, classes_of(type(value))).get("param_groups")
    if type(groups) is not list:
        return None
    shown = []
    for group in groups[:MOST_ITEMS]:
        if type(group) is dict:
            shown.append({key: item for key, item in group.items() if key != "params"})
    return Held(name, ["param_groups"], [shown], 1)
