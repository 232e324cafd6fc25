"""The text of a value, where it is ours to say: tensors, modules, arrays, and what holds them."""

from __future__ import annotations

from types import MethodType
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of, is_kind
from shapetrace.inspecting.torch_access import Torch, array_type, loaded_torch
from shapetrace.panes.child_entries import ChildGroup, Text
from shapetrace.panes.holders import holder_line
from shapetrace.panes.module_text import module_line, module_name
from shapetrace.panes.tensors import array_line, shape_text, storage_line, tensor_line
from shapetrace.views.styled import printable

_ATTEMPTS: Final = 3


def is_leaf(kind: type) -> bool:
    """Return whether values of a class are ours, whatever they hold."""
    if kind is Text or kind is ChildGroup:
        return True
    torch = loaded_torch()
    if torch is not None and not torch.leaves.isdisjoint(classes_of(kind)):
        return True
    return is_kind(kind, array_type())


def presentation(value: Any) -> str | None:
    """The text of a value, or None where it is not ours. Never raises and reads no data."""
    for _ in range(_ATTEMPTS):
        try:
            text = _presentation(value)
        except RuntimeError as error:
            if is_asynchronous(error):
                raise
            continue  # another thread, which still runs, may have changed what was looked through
        except Exception as error:
            if is_asynchronous(error):
                raise
            return None
        return None if text is None else printable(text)
    return None


def _presentation(value: Any) -> str | None:
    kind = type(value)
    if kind is Text:
        return str.__str__(value)
    if kind is ChildGroup:
        return str(value.text)
    torch = loaded_torch()
    if torch is not None:
        text = _leaf_line(value, kind, torch)
        if text is not None:
            return text
    arrays = array_type()
    if arrays is not None and is_kind(kind, arrays):
        return array_line(value, arrays)
    if torch is None and arrays is None:
        return None
    if kind is MethodType:
        return _method_line(value, torch)
    return holder_line(value, torch, arrays)


def _leaf_line(value: Any, kind: type, torch: Torch) -> str | None:
    classes = classes_of(kind)
    if torch.tensor in classes:
        return tensor_line(value, torch)
    if torch.module in classes:
        return module_line(value, torch)
    if not torch.leaves.isdisjoint(classes):
        return storage_line(value, torch)
    return None


def _method_line(method: Any, torch: Torch | None) -> str | None:
    """A method bound to something that is ours or holds it, all of which Python would write out."""
    owner = method.__self__
    classes = classes_of(type(owner))
    text: str | None
    if torch is not None and torch.tensor in classes:
        text = shape_text(owner, torch)
    elif torch is not None and torch.module in classes:
        text = module_name(owner, torch)
    else:
        text = _presentation(owner) if type(owner) is not MethodType else None
    if text is None:
        return None
    name = getattr(method.__func__, "__qualname__", "?")
    return f"<bound method {name} of {text}>"
