"""Tensors and results described as plain tuples, which keep nothing alive.

A *raw* value is one of

- a tensor ``(shape, dtype, device, requires_grad, strides, class)``, six items, or eight with
  ``layout, placements`` where it is not a plain strided one,
- a container ``(CONTAINER, kind, keys, items, length)``,
- anything else ``(OTHER, text)``.

Equal raw values mean equal descriptions, so they serve as signatures. Nothing here reads a tensor's
data, waits for a device, forces a symbolic size or raises.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor
from torch.nn import Parameter

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import name_of
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.containers import contained_by
from shapetrace.recorder.targets import Path

Raw: TypeAlias = tuple[Any, ...]

CONTAINER: Final = "container"
OTHER: Final = "other"
NONE: Final = (OTHER, "None")

CPU: Final = torch.device("cpu")
"""The one device object for the CPU: reading a tensor's makes a new one each time."""

MOST_ITEMS: Final = 64
"""The most items of a container that are kept; its length says how many there are."""
MOST_DEPTH: Final = 4
"""How deep containers are looked into."""
MOST_TEXT: Final = 60

_PLAIN: Final = frozenset({int, float, bool, str, type(None), complex, bytes})
_NUMBERS: Final = frozenset({int, float, complex})
_BASE: Final[Any] = torch._C.TensorBase
_STRIDED: Final = torch.strided
_SEQUENCES: Final = frozenset({tuple, list, torch.Size})
_IN_ORDER: Final = frozenset(kind.__name__ for kind in _SEQUENCES)


def describe_tensor(tensor: Any) -> Raw:
    """The raw description of a tensor of any class."""
    kind = type(tensor)
    if kind is Tensor or kind is Parameter:
        try:
            if tensor.layout is _STRIDED:
                shape = tensor.shape
                hash(shape)  # symbolic sizes cannot be hashed
                return (
                    shape,
                    tensor.dtype,
                    CPU if tensor.is_cpu else device_of_plain(tensor),
                    tensor.requires_grad,
                    None if tensor.is_contiguous() else tensor.stride(),
                    kind,
                )
        except BaseException as error:
            if is_asynchronous(error):
                raise
            return _describe_unusual(tensor)
    return _describe_unusual(tensor)


def device_of_plain(tensor: Any) -> Any:
    """The device of a tensor that is not on the CPU; raises where its sizes are symbolic."""
    if tensor._has_symbolic_sizes_strides:
        raise TypeError("symbolic sizes must not be compared")
    return tensor.device


@leaving_surely
def _describe_unusual(tensor: Any) -> Raw:
    """Subclasses, other layouts, symbolic sizes: each attribute on its own, since any may raise."""
    kind = type(tensor)
    # torch's own classes know best: a fake tensor's device is not that of its storage. What a class
    # of the program's puts in the place of an attribute is code that must not run now.
    asked = kind if kind.__module__.startswith("torch.") else _BASE
    with torch._C.DisableTorchFunction():
        layout = _attribute(asked, tensor, "layout")
        shape = _attribute(asked, tensor, "shape")
        strides = None
        if layout is torch.strided and shape is not None and all(type(s) is int for s in shape):
            try:
                if not asked.is_contiguous(tensor):
                    strides = tuple(map(_size, asked.stride(tensor)))
            except BaseException as error:
                if is_asynchronous(error):
                    raise
                strides = None  # nested, functorch and opaque tensors have none
        placements = _attribute(asked, tensor, "placements")
        return (
            None if shape is None else tuple(map(_size, shape)),
            _attribute(asked, tensor, "dtype"),
            _attribute(asked, tensor, "device"),
            bool(_attribute(asked, tensor, "requires_grad")),
            strides,
            kind,
            None if layout is None else str(layout).removeprefix("torch."),
            None if placements is None else _placements_text(placements),
        )


def _attribute(kind: Any, tensor: Any, name: str) -> Any:
    """An attribute as a class has it, or None where there is none or the tensor refuses."""
    try:
        return getattr(kind, name).__get__(tensor)
    except BaseException as error:
        if is_asynchronous(error):
            raise
        return None


def _size(value: Any) -> int | str:
    """A size as a number, or the name of a symbolic one, which must not be forced."""
    if type(value) is int:
        return value
    try:
        return str(value)
    except BaseException as error:
        if is_asynchronous(error):
            raise
        return "?"


def _placements_text(placements: Any) -> str:
    try:
        return ", ".join(str(placement) for placement in placements)
    except BaseException as error:
        if is_asynchronous(error):
            raise
        return "?"


def describe_value(value: Any, depth: int = 0) -> Raw:
    """The raw description of any value: a tensor, a container of values, or something else."""
    kind = type(value)
    if kind is Tensor or kind is Parameter:
        return describe_tensor(value)
    if value is None:
        return NONE
    if kind in _NUMBERS:
        return (OTHER, kind.__name__)  # a number that changes from call to call is nothing new
    if kind in _PLAIN:
        return (OTHER, plain_text(value))
    if issubclass(type(value), Tensor):
        return describe_tensor(value)
    if depth >= MOST_DEPTH:
        return (OTHER, name_of(kind))
    if kind in _SEQUENCES:
        return _describe_items(name_of(kind), None, value, len(value), depth)
    if issubclass(kind, tuple):
        fields = getattr(kind, "_fields", None)
        length = tuple.__len__(value)
        keys = tuple(map(str, fields)) if fields and len(fields) == length else None
        return _describe_items(_public_name(kind), keys, tuple.__iter__(value), length, depth)
    if issubclass(kind, dict):
        # Not through the class's own items(): it may be the program's code.
        keys = tuple(map(_key_text, islice(dict.keys(value), MOST_ITEMS)))
        return _describe_items(name_of(kind), keys, dict.values(value), dict.__len__(value), depth)
    if issubclass(kind, list):
        return _describe_items(
            name_of(kind), None, list.__iter__(value), list.__len__(value), depth
        )
    if hasattr(kind, "__dataclass_fields__"):  # as is_dataclass does, at the price of a call
        inside = contained_by(value, kind)
        if inside is not None:
            fields, values = inside
            return _describe_items(name_of(kind), tuple(fields or ()), values, len(values), depth)
    return (OTHER, name_of(kind))


def _describe_items(
    kind: str, keys: tuple[str, ...] | None, values: Any, length: int, depth: int
) -> Raw:
    if length > MOST_ITEMS:
        items = tuple([describe_value(item, depth + 1) for item in islice(values, MOST_ITEMS)])
        return (CONTAINER, kind, keys and keys[:MOST_ITEMS], items, length)
    items = tuple([describe_value(item, depth + 1) for item in values])
    return (CONTAINER, kind, keys, items, None)


def _public_name(kind: type) -> str:
    """``max`` for torch.return_types.max, else the class's own name."""
    return name_of(kind).rsplit(".", 1)[-1]


def _key_text(key: Any) -> str:
    return (
        key if type(key) is str else plain_text(key) if type(key) in _PLAIN else name_of(type(key))
    )


def plain_text(value: Any) -> str:
    """A number, string or None as short text; never asks a class of the program's for its repr."""
    if type(value) is str and len(value) > MOST_TEXT:
        return repr(value[:MOST_TEXT]) + "…"
    if type(value) is bytes:
        return f"bytes[{len(value)}]"
    if type(value) is int and value.bit_length() > 256:
        return "int"
    return repr(value)


def item_of(raw: Raw, path: Path) -> Raw | None:
    """An item of what has its items in order, as unpacking or an index would give it."""
    for number, among in path:
        if raw[0] is not CONTAINER or not (raw[1] in _IN_ORDER or is_return_type(raw)):
            return None  # a mapping is unpacked into its keys
        items, whole = raw[3], raw[4] or len(raw[3])
        if among not in (None, whole) or (number < 0 and whole > len(items)):
            return None
        if not -len(items) <= number < len(items):
            return None
        raw = items[number]
    return raw


def is_return_type(raw: Raw) -> bool:
    """Whether a container with named items is a tuple of torch's own, as ``max(dim)`` gives."""
    return hasattr(torch.return_types, raw[1])


def holds_tensor(raw: Raw) -> bool:
    """Whether a raw value is a tensor or contains one."""
    if raw[0] is OTHER:
        return False
    if raw[0] is CONTAINER:
        return any(map(holds_tensor, raw[3]))
    return True
