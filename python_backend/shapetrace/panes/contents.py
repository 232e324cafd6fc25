"""The children of an opened value: tensors, modules, storages.

    x                f32[2,16,64] · requires grad
      shape          (2, 16, 64)
      dtype          torch.float32
      device         cpu
      memory         8 KiB
      strides        (1024, 64, 1) · contiguous
      requires_grad  True
      grad_fn        AddmmBackward0
      statistics     min -2.131 · max 2.613 · mean 0.0137 · no nan
      first values   0.1312, -0.5, 1.2, …
      assigned at    ./model.py:42
      items          2
      more           layout, storage, ..., and what the debugger would show

Each entry that an expression gives has what that expression ends in, so that it can be watched,
copied and set as ever.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of, is_kind
from shapetrace._exception_table import leaving_surely
from shapetrace.events.model import Tensor
from shapetrace.inspecting.attributes import own_attributes
from shapetrace.inspecting.torch_access import Torch, array_type, loaded_torch
from shapetrace.panes.child_entries import (
    MOST_ENTRIES,
    ChildEntry,
    ChildGroup,
    Text,
    Usual,
    attribute,
    cut_entries,
)
from shapetrace.panes.fields import held_entries, may_have_fields, raw_view
from shapetrace.panes.module_text import own_attributes as attributes_of_module
from shapetrace.panes.origin import origins
from shapetrace.panes.presentation import presentation
from shapetrace.panes.tensor_contents import (
    number_text,
    reason_not_to_read,
    statistics_text,
    values_text,
)
from shapetrace.panes.tensors import (
    described,
    size_text,
    untyped_storage,
)
from shapetrace.views.summary import SEPARATOR

_MOST_ITEMS = 100
"""Items of a tensor that get entries."""
_BESIDE = frozenset({"_parameters", "_buffers", "_modules"})
"""Attributes in which a module keeps its parts, which have entries of their own."""


def opens(kind: type) -> bool:
    """Return whether it is for us to say what is below values of a class."""
    if kind is ChildGroup:
        return True
    torch = loaded_torch()
    if torch is None:
        return False
    classes = classes_of(kind)
    # A scripted module keeps its parts elsewhere.
    return not torch.leaves.isdisjoint(classes) and torch.script_module not in classes


def may_open(kind: type) -> bool:
    """Return whether we say what is below values of a class where they hold something of ours."""
    return may_have_fields(kind)


def children(value: Any, usual: Usual | None = None, folder: str = "") -> list[ChildEntry]:
    """What is below a value; empty where that is not ours to say. Never raises.

    ``usual`` is what would be shown without us, for those who want to see that; ``folder`` the one
    that the editor has open.
    """
    try:
        if type(value) is ChildGroup:
            return list(value.entries())
        torch = loaded_torch()
        if torch is None and array_type() is None:
            return []
        kind = type(value)
        if torch is None or not opens(kind):
            return held_entries(value, usual, presentation)
        classes = classes_of(kind)
        if torch.tensor in classes:
            return list(_of_tensor(value, torch, usual, folder))
        if torch.module in classes:
            return [*_of_module(value), *raw_view(value, usual)]
        return [*_of_storage(value, torch), *raw_view(value, usual)]
    except Exception as error:
        if is_asynchronous(error):
            raise
        return [ChildEntry("…", Text(f"{type(error).__name__} while reading"), None)]


@leaving_surely
def _of_tensor(tensor: Any, torch: Torch, usual: Usual | None, folder: str) -> Iterator[ChildEntry]:
    with torch.as_is():
        fact = described(tensor, torch)
    yield ChildEntry(
        "shape", Text("?" if fact.shape is None else _tuple_text(fact.shape)), ".shape"
    )
    yield ChildEntry("dtype", Text(f"torch.{fact.dtype}"), ".dtype")
    yield ChildEntry("device", Text(fact.device), ".device")
    yield from _told(_memory_entry, tensor, fact, torch)
    yield from _told(_strides_entry, tensor, fact, torch)
    yield ChildEntry("requires_grad", fact.requires_grad, ".requires_grad")
    yield from _told(_gradient_entries, tensor, fact, torch)
    yield from _told(_parts, tensor, fact, torch)
    yield ChildEntry("statistics", Text(statistics_text(tensor, torch)), None)
    values = values_text(tensor, torch)
    if values:
        yield ChildEntry("first values" if fact.shape else "value", Text(values), None)
    places = origins(tensor)
    if places:
        yield ChildEntry("assigned at", Text(_places_text(places, folder)), None)
    if fact.shape and type(fact.shape[0]) is int and _has_items(tensor, fact, torch):
        size = fact.shape[0]
        yield ChildEntry("items", ChildGroup(f"{size:,}", lambda: _items(tensor, size, torch)), "")
    yield ChildEntry(
        "more", ChildGroup("", lambda: [*_more(tensor, fact, torch), *raw_view(tensor, usual)]), ""
    )


Tell = Callable[[Any, Tensor, Torch], Iterator[ChildEntry]]


@leaving_surely
def _told(tell: Tell, tensor: Any, fact: Tensor, torch: Torch) -> list[ChildEntry]:
    """The entries that a tensor is willing to tell."""
    entries: list[ChildEntry] = []
    try:
        with torch.as_is():
            for entry in tell(tensor, fact, torch):
                entries.append(entry)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return entries
    return entries


def _memory_entry(tensor: Any, fact: Tensor, torch: Torch) -> Iterator[ChildEntry]:
    base = torch.base
    if fact.layout != "strided" or fact.shape is None:
        return
    size = base.numel(tensor) * base.element_size(tensor)
    text = size_text(size)
    if fact.kind in ("Tensor", "Parameter", "Buffer"):
        held = base.untyped_storage(tensor).nbytes()
        if type(held) is int and held != size:
            text = f"{text} in a storage of {size_text(held)}"
    yield ChildEntry("memory", Text(text), ".nbytes")


def _strides_entry(tensor: Any, fact: Tensor, torch: Torch) -> Iterator[ChildEntry]:
    if fact.layout != "strided" or fact.shape is None:
        return
    strides = fact.strides or tuple(torch.base.stride(tensor))
    how = "contiguous" if fact.strides is None else "not contiguous"
    yield ChildEntry("strides", Text(f"{_tuple_text(strides)}{SEPARATOR}{how}"), ".stride()")


def _gradient_entries(tensor: Any, fact: Tensor, torch: Torch) -> Iterator[ChildEntry]:
    base = torch.base
    if not fact.requires_grad:
        return
    # Of others it is not kept, and asking for it makes torch warn.
    if base.is_leaf.__get__(tensor) or base.retains_grad.__get__(tensor):
        yield ChildEntry("grad", base.grad.__get__(tensor), ".grad")
    function = base.grad_fn.__get__(tensor)
    if function is not None:
        yield ChildEntry("grad_fn", Text(type(function).__name__), ".grad_fn")


def _parts(tensor: Any, fact: Tensor, torch: Torch) -> Iterator[ChildEntry]:
    """What a tensor of a special kind is made of."""
    if fact.placements is not None:
        yield ChildEntry("placements", Text(fact.placements), ".placements")
        local = object.__getattribute__(tensor, "_local_tensor")
        yield ChildEntry("local", local, "._local_tensor")
    if type(tensor) is torch.tensor and fact.layout == "sparse_coo":
        with torch.unseen():
            indices, values = torch.base._indices(tensor), torch.base._values(tensor)
        yield ChildEntry("indices", indices, "._indices()")
        yield ChildEntry("values", values, "._values()")


def _has_items(tensor: Any, fact: Tensor, torch: Torch) -> bool:
    """Return whether torch's own kernels make an item of a tensor without doing much."""
    plain = fact.layout == "strided" and torch.has_plain_data(tensor)
    return plain and not torch.is_transforming()


def _items(tensor: Any, size: int, torch: Torch) -> list[ChildEntry]:
    """The items along the first dimension: tensors, or the numbers of a row."""
    entries: list[ChildEntry] = []
    is_read = reason_not_to_read(tensor, torch) is None
    with torch.unseen():
        for index in range(min(size, _MOST_ITEMS)):
            item: Any = torch.base.select(tensor, 0, index)
            if is_read and item.dim() == 0:
                item = Text(number_text(torch.base.item(item)))
            entries.append(ChildEntry(f"[{index}]", item, f"[{index}]"))
    return cut_entries(entries, size)


@leaving_surely
def _more(tensor: Any, fact: Tensor, torch: Torch) -> Iterator[ChildEntry]:
    """What is seldom asked for, and what the program itself put on the tensor."""
    base = torch.base
    for name in ("is_leaf", "_version", "layout"):
        try:
            with torch.as_is():
                value = getattr(base, name).__get__(tensor)
        except Exception as error:
            if is_asynchronous(error):
                raise
            continue
        # The debugger puts what begins with an underscore into a group of its own.
        shown = value if type(value) is bool else Text(str(value))
        yield ChildEntry(name.lstrip("_"), shown, f".{name}")
    yield from _told(_place_entries, tensor, fact, torch)
    for name, value in own_attributes(tensor, classes_of(type(tensor))).items():
        yield ChildEntry(str(name), value, attribute(str(name)))


def _place_entries(tensor: Any, fact: Tensor, torch: Torch) -> Iterator[ChildEntry]:
    base = torch.base
    if fact.kind not in ("Tensor", "Parameter", "Buffer") or fact.layout != "strided":
        return
    offset = base.storage_offset(tensor)
    yield ChildEntry("storage_offset", Text(str(offset)), ".storage_offset()")
    # Asking for the address of a lazy copy would make it.
    is_lazy = getattr(torch.torch._C, "_is_cow_tensor", None)
    if fact.device != "meta" and not (is_lazy is not None and is_lazy(tensor)):
        yield ChildEntry("data_ptr", Text(hex(base.data_ptr(tensor))), ".data_ptr()")
    yield ChildEntry("storage", base.untyped_storage(tensor), ".untyped_storage()")


def _of_module(module: Any) -> list[ChildEntry]:
    attributes = attributes_of_module(module)
    entries: list[ChildEntry] = []
    is_list = _is_list(module)
    for part in ("_modules", "_parameters", "_buffers"):
        held = list((attributes.get(part) or {}).items())
        shown = [
            ChildEntry(str(name), value, _part_suffix(str(name), part, is_list))
            for name, value in held[:MOST_ENTRIES]
        ]
        entries += cut_entries(shown, len(held))
    entries += [
        ChildEntry(name, value, attribute(name))
        for name, value in sorted(attributes.items())
        if name not in _BESIDE and not _is_empty_inside(name, value)
    ]
    return entries


def _is_list(module: Any) -> bool:
    torch = loaded_torch()
    if torch is None:
        return False
    kinds = torch.torch.nn
    lists = (kinds.Sequential, kinds.ModuleList, kinds.ParameterList)
    return any(is_kind(type(module), each) for each in lists)


def _part_suffix(name: str, part: str, is_list: bool) -> str:
    if name.isdigit() and is_list:
        return f"[{name}]"
    suffix = attribute(name)
    return suffix if not suffix.startswith(".__dict__") else f".{part}[{name!r}]"


def _is_empty_inside(name: str, value: Any) -> bool:
    """Whether an attribute is of those that every module has for its own use, and mostly unused."""
    return name.startswith("_") and (value is None or value is False or _is_empty(value))


def _is_empty(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ in ("builtins", "collections") and kind.__name__ in _EMPTY and not value


_EMPTY = frozenset({"dict", "OrderedDict", "set", "list", "tuple"})


@leaving_surely
def _of_storage(storage: Any, torch: Torch) -> Iterator[ChildEntry]:
    with torch.as_is():
        untyped = untyped_storage(storage)
        size = untyped.nbytes()
        device = untyped.device
    yield ChildEntry("memory", Text(size_text(size)), ".nbytes()")
    yield ChildEntry("device", Text(str(device)), ".device")
    dtype = None if untyped is storage else vars(storage).get("dtype")
    if dtype is not None:
        yield ChildEntry("dtype", Text(str(dtype)), ".dtype")
    if device.type == "cpu" and type(size) is int and _is_there(untyped, torch):
        shown = min(size, 16)
        with torch.unseen():
            texts = [f"{untyped[index]:02x}" for index in range(shown)]
        if size > shown:
            texts.append("…")
        yield ChildEntry("first bytes", Text(" ".join(texts)), None)


def _is_there(storage: Any, torch: Torch) -> bool:
    """Return whether the memory of a storage can be read, which may be another's."""
    with torch.unseen():
        whole = torch.torch.empty(0, dtype=torch.torch.uint8).set_(storage)
        return torch.lost_memory(whole) is None


def _places_text(places: list[str], folder: str) -> str:
    """Places as links, of which only those into its own folder work in every editor.

    Others have the last part of a path before it, which is what there is room for.
    """
    beginning = folder.rstrip("/") + "/"
    if folder and all(place.startswith(beginning) for place in places):
        return " or ".join(f"./{place.removeprefix(beginning)}" for place in places)
    last = (os.path.basename(place) for place in places)
    return f"{' or '.join(last)}{SEPARATOR}{' or '.join(places)}"


def _tuple_text(sizes: Any) -> str:
    inside = ", ".join(map(str, sizes))
    return f"({inside},)" if len(sizes) == 1 else f"({inside})"
