"""Whether an expression can be hovered over at a stop without the program noticing.

The editor asks before the debugger evaluates an item, ``losses["loss"]``: a ``defaultdict`` would
keep what it made for the asking, and a dataset would load a sample. Names and attributes are
looked at as every debugger does.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of, is_kind
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.torch_access import Torch, loaded_torch

_TRUSTED: Final = frozenset(
    {
        *("collections", "types", "weakref"),
        *("torch.nn.modules.container", "torch.nn.parameter", "torch.nn.utils.rnn"),
        *("transformers.utils.generic", "transformers.tokenization_utils_base"),
        *("transformers.feature_extraction_utils", "transformers.cache_utils"),
        "diffusers.utils.outputs",
    }
)
"""Modules whose ``__getitem__`` is written in Python, and only looks something up."""

_ABSENT: Final = object()


class _UnknownError(Exception):
    """Finding out would run the program's code."""


def only_looks_up(expression: str, frame: FrameType) -> bool:
    """Return whether the items that an expression asks for are there, and are only looked up."""
    try:
        _Reader(frame).value(ast.parse(expression, mode="eval").body)
    except Exception as error:  # an unknown name, an index that is out of range
        if is_asynchronous(error):
            raise
        return False
    return True


class _Reader:
    """Evaluates an expression without code of the program's, or gives up."""

    def __init__(self, frame: FrameType) -> None:
        self._places: tuple[Mapping[str, Any], ...] = (
            frame.f_locals,
            frame.f_globals,
            vars(builtins),
        )
        self._torch = loaded_torch()

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Name():
                return self._named(node.id)
            case ast.Constant():
                return node.value
            case ast.Attribute():
                return _attribute_of(self.value(node.value), node.attr, self._torch)
            case ast.Subscript():
                return self._item(self.value(node.value), self.value(node.slice))
            case ast.Tuple():
                return tuple(self.value(each) for each in node.elts)
            case ast.Slice():
                ends = (node.lower, node.upper, node.step)
                return slice(*(None if each is None else self.value(each) for each in ends))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case _:
                raise _UnknownError

    def _named(self, name: str) -> Any:
        for place in self._places:
            found = place.get(name, _ABSENT)
            if found is not _ABSENT:
                return found
        raise _UnknownError

    @leaving_surely
    def _item(self, holder: Any, key: Any) -> Any:
        kind = type(holder)
        if not _is_plain_key(key, self._torch) or not _is_known(kind, self._torch):
            raise _UnknownError
        if _found_in(kind, "__getitem__") is dict.__getitem__:
            # Without ``__missing__``, which may put something in.
            found = dict.get(holder, key, _ABSENT)
            if found is _ABSENT:
                raise _UnknownError
            return found
        if self._torch is not None and is_kind(kind, self._torch.tensor):
            with self._torch.as_is():
                return holder[key]
        return holder[key]


def _is_known(kind: type, torch: Torch | None) -> bool:
    """Return whether ``__getitem__`` of a class is written in C, or known to be safe."""
    if torch is not None and is_kind(kind, torch.tensor):
        handler = _found_in(kind, "__torch_function__")
        # That of parameters is written in C, too.
        own = _found_in(torch.tensor, "__torch_function__")
        return handler is own or isinstance(handler, BuiltinFunctionType)
    getter = _found_in(kind, "__getitem__")
    if isinstance(getter, FunctionType):
        return getter.__module__ in _TRUSTED
    return isinstance(getter, WrapperDescriptorType | MethodDescriptorType)


def _is_plain_key(key: Any, torch: Torch | None) -> bool:
    """Return whether nothing of the program's runs for hashing it, or using it as an index."""
    if type(key) is tuple:
        return all(_is_plain_key(each, torch) for each in key)
    if type(key) is slice:
        return all(_is_plain_key(each, torch) for each in (key.start, key.stop, key.step))
    is_tensor = torch is not None and type(key) is torch.tensor
    plain = (int, bool, float, complex, str, bytes, type(None), type(...))
    return is_tensor or type(key) in plain


def _attribute_of(holder: Any, name: str, torch: Torch | None) -> Any:
    """An attribute that is stored as such; no property and no ``__getattr__`` is asked."""
    kind = type(holder)
    if kind is ModuleType:
        stored: Mapping[str, Any] = vars(holder)
        return stored[name]
    of_class = _found_in(kind, name)
    if hasattr(type(of_class), "__set__"):
        return _described(of_class, holder, torch)
    attributes = object.__getattribute__(holder, "__dict__")
    if name in attributes:
        return attributes[name]
    if torch is not None and is_kind(kind, torch.module):
        for group in ("_parameters", "_buffers", "_modules"):
            if name in attributes.get(group, ()):
                return attributes[group][name]
    raise _UnknownError


@leaving_surely
def _described(descriptor: Any, holder: Any, torch: Torch | None) -> Any:
    """The value of a slot or an attribute written in C, as the shape of a tensor; no property."""
    kind = type(holder)
    if isinstance(descriptor, MemberDescriptorType):
        return descriptor.__get__(holder, kind)
    if not isinstance(descriptor, GetSetDescriptorType):
        raise _UnknownError
    if torch is None or not is_kind(kind, torch.tensor):
        return descriptor.__get__(holder, kind)
    if not _is_known(kind, torch):
        raise _UnknownError
    with torch.as_is():
        return descriptor.__get__(holder, kind)


def _found_in(kind: type, name: str) -> Any:
    """The attribute of a class by a name, as it is stored."""
    for each in classes_of(kind):
        if name in vars(each):
            return vars(each)[name]
    return None
