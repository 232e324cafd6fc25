"""The text of shapes: the one place that says how a tensor is written, for every view.

    f32[2,16,64]                  a tensor; f32[] a scalar, f32[?] one that cannot say its shape
    f32[2,16]@cuda:0              the device, only where it is not the CPU
    f32[s0,64]  f32[1..512,64]    a symbolic size, a range of sizes
    (f32[2,3], i64[2])            a tuple; [..] a list, {key: ..} a dict, Name(key: ..) a class
    [f32[2,3] ×12]                equal items, counted
    f32[2|8,16,64]                calls that differed; f32[2,3] | i64[2] where they are not alike

Only the standard library is used here: the agent loads this module into the user's program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shapetrace.events.model import Container, Dimension, DimensionRange, Other, Tensor, Value

CUT = "…"
"""Stands for what was left out."""

_MOST_ALTERNATIVES = 3
"""Sizes (or whole shapes) that calls differed in are listed up to this many."""

_SHORTEST_RUN = 3
"""So many equal items in a row are counted instead of repeated."""

_MOST_ITEMS = 16
"""Items of one container that are written out when nothing limits the length."""

_SHORT_DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0fnu",
    "float4_e2m1fn_x2": "f4e2m1fn_x2",
    "complex32": "c32",
    "complex64": "c64",
    "complex128": "c128",
    **{f"int{bits}": f"i{bits}" for bits in (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64)},
    "qint8": "q8",
    "qint32": "q32",
    "quint8": "qu8",
    "quint4x2": "qu4x2",
    "quint2x4": "qu2x4",
}

_BRACKETS = frozenset({"tuple", "list", "dict", "set"})
"""Kinds that are shown by their brackets."""


def dtype_text(dtype: str) -> str:
    """The short name of a dtype; a dtype not known here keeps the name torch gives it."""
    name = dtype.removeprefix("torch.")
    return _SHORT_DTYPES.get(name, name)


def dimension_text(dimension: Dimension) -> str:
    """One size: a number, a symbol, or ``low..high``."""
    if isinstance(dimension, DimensionRange):
        return f"{dimension.low}..{dimension.high}"
    return str(dimension)


def tensor_text(tensor: Tensor, length: int | None = None) -> str:
    """A tensor in a few characters: ``f32[2,16,64]``."""
    if tensor.shape is None:
        return _assemble(tensor.dtype, ["?"], tensor.device)
    dimensions = [dimension_text(dimension) for dimension in tensor.shape]
    text = _assemble(tensor.dtype, dimensions, tensor.device)
    if length is None or len(text) <= length:
        return text
    # The first and the last sizes say most: the ones in between are left out first.
    for kept in range(len(dimensions) - 1, 0, -1):
        head = (kept + 1) // 2
        tail = kept - head
        shortened = [*dimensions[:head], CUT, *dimensions[len(dimensions) - tail :]]
        text = _assemble(tensor.dtype, shortened, tensor.device)
        if len(text) <= length:
            return text
    return cut_end(text, length)


def value_text(value: Value, length: int | None = None) -> str:
    """Any recorded value: a tensor, a container of values, or something else's short text."""
    if isinstance(value, Tensor):
        return tensor_text(value, length)
    if isinstance(value, Other):
        return value.text if length is None else cut_end(value.text, length)
    text = _container_text(value, _MOST_ITEMS)
    if length is None or len(text) <= length:
        return text
    for most_items in range(min(len(value.items), _MOST_ITEMS) - 1, 0, -1):
        text = _container_text(value, most_items)
        if len(text) <= length:
            return text
    # What is inside says more than the whole of a long class name.
    kept = len(value.kind) - (len(text) - length) - len(CUT)
    if value.kind not in _BRACKETS and kept > 0:
        return text.replace(value.kind, value.kind[:kept] + CUT, 1)
    return cut_end(text, length)


def values_text(values: Sequence[Value], length: int | None = None) -> str:
    """Several values side by side, as the arguments of a call."""
    text = ", ".join(_item_texts(values, None, _MOST_ITEMS))
    return text if length is None else cut_end(text, length)


def result_value(outputs: Sequence[Value], result: str | None) -> Value:
    """The outputs of an op or a module call as the one value that it returned."""
    if result is not None:
        return Container(kind=result, items=tuple(outputs))
    if len(outputs) == 1:
        return outputs[0]
    return Container(kind="tuple", items=tuple(outputs)) if outputs else Other(text="None")


def result_text(outputs: Sequence[Value], result: str | None, length: int | None = None) -> str:
    """The return value of an op or module call: ``f32[2,3]``, ``(f32[2,3], i64[2])``."""
    return value_text(result_value(outputs, result), length)


def holds_tensor(value: Value) -> bool:
    """Return whether a value is a tensor, or has one in it."""
    if isinstance(value, Container):
        return any(map(holds_tensor, value.items))
    return isinstance(value, Tensor)


def merge_text(
    values: Iterable[Value], length: int | None = None, *, is_short: bool = False
) -> str:
    """One text for the values of several calls: ``f32[2|8,16,64]``, ``f32[2,3] | i64[2]``.

    A few shapes of which more than one size differs stand side by side, unless it is to be short.
    """
    groups: dict[tuple[object, ...], list[Value]] = {}
    for value in values:
        groups.setdefault(_alike(value), []).append(value)
    texts = list(dict.fromkeys(_merged_group(group, is_short) for group in groups.values()))
    if len(texts) > _MOST_ALTERNATIVES:
        texts = [*texts[:_MOST_ALTERNATIVES], CUT]
    text = " | ".join(texts)
    return text if length is None else cut_end(text, length)


def cut_end(text: str, length: int) -> str:
    """The beginning of a text, with ``…`` for what went over the length."""
    if len(text) <= length:
        return text
    return text[: max(length - 1, 0)] + CUT


def _assemble(dtype: str, dimensions: Sequence[str], device: str) -> str:
    text = f"{dtype_text(dtype)}[{','.join(dimensions)}]"
    return text if device == "cpu" else f"{text}@{device}"


def _container_text(container: Container, most_items: int) -> str:
    items = _item_texts(container.items, container.keys, most_items)
    unseen = (container.length or 0) - len(container.items)
    if unseen > 0 and (not items or items[-1] != CUT):
        items.append(CUT)
    return _bracketed(container.kind, items)


def _bracketed(kind: str, items: Sequence[str]) -> str:
    inside = ", ".join(items)
    if kind == "tuple":
        lonely = len(items) == 1 and " ×" not in items[0] and items[0] != CUT
        return f"({inside},)" if lonely else f"({inside})"
    if kind == "list":
        return f"[{inside}]"
    if kind == "dict" or (kind == "set" and items):
        return f"{{{inside}}}"
    return f"{kind}({inside})"


def _item_texts(values: Sequence[Value], keys: Sequence[str] | None, most_items: int) -> list[str]:
    texts: list[str] = []
    position = 0
    while position < len(values):
        if len(texts) == most_items:
            texts.append(CUT)
            break
        text = value_text(values[position])
        if keys is not None and position < len(keys):
            texts.append(f"{keys[position]}: {text}")
            position += 1
            continue
        run_end = position + 1
        while run_end < len(values) and value_text(values[run_end]) == text:
            run_end += 1
        if run_end - position >= _SHORTEST_RUN:
            texts.append(f"{text} ×{run_end - position}")
            position = run_end
        else:
            texts.append(text)
            position += 1
    return texts


def _alike(value: Value) -> tuple[object, ...]:
    """Values with equal keys are written as one text whose sizes differ."""
    if isinstance(value, Tensor):
        rank = None if value.shape is None else len(value.shape)
        return ("tensor", dtype_text(value.dtype), rank, value.device)
    if isinstance(value, Container):
        inside = tuple(_alike(item) for item in value.items)
        return ("container", value.kind, value.keys, inside, value.length)
    return ("other", value.text)


def _merged_group(group: Sequence[Value], is_short: bool) -> str:
    first = group[0]
    if isinstance(first, Tensor) and first.shape is not None:
        shapes = [value.shape for value in group if isinstance(value, Tensor) and value.shape]
        differing = sum(len(set(sizes)) > 1 for sizes in zip(*shapes, strict=True))
        if differing > 1 and not is_short and len(set(shapes)) <= _MOST_ALTERNATIVES:
            return " | ".join(dict.fromkeys(map(value_text, group)))
        dimensions = [_merged_dimension(sizes) for sizes in zip(*shapes, strict=True)]
        return _assemble(first.dtype, dimensions, first.device)
    if isinstance(first, Container):
        columns = zip(
            *(value.items for value in group if isinstance(value, Container)), strict=True
        )
        merged = [Other(text=merge_text(column, is_short=is_short)) for column in columns]
        return value_text(
            Container(kind=first.kind, items=tuple(merged), keys=first.keys, length=first.length)
        )
    return value_text(first)


def _merged_dimension(sizes: Iterable[Dimension]) -> str:
    distinct = list(dict.fromkeys(sizes))
    numbers = sorted(size for size in distinct if isinstance(size, int))
    ranges = [size for size in distinct if isinstance(size, DimensionRange)]
    symbols = [size for size in distinct if isinstance(size, str)]
    texts = [str(number) for number in numbers]
    if ranges or (numbers and len(distinct) > _MOST_ALTERNATIVES):
        low = min([*numbers, *(size.low for size in ranges)])
        high = max([*numbers, *(size.high for size in ranges)])
        texts = [f"{low}..{high}"]
    if len(symbols) > _MOST_ALTERNATIVES:
        symbols = [*symbols[:_MOST_ALTERNATIVES], CUT]
    return "|".join([*texts, *symbols])
