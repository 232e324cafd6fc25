"""Values as rows, written of what the recorder has noted; ``events.value_rows`` reads them."""

from __future__ import annotations

from typing import Any, TypeAlias

from shapetrace.recorder.describe import CONTAINER, OTHER, Raw
from shapetrace.recorder.records import Range

Row: TypeAlias = tuple[Any, ...]


def value_row(raw: Raw) -> Row:
    """A raw value as a row."""
    if raw[0] is OTHER:
        return (2, raw[1])
    if raw[0] is CONTAINER:
        _, kind, keys, items, length = raw
        return (1, kind, tuple(map(value_row, items)), keys, length)
    shape, dtype, device, requires_grad, strides, kind, *unusual = raw
    layout, placements = unusual if unusual else ("strided", None)
    return (
        0,
        None if shape is None else tuple(map(_dimension, shape)),
        "mixed" if dtype is None else str(dtype).removeprefix("torch."),
        "mixed" if device is None else str(device),
        bool(requires_grad),
        None if strides is None else tuple(map(_number, strides)),
        kind.__name__,
        layout or "unknown",
        placements,
    )


def _dimension(size: Any) -> Any:
    if type(size) is Range:
        return (size.low, size.high)
    return _number(size)


def _number(size: Any) -> int | str:
    return size if type(size) is int else str(size)
