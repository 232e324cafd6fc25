"""Containers and objects that hold tensors, by what they hold.

    [f32[2,3] ×12]    (f32[2,4], i64[2])    {input_ids: i64[2,7], attention_mask: i64[2,7]}
    [f32[2,3] ×64, …] 1,000,000 items       BaseModelOutput(last_hidden_state: f32[2,7,64], …)

What holds nothing of ours is left to the debugger. Of a large one only the first items are looked
at, which is as far as the debugger would write them out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum
from itertools import chain, islice, repeat
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

from shapetrace._classes import classes_of, name_of
from shapetrace.events.model import Container, Other, Value
from shapetrace.inspecting.containers import MOST_ITEMS, PLAIN, Held, held_by
from shapetrace.inspecting.torch_access import Torch
from shapetrace.panes.module_text import module_name
from shapetrace.panes.tensors import array_line, shape_text, storage_line
from shapetrace.panes.texts import key_text, plain_text
from shapetrace.views.shapes import CUT, value_text

MOST_DEPTH: Final = 4
"""How deep is looked."""
MOST_LOOKED_AT: Final = 500
"""The most containers and objects that are inspected for one value."""
MOST_WRITTEN: Final = 200
"""Containers and objects that are written out for one value."""
MOST_LEAVES: Final = 600
"""The most tensors and modules whose shapes are read for one value."""
_LONGEST: Final = 200

_SIMPLE: Final = frozenset({list, tuple, dict})
"""Types of an object's attributes in which its tensors are searched."""
_SHORT_REPR: Final[frozenset[Any]] = frozenset(
    each.__repr__ for each in (list, tuple, dict, set, frozenset, deque)
)
"""Of these the debugger writes out a few items of a few levels only."""
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType)
_BY_ADDRESS: Final[frozenset[Any]] = frozenset({object.__repr__})


class _Written(Enum):
    """How the debugger would write a value that is left to it."""

    ASKED = 0
    """Its class is asked, unless it is one of Python's own: of these a few items are shown."""
    FULLY = 1
    """It is inside of something whose class writes out all that it has."""
    NEVER = 2
    """It is inside of an object that is shown by its address."""


def holder_line(value: Any, torch: Torch | None, arrays: type | None) -> str | None:
    """The text of what holds something of ours, or None."""
    kind = type(value)
    if kind in PLAIN or (kind in _SIMPLE and _is_plain(value, kind)):
        return None
    looked = _Look(torch, arrays)
    if not looked.finds(value, 0, _Written.ASKED) and not looked.was_cut:
        return None
    text = value_text(_Writer(looked).value(value, 0), _LONGEST)
    held = held_by(value, kind, torch)
    if held is not None and held.is_own and held.length > len(held.values):
        text = f"{text} {held.length:,} items"
    return text


def _is_plain(value: Any, kind: type) -> bool:
    """Whether the first items of a list, tuple or dictionary hold nothing, as is most common."""
    items = value.values() if kind is dict else value
    if not PLAIN.issuperset(map(type, islice(items, MOST_ITEMS))):
        return False
    return kind is not dict or PLAIN.issuperset(map(type, islice(value, MOST_ITEMS)))


class _Look:
    """Looks for something of ours in a value, as far as there is patience."""

    def __init__(self, torch: Torch | None, arrays: type | None) -> None:
        self.torch = torch
        self.arrays = arrays
        self.was_cut = False
        """Whether something was not inspected that the debugger would have written out."""
        self._left = MOST_LOOKED_AT
        self._seen: set[int] = set()

    def leaf_text(self, value: Any) -> str | None:
        """The text of a value of ours."""
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
        """Return whether values of a class are ours by themselves."""
        classes = classes_of(kind)
        if self.torch is not None and not self.torch.leaves.isdisjoint(classes):
            return True
        return self.arrays is not None and self.arrays in classes

    def name_of(self, value: Any) -> str:
        """The text of other values: names of classes and functions, sizes."""
        kind = type(value)
        if self.torch is not None and kind in self.torch.symbolic:
            return str(value)
        if type in classes_of(kind):
            return name_of(value)
        if kind is MethodType:
            return str(getattr(value.__func__, "__qualname__", "method"))
        return str(value.__name__) if kind in _FUNCTIONS else name_of(kind)

    def finds(self, value: Any, depth: int, written: _Written) -> bool:
        """Return whether a value, which is not plain, is ours or holds what is."""
        kind = type(value)
        if self.is_leaf(kind):
            return True
        if kind is MethodType:
            owner = value.__self__
            if self.is_leaf(type(owner)) or written is _Written.NEVER or type(owner) in PLAIN:
                return self.is_leaf(type(owner))
            return self.finds(owner, depth + 1, written)
        if id(value) in self._seen:
            return False
        self._seen.add(id(value))
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH:
            self.was_cut = self.was_cut or written is _Written.FULLY
            return False
        if written is _Written.NEVER and kind not in _SIMPLE:
            return False  # whatever it holds, an object around it is not known by that
        held = held_by(value, kind, self.torch)
        if held is None:
            return False
        inside = _inside(kind, written)
        if inside is _Written.FULLY and held.length > len(held.values):
            self.was_cut = True
        if inside is _Written.NEVER:
            depth = max(depth, MOST_DEPTH - 1)
        for item in chain(held.values, held.keys or ()):
            if type(item) not in PLAIN and self.finds(item, depth + 1, inside):
                return True
        return False


class _Writer:
    """Describes a value that holds something of ours."""

    def __init__(self, look: _Look) -> None:
        self._look = look
        self._left = MOST_WRITTEN
        self._leaves_left = MOST_LEAVES
        self._inside: set[int] = set()

    def value(self, value: Any, depth: int) -> Value:
        """Any value; those of ours are texts already, so that they are written but once."""
        kind = type(value)
        if kind in PLAIN:
            return Other(plain_text(value))
        if self._look.is_leaf(kind):
            self._leaves_left -= 1
            text = self._look.leaf_text(value) if self._leaves_left >= 0 else CUT
            return Other(text or name_of(kind))
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH or id(value) in self._inside:
            return Other(CUT)
        held = held_by(value, kind, self._look.torch)
        if held is None:
            return Other(self._look.name_of(value))
        self._inside.add(id(value))
        try:
            return self._container(value, held, depth)
        finally:
            self._inside.discard(id(value))

    def _container(self, value: Any, held: Held, depth: int) -> Value:
        pairs: Iterable[tuple[Any, Any]] = zip(held.keys or repeat(None), held.values, strict=False)
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
            keys=None if held.keys is None else tuple(self._key(key) for key, _ in listed),
            length=len(listed) + unseen if unseen else None,
        )

    def _key(self, key: Any) -> str:
        text = None if type(key) in PLAIN else self._look.leaf_text(key)
        return key_text(key) if text is None else text

    def _holds(self, value: Any) -> bool:
        look = _Look(self._look.torch, self._look.arrays)
        return type(value) not in PLAIN and look.finds(value, MOST_DEPTH - 1, _Written.ASKED)


def _inside(kind: type, written: _Written) -> _Written:
    """How the debugger would write the values inside a value."""
    if written is _Written.NEVER or kind.__repr__ in _BY_ADDRESS:
        return _Written.NEVER
    return written if kind.__repr__ in _SHORT_REPR else _Written.FULLY
