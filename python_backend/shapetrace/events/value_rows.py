"""Values as rows: ``[0, shape, dtype, ...]``, ``[1, kind, items, keys, length]``, ``[2, text]``.

``columns`` names the columns. A size that was a range is ``[low, high]``. A tensor's name is not in
its row. The recorder, which has no events yet, writes such rows by ``recorder.plain_rows``.
"""

from __future__ import annotations

from typing import Any

from shapetrace.events import row_columns
from shapetrace.events.checks import (
    DEEPEST,
    LIST,
    NUMBER_OR_TEXT,
    TEXT,
    Refused,
    check_items,
    check_type,
)
from shapetrace.events.model import (
    Container,
    Dimension,
    DimensionRange,
    Other,
    Tensor,
    Value,
)


def read_value(row: Any, depth: int = 0) -> Value:
    """The value of a row. Raises ``Refused`` if it is none."""
    mark = row[0] if type(row) in LIST and row else None
    if type(mark) is int and mark == 0:
        row_columns.TENSOR.check(row)
        _, shape, dtype, device, requires_grad, strides, kind, layout, placements = row
        if strides is not None:
            check_items("strides", NUMBER_OR_TEXT, strides)
        return Tensor(
            shape=None if shape is None else tuple(map(_dimension, shape)),
            dtype=dtype,
            device=device,
            requires_grad=requires_grad,
            layout=layout,
            strides=None if strides is None else tuple(strides),
            kind=kind,
            placements=placements,
        )
    if type(mark) is int and mark == 1:
        row_columns.CONTAINER.check_closely(row)
        _, kind, items, keys, length = row
        if depth == DEEPEST:
            raise Refused("values are nested too deeply")
        if keys is not None:
            check_items("keys", TEXT, keys)
            if len(keys) != len(items):
                raise Refused("there is not one key for each item")
        names = None if keys is None else tuple(keys)
        return Container(
            kind, tuple([read_value(item, depth + 1) for item in items]), names, length
        )
    if type(mark) is int and mark == 2:
        row_columns.OTHER.check(row)
        return Other(row[1])
    raise Refused("a value is neither a tensor nor a container nor a text")


def write_value(value: Value) -> list[Any]:
    """The row for a value."""
    if isinstance(value, Other):
        return [2, value.text]
    if isinstance(value, Container):
        items = [write_value(item) for item in value.items]
        keys = None if value.keys is None else list(value.keys)
        return [1, value.kind, items, keys, value.length]
    return [
        0,
        None if value.shape is None else [_size_row(size) for size in value.shape],
        value.dtype,
        value.device,
        value.requires_grad,
        None if value.strides is None else list(value.strides),
        value.kind,
        value.layout,
        value.placements,
    ]


def _size_row(size: Dimension) -> int | str | list[int]:
    return [size.low, size.high] if isinstance(size, DimensionRange) else size


def _dimension(size: Any) -> Dimension:
    if type(size) in LIST:
        row_columns.RANGE.check_closely(size)
        return DimensionRange(*size)
    check_type("a size", NUMBER_OR_TEXT, size)
    dimension: Dimension = size
    return dimension
