"""Restores values from the arrays that ``encoding`` made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shapetrace.hdf5.encoding import Structure


def decoded(structure: Structure, leaves: Iterator[Any]) -> Any:
    """Restore a value from its structure and the arrays of its leaves.

    Tuples, lists, dicts and sets come back as such. Named tuples, dataclasses and other mappings
    come back as dicts: their classes may not be there, and nothing is imported by a name in a file.
    """
    if "items" not in structure:
        return _leaf(structure, next(leaves))
    kind = structure["kind"]
    items = [decoded(item, leaves) for item in structure["items"]]
    match kind:
        case "list":
            return items
        case "tuple":
            return tuple(items)
        case "set":
            return set(items)
        case "frozenset":
            return frozenset(items)
    keys = structure["keys"]
    if kind in ("dict", "namedtuple", "dataclass"):
        return dict(zip(map(_key, keys), items, strict=True))
    parts = dict(zip(keys, items, strict=True))
    if kind == "quantized":
        return _quantized(parts)
    if kind.startswith("nested "):
        return _nested(parts, kind.removeprefix("nested "))
    return _sparse(parts, kind)


def _leaf(structure: Structure, array: Any) -> Any:
    import numpy

    dtype = structure["dtype"]
    match structure["kind"]:
        case "tensor":
            return _tensor(dtype, array)
        case "ndarray" | "scalar" as kind:
            if dtype.startswith(("<U", ">U", "|S", "<m", ">m", "<M", ">M")):
                array = _restored(dtype, array)
            return array if kind == "ndarray" else array[()]
        case "NoneType":
            return None
        case "bytes":
            return array.tobytes()
        case "str":
            text = array if structure["ndim"] == 0 else array.tobytes()
            return _text(text[()] if structure["ndim"] == 0 else text)
        case "int" if dtype == "str":
            return int(_text(array[()]), 16)
        case "bool" | "int" | "float" | "complex":
            return array[()].item()
        case "dtype" | "device":
            import torch

            text = _text(array[()])
            if structure["kind"] == "device":
                return torch.device(text)
            return getattr(torch, text.removeprefix("torch."))
        case kind:
            if structure["of"] == "str":
                items = [_text(item) for item in array.tolist()]
            else:
                items = numpy.asarray(array).tolist()
            makers: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
            return makers.get(kind, list)(items)


def _tensor(dtype: str, array: Any) -> Any:
    import numpy
    import torch

    kind = getattr(torch, dtype)
    # A copy: the array may be read-only, or part of a larger one.
    array = numpy.array(array)
    if dtype == array.dtype.name:
        return torch.from_numpy(array)
    signed = array.view(array.dtype.str.replace("u", "i")) if array.itemsize > 1 else array
    return torch.from_numpy(signed).view(kind)


def _restored(dtype: str, array: Any) -> Any:
    import numpy

    if dtype[1] == "S":
        if not array.shape[-1]:
            return numpy.zeros(array.shape[:-1], dtype)
        return numpy.ascontiguousarray(array).view(dtype).reshape(array.shape[:-1])
    if dtype[1] == "U":
        texts = numpy.empty(array.shape, object)
        for place in numpy.ndindex(array.shape):
            texts[place] = _text(array[place])
        return texts.astype(dtype)
    return array.view(dtype)


def _text(stored: str | bytes) -> str:
    return stored.decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else stored


def _key(key: Any) -> Any:
    if isinstance(key, str):
        return key
    kind, text = key
    match kind:
        case "int":
            return int(text)
        case "bool":
            return text == "True"
        case "NoneType":
            return None
    return text


def _quantized(parts: dict[str, Any]) -> Any:
    import torch

    integers, dtype = parts["integers"], parts["dtype"]
    if "scale" in parts:
        make: Any = torch._make_per_tensor_quantized_tensor
        made = make(integers, parts["scale"], parts["zero_point"])
    else:
        make = torch._make_per_channel_quantized_tensor
        made = make(integers, parts["scales"], parts["zero_points"], parts["axis"])
    assert made.dtype == dtype
    return made


def _nested(parts: dict[str, Any], layout: str) -> Any:
    import torch

    values, sizes = parts["values"], parts["sizes"]
    pieces = []
    start = 0
    for size in sizes.tolist():
        count = int(torch.Size(size).numel())
        pieces.append(values[start : start + count].reshape(size))
        start += count
    return torch.nested.nested_tensor(pieces, layout=getattr(torch, layout), dtype=values.dtype)


def _sparse(parts: dict[str, Any], layout: str) -> Any:
    import torch

    size = parts["size"].tolist()
    if layout == "sparse_coo":
        made = torch.sparse_coo_tensor(
            parts["indices"], parts["values"], size, check_invariants=False
        )
        return made._coalesced_(parts["is_coalesced"])
    outer, inner = list(parts)[:2]
    return torch.sparse_compressed_tensor(
        parts[outer],
        parts[inner],
        parts["values"],
        size,
        layout=getattr(torch, layout),
        check_invariants=False,
    )
