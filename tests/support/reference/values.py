"""Values of a model by hooks and patched functions, which know nothing of what is tested.

    with outputs_of(model) as heard:
        model(x)
    heard["layers.0"]   # what the module returned, call by call

Copies are made by ``deepcopy`` of what is detached, so slowly and surely.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


def plain(value: Any) -> Any:
    """A value with its tensors detached and copied."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().cpu()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return (
            type(value)(map(plain, value))
            if type(value) in (list, tuple)
            else [plain(inner) for inner in value]
        )
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal bit for bit."""
    if isinstance(one, torch.Tensor):
        return (
            isinstance(other, torch.Tensor)
            and (one.dtype, one.shape) == (other.dtype, other.shape)
            and torch.equal(_bits(one), _bits(other))
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


@contextlib.contextmanager
def outputs_of(model: nn.Module) -> Iterator[dict[str, list[Any]]]:
    """The return values of each module, call by call."""
    heard: dict[str, list[Any]] = {}

    def hook(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        heard.setdefault(name, []).append(plain(output))

    handles = [
        module.register_forward_hook(functools.partial(hook, name))
        for name, module in model.named_modules()
    ]
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def inputs_of(model: nn.Module) -> Iterator[dict[str, list[tuple[Any, Any]]]]:
    """The arguments of each module, call by call."""
    heard: dict[str, list[tuple[Any, Any]]] = {}

    def hook(name: str, module: nn.Module, inputs: Any, keywords: Any) -> None:
        heard.setdefault(name, []).append((plain(inputs), plain(keywords)))

    handles = [
        module.register_forward_pre_hook(functools.partial(hook, name), with_kwargs=True)
        for name, module in model.named_modules()
    ]
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def calls_of(owner: Any, name: str) -> Iterator[list[tuple[Any, Any, Any]]]:
    """The calls of a function that is found under a name: arguments, keywords and result."""
    original = getattr(owner, name)
    heard: list[tuple[Any, Any, Any]] = []

    @functools.wraps(original)
    def patched(*args: Any, **kwargs: Any) -> Any:
        given = plain(list(args)), plain(kwargs)
        result = original(*args, **kwargs)
        heard.append((*given, plain(result)))
        return result

    setattr(owner, name, patched)
    try:
        yield heard
    finally:
        setattr(owner, name, original)
