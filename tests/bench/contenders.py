"""The ways of watching a forward pass that are compared.

A contender is a context manager that yields what to call in place of the model. Each is imported
only when its turn comes: some of them change torch by being imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

import shapetrace

Forward = Callable[..., object]


@dataclass(frozen=True)
class Contender:
    """One way of watching, by name."""

    name: str
    watching: Callable[[nn.Module], AbstractContextManager[Forward]]
    slow: bool = False
    """A forward pass takes so long under it that it sits most rounds out."""
    distribution: str | None = None
    """The package it comes from, where that is neither torch nor this one."""

    @property
    def available(self) -> bool:
        """Whether its package is installed."""
        return self.distribution is None or bool(importlib.util.find_spec(self._module))

    @property
    def title(self) -> str:
        """The name with the version of its package."""
        if self.distribution is None:
            return self.name
        return f"{self.name} {importlib.metadata.version(self.distribution)}"

    @property
    def _module(self) -> str:
        return (self.distribution or "").replace("-", "_")


class EmptyMode(TorchFunctionMode):
    """The floor for everything that watches from Python: a mode that only calls on."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def _empty_mode(model: nn.Module) -> Iterator[Forward]:
    with EmptyMode():
        yield model


@contextmanager
def _shapetrace(model: nn.Module) -> Iterator[Forward]:
    with shapetrace.trace():
        yield model


@contextmanager
def _shapetrace_aten(model: nn.Module) -> Iterator[Forward]:
    with shapetrace.trace(level="aten"):
        yield model


@contextmanager
def _settled(model: nn.Module) -> Iterator[Forward]:
    with shapetrace.trace(settle_after=3):
        yield model


@contextmanager
def _torch_code_tracing(model: nn.Module) -> Iterator[Forward]:
    from torch_code_tracing import TracingMode

    with TracingMode(quiet=True, color=False):
        yield model


@contextmanager
def _debug_mode(model: nn.Module) -> Iterator[Forward]:
    from torch.utils._debug_mode import DebugMode

    with DebugMode():
        yield model


@contextmanager
def _debug_mode_with_stacks(model: nn.Module) -> Iterator[Forward]:
    from torch.utils._debug_mode import DebugMode

    with DebugMode(record_torchfunction=True, record_nn_module=True, record_stack_trace=True):
        yield model


@contextmanager
def _profiler(model: nn.Module) -> Iterator[Forward]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True):
        yield model


@contextmanager
def _torchlens(model: nn.Module) -> Iterator[Forward]:
    import torchlens

    yield lambda *inputs: torchlens.trace(model, list(inputs))


PLAIN = Contender("plain", nullcontext)
PLAIN_AGAIN = Contender("plain, once more", nullcontext)
EMPTY = Contender("empty TorchFunctionMode", _empty_mode)
SHAPETRACE = Contender("**shapetrace**", _shapetrace)
SHAPETRACE_ATEN = Contender("**shapetrace**, aten level", _shapetrace_aten)
SETTLED = Contender("**shapetrace**, settled", _settled)

PEERS = (
    Contender(
        "torch-code-tracing", _torch_code_tracing, slow=True, distribution="torch-code-tracing"
    ),
    Contender("DebugMode", _debug_mode, slow=True),
    Contender("DebugMode with stacks, modules and torch functions", _debug_mode_with_stacks, True),
    Contender("torch.profiler with shapes and stacks", _profiler, slow=True),
)
"""Those that leave torch as it was, and so can share a process."""

TORCHLENS = Contender("TorchLens", _torchlens, slow=True, distribution="torchlens")
"""It wraps torch for good: it has a process of its own."""
