"""The named items of a value: keys, indices, fields, attributes, and a module's members.

None of the program's code runs: no property, ``__getattr__`` or ``__getitem__`` of its classes.
"""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch._C import DisableTorchFunction

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of
from shapetrace._exception_table import leaving_surely
from shapetrace.capture.copies import dispatch_modes, is_there, tracing_state, unseen_among
from shapetrace.capture.paths import States, ValuePath, component
from shapetrace.capture.value_changes import Uncounted
from shapetrace.inspecting.attributes import own_attributes, tuple_fields

_DEEPEST: Final = 16
_HELD: Final = ("_modules", "_parameters", "_buffers")
_OF_A_TENSOR: Final = ("shape", "dtype", "device", "requires_grad", "grad")
_STATISTICS: Final = ("running_mean", "running_var")
_LEAVES: Final = frozenset({int, float, bool, str, bytes, type(None)})

MISSING: Final = object()
"""What ``item`` returns for a missing name."""


def entries_along(
    value: Any, path: ValuePath, states: States, name: str
) -> Iterator[tuple[str, Any, Any]]:
    """The items that the rest of a path matches in a value, each with its full name.

    The last element is what to check for changes, as a row of a tensor is a new tensor each time.
    """
    return _along(value, None, path, states, name, 0, set())


def _along(
    value: Any,
    rows_of: Any,
    path: ValuePath,
    states: States,
    name: str,
    depth: int,
    seen: set[tuple[int, States]],
) -> Iterator[tuple[str, Any, Any]]:
    # A value that contains itself, or occurs often, is entered once.
    if depth >= _DEEPEST or type(value) in _LEAVES or (id(value), states) in seen:
        return
    seen.add((id(value), states))
    named = path.named_next(states)
    is_wild = len(named) < sum(state < len(path.parts) for state in states)
    inside = list(items(value)) if is_wild else []
    known = {key for key, _ in inside}
    for key in named:
        if key not in known and (inner := item(value, key)) is not MISSING:
            inside.append((key, inner))
    if rows_of is None and isinstance(value, torch.Tensor):
        rows_of = value
    for key, inner in inside:
        following = path.after(states, key)
        if not following:
            continue
        full = f"{name}.{component(key)}"
        whole = rows_of if key.isdecimal() else None
        if path.is_complete(following):
            told_by = inner if whole is None else whole
            yield full, inner, Uncounted(told_by) if _is_uncounted(value, key) else told_by
        if path.goes_on(following):
            yield from _along(inner, whole, path, following, full, depth + 1, seen)


def where_it_ends(
    value: Any, path: ValuePath, states: States, name: str
) -> tuple[str, str, list[str]]:
    """For a path without a match: the part that matches, the missing name, the names there are."""
    while True:
        named = path.named_next(states)
        inner = item(value, named[0]) if len(named) == 1 else MISSING
        if inner is MISSING:
            return name, named[0] if named else "*", [inside for inside, _ in items(value)]
        value, states, name = inner, path.after(states, named[0]), f"{name}.{named[0]}"


def item(value: Any, name: str) -> Any:
    """The item of a value with a name; ``MISSING`` if there is none."""
    if isinstance(value, torch.Tensor):
        return _of_tensor(value, name)
    if isinstance(value, UserDict):
        value = value.__dict__.get("data", value)
    if isinstance(value, dict):
        found = _of_dict(value, name)
        if found is not MISSING:
            return found
    elif isinstance(value, (list, tuple)):
        fields = _fields(value)
        if name in fields:
            return _at(value, tuple, str(fields.index(name)))
        return _at(value, list if isinstance(value, list) else tuple, name)
    elif _is_array(value):
        return _at_array(value, name)
    elif isinstance(value, torch.nn.Module):
        for kind in _HELD:
            held = value.__dict__.get(kind, {})
            if name in held:
                return held[name]
    return _attribute(value, name)


def _is_uncounted(value: Any, name: str) -> bool:
    """Return whether torch's C++ code changes it without a new version."""
    return name in _STATISTICS and isinstance(value, torch.nn.modules.batchnorm._NormBase)


def items(value: Any) -> Iterator[tuple[str, Any]]:
    """The items of a value that ``*`` matches: none in tensors and arrays."""
    if isinstance(value, UserDict):
        value = value.__dict__.get("data", value)
    if isinstance(value, dict):
        yield from ((str(key), inner) for key, inner in list(dict.items(value)))
    elif isinstance(value, (list, tuple)):
        fields = _fields(value)
        inside: Any = list if isinstance(value, list) else tuple
        for index, inner in enumerate([*inside.__iter__(value)]):
            yield fields[index] if fields else str(index), inner
    elif isinstance(value, torch.nn.Module):
        for kind in _HELD:
            yield from list(value.__dict__.get(kind, {}).items())
        yield from _public(value)
    elif not isinstance(value, (torch.Tensor, type)) and not _is_array(value):
        yield from _public(value)


@leaving_surely
def _of_tensor(value: torch.Tensor, name: str) -> Any:
    if name not in _OF_A_TENSOR and not name.isdecimal():
        return MISSING
    if not dispatch_modes() and tracing_state() is None:
        # The usual case: this runs after each statement that may have changed the value.
        with DisableTorchFunction():
            return _in_tensor(value, name)
    with unseen_among((value,)):
        return _in_tensor(value, name)


@leaving_surely
def _in_tensor(value: torch.Tensor, name: str) -> Any:
    if name in _OF_A_TENSOR:
        found = getattr(torch.Tensor, name).__get__(value)
        return tuple(found) if name == "shape" else found
    if value.dim() and int(name) < value.shape[0]:
        with torch._C._AutoDispatchBelowAutograd():
            return value.select(0, int(name))
    return MISSING


def _of_dict(value: dict[Any, Any], name: str) -> Any:
    if dict.__contains__(value, name):
        return dict.__getitem__(value, name)
    for key in list(dict.keys(value)):
        if type(key) is not str and str(key) == name:
            return dict.__getitem__(value, key)
    return MISSING


def _fields(value: Any) -> tuple[str, ...]:
    """The names of a named tuple's fields, torch's own included; none of other tuples and lists."""
    kind: Any = type(value)
    fields = tuple_fields(kind)
    if fields is None and hasattr(kind, "n_sequence_fields"):
        fields = kind.__match_args__
    return fields or ()


def _at(value: Any, kind: Any, name: str) -> Any:
    if name.lstrip("-").isdecimal():
        try:
            return kind.__getitem__(value, int(name))
        except IndexError as error:
            if is_asynchronous(error):
                raise
    return MISSING


def _at_array(value: Any, name: str) -> Any:
    numpy: Any = sys.modules["numpy"]
    if is_there(value, numpy):
        return _at(value, type(value), name)
    try:
        # A view, also without dimensions: no data is read.
        return numpy.ndarray.view(value, numpy.ndarray)[int(name), ...]
    except (IndexError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return MISSING


def _attribute(value: Any, name: str) -> Any:
    own = _own(value)  # The usual case: the rest takes eight times as long.
    return own[name] if name in own else _attributes(value).get(name, MISSING)


def _public(value: Any) -> Iterator[tuple[str, Any]]:
    for name, inner in [*_attributes(value).items()]:
        if not name.startswith("_"):
            yield name, inner


def _attributes(value: Any) -> dict[str, Any]:
    return own_attributes(value, classes_of(type(value)))


def _own(value: Any) -> dict[str, Any]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError as error:
        if is_asynchronous(error):
            raise
        return {}
    return found if isinstance(found, dict) else {}


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)
