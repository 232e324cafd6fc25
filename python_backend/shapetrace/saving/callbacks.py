"""Calls users' callbacks, and has the two built-in ones.

A callback may take any number of leading arguments:

    pre_save(name, value, iteration) -> value
    the others: callback(name, values, iterations, ranks), which change the lists in place,
                callback(name, result), which changes `result.values`, `.iterations`, `.ranks`

A callback's exception is raised on, with a note that names the callback.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from shapetrace._asynchronous import is_asynchronous
from shapetrace.capture.copies import lost_memory, steady, unseen_among
from shapetrace.capture.results import ResultEntry

Callback = Callable[..., Any]

_said: dict[str | tuple[str, type[Warning], int], int] = {}
"""Warnings that were given: a callback runs at every gather, but warns once."""


def call_callback(callback: Callback, name: str, entry: ResultEntry) -> None:
    """Call a `pre_gather`, `post_gather` or `post_trace` callback."""
    prepared(callback)(name, entry)


def prepared(callback: Callback) -> Callable[[str, ResultEntry], None]:
    """Return how to call it, determined once: it runs for every name at every gather."""
    taken, second = _parameters(callback)
    takes_entry = taken == 2 and second != "values"

    def call_with_four(name: str, entry: ResultEntry) -> None:
        try:
            callback(name, entry.values, entry.iterations, entry.ranks)
        except BaseException as error:
            _tell_of(callback, name, error)
            raise

    def call(name: str, entry: ResultEntry) -> None:
        try:
            if takes_entry:
                callback(name, entry)
            else:
                callback(*(name, entry.values, entry.iterations)[:taken])
        except BaseException as error:
            _tell_of(callback, name, error)
            raise

    return call_with_four if taken == 4 else call


def call_pre_save(callback: Callback, name: str, value: Any, iteration: int) -> Any:
    """The value to save instead, which may be None."""
    taken, _ = _parameters(callback)
    return _call(callback, name, (name, value, iteration)[:taken])


def stack_tensors(
    name: str,
    values: list[Any] | ResultEntry,
    iterations: list[int] | None = None,
    ranks: list[int] | None = None,
) -> None:
    """Leave one tensor in `values[0]`: all of them along a new first dimension."""
    values = values.values if isinstance(values, ResultEntry) else values
    if values:
        with unseen_among(values):
            _stack(name, values)


def _stack(name: str, values: list[Any]) -> None:
    if not _can_be_stacked("stack_tensors", name, values):
        return
    shapes = {tuple(value.shape) for value in values}
    if len(shapes) > 1:
        shown = " and ".join(str(list(shape)) for shape in sorted(shapes)[:2])
        _say(
            f"stack_tensors left {name!r} as it is: its values have different shapes, such as "
            f"{shown}. Use stack_padded_tensors."
        )
        return
    _stack_to("stack_tensors", name, values, values[0].shape)


def stack_padded_tensors(
    name: str,
    values: list[Any] | ResultEntry,
    iterations: list[int] | None = None,
    ranks: list[int] | None = None,
) -> None:
    """Leave one tensor in `values[0]`, with zeros where a value is smaller than the largest.

    The zeros come at the end of each dimension; values of fewer dimensions than others get
    dimensions of size 1 in front.
    """
    values = values.values if isinstance(values, ResultEntry) else values
    if values:
        with unseen_among(values):
            _stack_padded(name, values)


def _stack_padded(name: str, values: list[Any]) -> None:
    if not _can_be_stacked("stack_padded_tensors", name, values):
        return
    rank = max(value.dim() for value in values)
    shapes = [(1,) * (rank - value.dim()) + tuple(value.shape) for value in values]
    largest = [max(sizes) for sizes in zip(*shapes, strict=True)]
    _stack_to("stack_padded_tensors", name, values, largest)


def _stack_to(callback: str, name: str, values: list[Any], shape: Sequence[int]) -> None:
    try:
        stacked = _stacked(values, shape)
    except Exception as error:
        if is_asynchronous(error):
            raise
        reason = str(error).strip().splitlines()[0]
        _say(f"{callback} left {name!r} as it is: torch cannot stack it: {reason}")
        return
    values[:] = [stacked]


def _stacked(values: Sequence[torch.Tensor], shape: Sequence[int]) -> torch.Tensor:
    """Copied one by one: `torch.stack` does not know all dtypes, `copy_` does."""
    dtype = values[0].dtype
    for value in values:
        if value.dtype != dtype:
            dtype = torch.promote_types(dtype, value.dtype)
    stacked = torch.zeros((len(values), *shape), dtype=dtype, device=values[0].device)
    for row, value in zip(stacked, values, strict=True):
        place = row[(0,) * (len(shape) - value.dim())]
        for dimension, size in enumerate(value.shape):
            place = place.narrow(dimension, 0, size)
        place.copy_(steady(value))
    return stacked


def _can_be_stacked(callback: str, name: str, values: list[Any]) -> bool:
    """Return whether all are plain tensors; says so where they are not."""
    for value in values:
        if not isinstance(value, torch.Tensor):
            _say(f"{callback} left {name!r} as it is: {type(value).__name__} is no tensor")
            return False
        special = _special_kind(value)
        if special:
            _say(f"{callback} left {name!r} as it is: a tensor {special} is in it")
            return False
        if lost := lost_memory(value):
            _say(f"{callback} left {name!r} as it is: of a tensor in it {lost}")
            return False
    try:
        for value in values[1:]:
            torch.promote_types(values[0].dtype, value.dtype)
    except RuntimeError as error:
        if is_asynchronous(error):
            raise
        dtypes = ", ".join(sorted({str(value.dtype) for value in values}))
        _say(f"{callback} left {name!r} as it is: no dtype holds all of {dtypes}")
        return False
    return True


def _special_kind(tensor: torch.Tensor) -> str | None:
    """Why a tensor has no place in a stack; None for ordinary ones."""
    if tensor.layout != torch.strided:
        return f"of layout {tensor.layout}"
    if tensor.is_nested:
        return "that is nested"
    if tensor.is_quantized:
        return "that is quantized"
    return "that has no data before the first call" if is_lazy(tensor) else None


def _say(text: str) -> None:
    # Without a place: a line of ours would mislead, and no line of the program is to blame.
    warnings.warn_explicit(text, UserWarning, "shapetrace", 0, registry=_said)


def _call(callback: Callback, name: str, arguments: tuple[object, ...]) -> Any:
    try:
        return callback(*arguments)
    except BaseException as error:
        _tell_of(callback, name, error)
        raise


def _tell_of(callback: Callback, name: str, error: BaseException) -> None:
    if not isinstance(error, Exception) or not is_asynchronous(error):
        error.add_note(f"Raised by the callback {_name_of(callback)} for {name!r}.")


def _parameters(callback: Callback) -> tuple[int, str]:
    """How many positional arguments a callback takes, four at most, and what the second is called.

    Those with a default count, too.
    """
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return 4, ""  # Written in C, without a signature.
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return 4, ""
    positional = [
        parameter.name
        for parameter in parameters
        if parameter.kind
        in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    return min(len(positional), 4), positional[1] if len(positional) > 1 else ""


def _name_of(callback: Callback) -> str:
    name = getattr(callback, "__qualname__", None)
    return name if isinstance(name, str) else type(callback).__qualname__
