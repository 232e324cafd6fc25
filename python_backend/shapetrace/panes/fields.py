"""What is shown below dataclasses, named tuples and dictionaries that hold something of ours.

    output                   BaseModelOutput(last_hidden_state: f32[2,7,64])
      last_hidden_state      f32[2,7,64]
      raw view               (what the debugger shows: attributes, properties, methods)

    state                    defaultdict(f32[4,2] · Parameter: {step: f32[], …})
      f32[4,2] · Parameter   {step: f32[], exp_avg: f32[4,2]}

The debugger would run each property of an object, and write out each key of a dictionary, which may
be a tensor. Here only what a value has by itself is shown; the rest is made when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of
from shapetrace.inspecting.attributes import dataclass_fields, own_attributes, tuple_fields
from shapetrace.inspecting.containers import PLAIN
from shapetrace.panes.child_entries import (
    ChildEntry,
    ChildGroup,
    Text,
    Usual,
    attribute,
    cut_entries,
)

RAW: Final = "raw view"
"""Where all is that the debugger shows of a value. No attribute has such a name."""
MOST_KEYS: Final = 500
"""Items of a dictionary that the debugger shows."""

Show = Callable[[Any], str | None]
"""The text of a value, where it is ours."""


def raw_view(value: Any, usual: Usual | None) -> list[ChildEntry]:
    """The entry for what the debugger would show below a value."""
    return [] if usual is None else [ChildEntry(RAW, ChildGroup("", lambda: usual(value)), "")]


def may_have_fields(kind: type) -> bool:
    """Return whether what is below values of a class may be ours to say."""
    classes = classes_of(kind)
    return dict in classes or tuple_fields(kind) is not None or _has_fields(classes)


def held_entries(value: Any, usual: Usual | None, show: Show) -> list[ChildEntry]:
    """What is below a value that holds something of ours; empty where the debugger says it well."""
    kind = type(value)
    classes = classes_of(kind)
    names = tuple_fields(kind)
    if names is not None:
        if show(value) is None:
            return []
        entries = _of_tuple(value, names, classes)
    elif dict in classes:
        entries = _of_dict(value, classes, show)
    elif _has_fields(classes) and show(value) is not None:
        entries = _attribute_entries(own_attributes(value, classes), dataclass_fields(classes))
    else:
        return []
    return [*entries, *raw_view(value, usual)] if entries else []


def own_entries(value: Any, error: Exception) -> list[ChildEntry]:
    """What a value has by itself, where its class does not let the debugger look."""
    kind = type(value)
    classes = classes_of(kind)
    entries: list[ChildEntry] = []
    if dict in classes:
        items = list(islice(dict.items(value), MOST_KEYS))
        entries = _item_entries(items, [None] * len(items), dict.__len__(value))
    elif tuple in classes:
        items = list(enumerate(islice(tuple.__iter__(value), MOST_KEYS)))
        entries = [ChildEntry(f"[{index}]", item, f"[{index}]") for index, item in items]
    entries += _attribute_entries(own_attributes(value, classes), dataclass_fields(classes))
    return [*entries, ChildEntry("…", Text(f"{type(error).__name__} while reading"), None)]


def _has_fields(classes: tuple[type, ...]) -> bool:
    """Return whether a class is a dataclass that is nothing else."""
    is_container = any(each in classes for each in (list, tuple, set, frozenset, dict))
    return not is_container and bool(dataclass_fields(classes))


def _of_tuple(value: Any, names: tuple[str, ...], classes: tuple[type, ...]) -> list[ChildEntry]:
    entries = [
        ChildEntry(name, item, attribute(name))
        for name, item in zip(names, tuple.__iter__(value), strict=False)
    ]
    return entries + _attribute_entries(own_attributes(value, classes), [])


def _attribute_entries(attributes: dict[str, Any], first: list[str]) -> list[ChildEntry]:
    """Attributes, some of which have an order of their own."""
    names = [name for name in first if name in attributes]
    names += sorted(str(name) for name in attributes if name not in names)
    return [
        ChildEntry(name, attributes[name], attribute(name)) for name in names if name in attributes
    ]


def _of_dict(value: Any, classes: tuple[type, ...], show: Show) -> list[ChildEntry]:
    items = list(islice(dict.items(value), MOST_KEYS))
    fields = dataclass_fields(classes)
    if fields:
        return _of_model_output(value, fields, classes) if show(value) is not None else []
    keys = [None if type(key) in PLAIN else show(key) for key, _ in items]
    return _item_entries(items, keys, dict.__len__(value)) if any(keys) else []


def _item_entries(
    items: list[tuple[Any, Any]], keys: list[str | None], length: int
) -> list[ChildEntry]:
    entries: list[ChildEntry] = []
    taken: set[str] = set()
    for (key, item), text in zip(items, keys, strict=True):
        name = text or _written(key)
        number = 2
        unique = name
        while unique in taken:
            # Of several entries by one name the editor shows but one.
            unique, number = f"{name} ({number})", number + 1
        taken.add(unique)
        suffix = f"[{key!r}]" if type(key) in PLAIN else None
        entries.append(ChildEntry(unique, item, suffix))
    return cut_entries(entries, length)


def _of_model_output(value: Any, fields: list[str], classes: tuple[type, ...]) -> list[ChildEntry]:
    """An output that is a dictionary and has attributes by the same names."""
    attributes = own_attributes(value, classes)
    entries = []
    for key, item in islice(dict.items(value), MOST_KEYS):
        is_attribute = type(key) is str and attributes.get(key) is item
        suffix = attribute(key) if is_attribute else f"[{key!r}]" if type(key) in PLAIN else None
        entries.append(ChildEntry(str(key) if type(key) is str else _written(key), item, suffix))
    shown = {entry.name for entry in entries}
    others = {name: item for name, item in attributes.items() if name not in shown}
    nothing = [name for name in fields if name in others and others[name] is None]
    for name in nothing:
        del others[name]
    return entries + _attribute_entries(others, fields)


def _written(key: Any) -> str:
    """A key as the debugger writes it."""
    try:
        return f"{key!r}"
    except Exception as error:
        if is_asynchronous(error):
            raise
        return f"<{type(key).__name__}: {type(error).__name__}>"
