"""The arguments of a call: its tensors in order, and the call as text around them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

import torch
from torch import Tensor

from shapetrace._classes import name_of
from shapetrace.recorder.describe import Raw, describe_tensor, plain_text

MOST_TENSORS: Final = 256
"""Input tensors of one call that are described; a longer list is cut."""
MOST_DEPTH: Final = 3
_MOST_LISTED: Final = 8

_PLAIN: Final = frozenset({int, float, bool, str, type(None), complex, bytes})
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType)
_TORCH_WORDS: Final = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def collect(value: Any, into: list[Raw], depth: int = 0) -> None:
    """Describe the tensors in an argument that is not a plain tensor itself."""
    if issubclass(type(value), Tensor):
        into.append(describe_tensor(value))
        return
    if depth >= MOST_DEPTH or len(into) >= MOST_TENSORS:
        return
    kind = type(value)
    if issubclass(kind, tuple | list):
        for item in _items_of(value, kind):
            if type(item) not in _PLAIN and len(into) < MOST_TENSORS:
                collect(item, into, depth + 1)
    elif kind is dict:
        for item in value.values():
            if len(into) < MOST_TENSORS:
                collect(item, into, depth + 1)
    elif kind is slice:
        for item in (value.start, value.stop, value.step):
            if issubclass(type(item), Tensor):
                into.append(describe_tensor(item))


def _items_of(value: Any, kind: Any) -> Iterator[Any]:
    """The items of a tuple or list, not by its class's own iteration: that is program code."""
    return tuple.__iter__(value) if issubclass(kind, tuple) else list.__iter__(value)


def tensors_of(value: Any, into: list[Tensor], depth: int = 0) -> None:
    """The tensors of an argument themselves, in the order in which ``collect`` describes them."""
    if issubclass(type(value), Tensor):
        into.append(value)
        return
    if depth >= MOST_DEPTH or len(into) >= MOST_TENSORS:
        return
    kind = type(value)
    if issubclass(kind, tuple | list):
        for item in _items_of(value, kind):
            if type(item) not in _PLAIN and len(into) < MOST_TENSORS:
                tensors_of(item, into, depth + 1)
    elif kind is dict:
        for item in value.values():
            if len(into) < MOST_TENSORS:
                tensors_of(item, into, depth + 1)
    elif kind is slice:
        into.extend(
            part for part in (value.start, value.stop, value.step) if issubclass(type(part), Tensor)
        )


class _Writer:
    """Writes arguments as text with ``{n}`` where the n-th tensor stands."""

    def __init__(self) -> None:
        self.tensors = 0

    def text(self, value: Any, depth: int = 0) -> str:
        if issubclass(type(value), Tensor):
            return self._placeholder()
        kind = type(value)
        if kind in _PLAIN:
            return _escaped(plain_text(value))
        if kind in _TORCH_WORDS:
            return str(value) if kind is not torch.device else f"'{value}'"
        if value is Ellipsis:
            return "..."
        if kind is slice:
            return self._slice(value)
        if depth >= MOST_DEPTH:
            return "…"
        if issubclass(kind, tuple | list):
            return self._sequence(value, issubclass(kind, list), depth)
        if kind is dict:
            pairs = (
                f"{_key_text(key)}: {self.text(item, depth + 1)}" for key, item in value.items()
            )
            return "{{" + ", ".join(pairs) + "}}"
        if issubclass(kind, torch.SymInt | torch.SymFloat | torch.SymBool):
            return _escaped(str(value))
        if issubclass(kind, type):
            return name_of(value)
        if kind in _FUNCTIONS:
            return str(value.__name__)
        return name_of(kind)  # nothing of the program's own is asked for its name or its repr

    def _placeholder(self) -> str:
        if self.tensors >= MOST_TENSORS:
            return "…"
        self.tensors += 1
        return f"{{{self.tensors - 1}}}"

    def _sequence(self, value: Any, square: bool, depth: int) -> str:
        items = []
        for index, item in enumerate(_items_of(value, type(value))):
            if index >= _MOST_LISTED and not issubclass(type(item), Tensor):
                items.append("…")
                break
            items.append(self.text(item, depth + 1))
        if square:
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"

    def _slice(self, value: slice) -> str:
        parts = ["" if part is None else self.text(part) for part in (value.start, value.stop)]
        text = ":".join(parts)
        return text if value.step is None else f"{text}:{self.text(value.step)}"


def _key_text(key: Any) -> str:
    return _escaped(str(key)) if type(key) in _PLAIN else name_of(type(key))


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def argument_texts(function: Any, args: Any, kwargs: Any) -> tuple[str, ...]:
    """Each argument as text, tensors as ``{0}``, ``{1}``; keywords at their default left out."""
    writer = _Writer()
    if getattr(function, "__name__", "") in ("__getitem__", "__setitem__") and len(args) > 1:
        return (writer.text(args[0]), _index_text(writer, args[1]), *map(writer.text, args[2:]))
    texts = [writer.text(value) for value in args]
    if kwargs:
        defaults = keyword_defaults(function)
        for name, value in kwargs.items():
            text = writer.text(value)  # also where it is left out, for its place in the numbering
            if value is None or name.startswith("_") or _is_default(defaults, name, value):
                continue
            texts.append(f"{name}={text}")
    return tuple(texts)


def _index_text(writer: _Writer, index: Any) -> str:
    if type(index) is tuple and index:
        return ", ".join(map(writer.text, index))
    return writer.text(index)


def _is_default(defaults: dict[str, Any], name: str, value: Any) -> bool:
    if name not in defaults:
        return False
    default = defaults[name]
    return value is default or (
        type(value) in _PLAIN and type(value) is type(default) and value == default
    )


@lru_cache(maxsize=1024)
def keyword_defaults(function: Any) -> dict[str, Any]:
    """The default values of a Python-level function's parameters."""
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    named = code.co_varnames[: code.co_argcount]
    positional = function.__defaults__ or ()
    defaults = dict(zip(named[len(named) - len(positional) :], positional, strict=True))
    return {**defaults, **(function.__kwdefaults__ or {})}
