"""Tensors, storages and arrays in a few characters, of what they say without being read.

f32[2,16,64] · requires grad
f32[8,4]@cuda:0 · DTensor · S(0) · local f32[4,4]
UntypedStorage · 8.0 MiB
ndarray f64[2,3]
"""

from __future__ import annotations

from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.events.model import Tensor
from shapetrace.inspecting.torch_access import Torch
from shapetrace.views.shapes import CUT, tensor_text
from shapetrace.views.summary import SEPARATOR
from shapetrace.views.tooltips import memory_text

_MOST_FIELDS: Final = 8


def described(tensor: Any, torch: Torch) -> Tensor:
    """The properties of a tensor; those that it refuses to give are left out."""
    # These know torch, which is there where a tensor is.
    from shapetrace.events.value_rows import read_value
    from shapetrace.recorder.describe import describe_tensor
    from shapetrace.recorder.plain_rows import value_row

    if torch.has_plain_data(tensor):
        found = read_value(value_row(describe_tensor(tensor)))
    else:
        with torch.unwatched():
            found = read_value(value_row(describe_tensor(tensor)))
    assert isinstance(found, Tensor)
    return found


@leaving_surely
def shape_text(tensor: Any, torch: Torch) -> str:
    """A tensor among others: its shape, and its class where that is not the usual one."""
    try:
        with torch.as_is():
            return tensor_text(described(tensor, torch))
    except Exception as error:
        if is_asynchronous(error):
            raise
        return type(tensor).__name__


@leaving_surely
def tensor_line(tensor: Any, torch: Torch) -> str:
    """The text of a tensor."""
    try:
        with torch.as_is():
            fact = described(tensor, torch)
            return SEPARATOR.join([tensor_text(fact), *_facts(tensor, fact, torch)])
    except Exception as error:
        if is_asynchronous(error):
            raise
        return type(tensor).__name__


def _facts(tensor: Any, fact: Tensor, torch: Torch) -> list[str]:
    """Properties beyond the shape, in the order and the words of the hover."""
    facts: list[str] = []
    if fact.layout not in ("strided", "unknown"):
        facts.append(fact.layout)
        if fact.layout.startswith("sparse"):
            facts.append(_stored_text(tensor, torch))
    elif fact.shape is None and torch.base.is_nested.__get__(tensor):
        facts.append("nested")
    if fact.kind != "Tensor":
        facts.append(fact.kind)
    facts.append(fact.placements or "")
    facts.append(_local_text(tensor, fact, torch))
    if fact.requires_grad:
        facts.append("requires grad")
    return [each for each in facts if each]


def _stored_text(tensor: Any, torch: Torch) -> str:
    """How many items a sparse tensor stores, which is the size of a tensor in it."""
    if not torch.has_plain_data(tensor):
        return ""
    try:
        with torch.unseen():
            return f"{torch.base._nnz(tensor):,} stored"
    except Exception as error:
        if is_asynchronous(error):
            raise
        return ""


def _local_text(tensor: Any, fact: Tensor, torch: Torch) -> str:
    """The local part of a distributed tensor."""
    if fact.placements is None:
        return ""
    try:
        local = object.__getattribute__(tensor, "_local_tensor")
        return f"local {tensor_text(described(local, torch))}"
    except Exception as error:
        if is_asynchronous(error):
            raise
        return ""


@leaving_surely
def storage_line(storage: Any, torch: Torch) -> str:
    """``UntypedStorage · 8.0 MiB``."""
    name = type(storage).__name__
    try:
        with torch.as_is():
            untyped = untyped_storage(storage)
            facts = [name]
            dtype = vars(storage).get("dtype") if untyped is not storage else None
            if dtype is not None:
                facts.append(str(dtype).removeprefix("torch."))
            facts.append(size_text(untyped.nbytes()))
            device = str(untyped.device)
            facts += [] if device == "cpu" else [device]
            return SEPARATOR.join(facts)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return name


def untyped_storage(storage: Any) -> Any:
    """The bytes themselves of a storage with a dtype."""
    attributes = getattr(storage, "__dict__", {})
    return attributes.get("_untyped_storage", storage)


def size_text(size: Any) -> str:
    """A number of bytes, which is a symbol where nothing is computed."""
    return memory_text(size) if type(size) is int else f"{size} bytes"


def _fields_text(dtype: Any) -> str:
    """The fields of an array's items: ``(mass f32, place f64[3])``."""
    fields = []
    for name in dtype.names[:_MOST_FIELDS]:
        inside, shape = dtype.fields[name][0].subdtype or (dtype.fields[name][0], ())
        text = tensor_text(Tensor(shape=tuple(shape), dtype=inside.name))
        fields.append(f"{name} {text if shape else text.removesuffix('[]')}")
    return f"({', '.join(fields + [CUT] * (len(dtype.names) > _MOST_FIELDS))})"


def array_line(array: Any, array_type: type) -> str:
    """``ndarray f64[2,3]``; subclasses by their own name."""
    kind: Any = array_type
    name = type(array).__name__
    try:
        shape = kind.shape.__get__(array)
        dtype = kind.dtype.__get__(array)
        text = tensor_text(Tensor(shape=tuple(shape), dtype=dtype.name))
        if dtype.names:
            text = text.replace(dtype.name, _fields_text(dtype), 1)
        return f"{name} {text}"
    except Exception as error:
        if is_asynchronous(error):
            raise
        return name
