"""A model to trace: how it is built, how it is run, and which source is its own."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy
import torch
from torch import nn


@dataclass
class Program:
    """A model with what it is to be called with."""

    model: nn.Module
    inputs: dict[str, Any]
    run: Callable[[nn.Module, dict[str, Any]], object]
    """Call the model; whatever it returns is compared bit for bit."""

    def fresh(self) -> Program:
        """Copy it, so that no run sees what another did, and seed every source of chance."""
        random.seed(0)
        numpy.random.seed(0)
        torch.manual_seed(0)
        return Program(copy.deepcopy(self.model), copy.deepcopy(self.inputs), self.run)

    def __call__(self) -> object:
        """Run it."""
        return self.run(self.model, self.inputs)


@dataclass(frozen=True)
class ModelCase:
    """A program by name, and the source files that are the model's own."""

    name: str
    build: Callable[[], Program]
    own: tuple[str, ...]
    fused: bool = False
    """Whether parts run in a fused path, which any mode would switch off."""


def source_of(*modules: ModuleType | type | Callable[..., object]) -> tuple[str, ...]:
    """Return the source files of some modules or classes."""
    return tuple(inspect.getfile(module) for module in modules)


def tensors_of(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested outputs; objects are looked into by their attributes."""
    seen: set[int] = set()

    def walk(item: object) -> Iterator[torch.Tensor]:
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, dict):
            for part in item.values():
                yield from walk(part)
        elif isinstance(item, (tuple, list)):
            for part in item:
                yield from walk(part)
        elif hasattr(item, "__dict__") and id(item) not in seen:
            seen.add(id(item))
            if not isinstance(item, (type, nn.Module)):
                yield from walk(vars(item))

    yield from walk(value)


def plain_run(model: nn.Module, inputs: dict[str, Any]) -> object:
    """Call the model with its inputs by keyword, without gradients."""
    with torch.no_grad():
        return model(**inputs)


def train_run(model: nn.Module, inputs: dict[str, Any]) -> object:
    """Make one step of training; the model's output has a loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    output = model(**inputs)
    output.loss.backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    optimizer.step()
    optimizer.zero_grad()
    return output.loss, output.logits, gradients, list(model.parameters())
