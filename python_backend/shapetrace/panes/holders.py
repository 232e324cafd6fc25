"""Containers and objects that hold tensors, by what they hold.

    [f32[2,3] ×12]    (f32[2,4], i64[2])    {input_ids: i64[2,7], attention_mask: i64[2,7]}
    [f32[2,3] ×64, …] 1,000,000 items       BaseModelOutput(last_hidden_state: f32[2,7,64], …)

What holds nothing of ours is left to the debugger. Of a large one only the first items are looked
at, which is as far as the debugger would write them out.
"""

from __future__ import annotations

import dataclasses
from collections import UserDict, UserList, deque
from collections.abc import Iterable
from functools import partial
from itertools import islice, repeat
from types import (
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NamedTuple

from shapetrace.events.model import Container, Other, Value
from shapetrace.panes.loaded import Torch, classes_of, is_kind
from shapetrace.panes.modules import module_name
from shapetrace.panes.tensors import array_line, shape_text, storage_line
from shapetrace.views.shapes import CUT, cut_end, value_text

MOST_ITEMS: Final = 64
"""Items of one container that are looked at."""
MOST_DEPTH: Final = 4
"""How deep is looked."""
MOST_LOOKED_AT: Final = 500
"""Containers and objects that are looked at for one value."""
_LONGEST: Final = 200
_LONGEST_PLAIN: Final = 40

_PLAIN: Final = frozenset(
    {int, float, complex, bool, str, bytes, bytearray, type(None), type(Ellipsis), range}
)
_DESCRIPTORS: Final = (GetSetDescriptorType, MemberDescriptorType)
"""How Python itself gives out the attributes of an object."""
_LISTED: Final = (list, set, frozenset, deque)
_VIEWS: Final[tuple[type, ...]] = (type({}.values()), type({}.items()), type({}.keys()))
_ORDERED_VIEWS: Final = ("odict_values", "odict_items", "odict_keys")
_SHORT_REPR: Final[frozenset[Any]] = frozenset(
    each.__repr__ for each in (list, tuple, dict, set, frozenset, deque, object)
)
"""Of these the debugger writes out a few items of a few levels only, or none."""


class Held(NamedTuple):
    """What is inside a container or an object."""

    kind: str
    keys: list[str] | None
    values: list[Any]
    """The first of them."""
    length: int
    is_own: bool = False
    """Whether these are all there is, and not just some attributes of an object."""


def holder_line(value: Any, torch: Torch | None, arrays: type | None) -> str | None:
    """The text of what holds something of ours, or None."""
    kind = type(value)
    if kind in _PLAIN:
        return None
    looked = _Look(torch, arrays)
    if not looked.finds(value, 0, _is_written_out(kind)) and not looked.was_cut:
        return None
    text = value_text(_Writer(looked).value(value, 0), _LONGEST)
    held = held_by(value, kind, torch)
    if held is not None and held.is_own and held.length > len(held.values):
        text = f"{text} {held.length:,} items"
    return text


class _Look:
    """Looks for something of ours in a value, as far as there is patience."""

    def __init__(self, torch: Torch | None, arrays: type | None) -> None:
        self.torch = torch
        self.arrays = arrays
        self.was_cut = False
        """Whether something was left out that the debugger would have written."""
        self._left = MOST_LOOKED_AT
        self._seen: set[int] = set()

    def leaf_text(self, value: Any) -> str | None:
        """The text of what is ours by itself."""
        classes = classes_of(type(value))
        torch = self.torch
        if torch is not None:
            if torch.tensor in classes:
                return shape_text(value, torch)
            if torch.module in classes:
                return module_name(value, torch)
            if not torch.leaves.isdisjoint(classes):
                return storage_line(value, torch)
        if self.arrays is not None and self.arrays in classes:
            return array_line(value, self.arrays)
        return None

    def is_leaf(self, kind: type) -> bool:
        """Whether values of a class are ours by themselves."""
        classes = classes_of(kind)
        if self.torch is not None and not self.torch.leaves.isdisjoint(classes):
            return True
        return self.arrays is not None and self.arrays in classes

    def finds(self, value: Any, depth: int, is_written_out: bool) -> bool:
        """Whether a value is ours or holds what is.

        What is written out is so by Python itself, to the last item, if nobody else does it.
        """
        kind = type(value)
        if kind in _PLAIN:
            return False
        if self.is_leaf(kind):
            return True
        if kind is MethodType:
            return self.is_leaf(type(value.__self__))
        if id(value) in self._seen:
            return False
        self._seen.add(id(value))
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH:
            self.was_cut = self.was_cut or is_written_out
            return False
        held = held_by(value, kind, self.torch)
        if held is None:
            return False
        if held.length > len(held.values) and is_written_out:
            self.was_cut = True
        if not held.is_own and not is_written_out:
            # It would be shown by its address; only what it holds itself says more.
            depth = max(depth, MOST_DEPTH - 1)
        return any(
            self.finds(item, depth + 1, is_written_out or _is_written_out(type(item)))
            for item in held.values
        )


class _Writer:
    """Describes a value that holds something of ours."""

    def __init__(self, look: _Look) -> None:
        self._look = look
        self._left = MOST_LOOKED_AT
        self._inside: set[int] = set()

    def value(self, value: Any, depth: int) -> Value:
        """Any value; those of ours are texts already, so that they are written but once."""
        kind = type(value)
        if kind in _PLAIN:
            return Other(plain_text(value))
        text = self._look.leaf_text(value)
        if text is not None:
            return Other(text)
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH or id(value) in self._inside:
            return Other(CUT)
        held = held_by(value, kind, self._look.torch)
        if held is None:
            return Other(kind.__name__)
        self._inside.add(id(value))
        try:
            return self._container(value, held, depth)
        finally:
            self._inside.discard(id(value))

    def _container(self, value: Any, held: Held, depth: int) -> Value:
        pairs: Iterable[tuple[str | None, Any]] = zip(
            held.keys or repeat(None), held.values, strict=False
        )
        unseen = held.length - len(held.values)
        if not held.is_own:
            every = list(pairs)
            pairs = [(key, item) for key, item in every if self._holds(item)]
            unseen += len(every) - len(pairs)
            if not pairs:
                return Other(held.kind)
        listed = list(pairs)
        return Container(
            kind=held.kind,
            items=tuple(self.value(item, depth + 1) for _, item in listed),
            keys=None if held.keys is None else tuple(str(key) for key, _ in listed),
            length=len(listed) + unseen if unseen else None,
        )

    def _holds(self, value: Any) -> bool:
        look = _Look(self._look.torch, self._look.arrays)
        return look.finds(value, MOST_DEPTH - 1, False)


def held_by(value: Any, kind: type, torch: Torch | None = None) -> Held | None:
    """What is inside a value, found without running any code of the program's."""
    name = kind.__name__
    if kind is list or kind is tuple:
        return Held(name, None, list(islice(value, MOST_ITEMS)), len(value), True)
    if kind is dict:
        return _of_dict(value, name)
    classes = classes_of(kind)
    if type in classes or (torch is not None and torch.optimizer in classes):
        return None  # classes hold what all their objects share; optimizers show themselves well
    if dict in classes:
        return _of_dict(value, name)
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
        return _of_dict(copied, name)._replace(length=len(value))
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


def _of_dict(value: Any, name: str) -> Held:
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
    return plain_text(key) if kind in _PLAIN else kind.__name__


def _is_written_out(kind: type) -> bool:
    """Whether the debugger has Python write out all of a value, in whichever way its class does."""
    return kind.__repr__ not in _SHORT_REPR
