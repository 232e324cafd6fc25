"""What the program itself has imported of torch and NumPy; nothing is imported for it.

A value cannot be a tensor before torch is there as a whole, so whoever asks too early is told so.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from shapetrace.inspecting.guards import Guards, WithoutDispatchModes
from shapetrace.inspecting.memory import lost_memory_of
from shapetrace.inspecting.readability import has_plain_data, transforming_of
from shapetrace.inspecting.unnoticed import unnoticed_of


class Torch:
    """The parts of torch that are needed here."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.tensor: type = torch.Tensor
        self.base: Any = torch._C.TensorBase
        self.parameter: type = torch.nn.Parameter
        self.module: type = torch.nn.Module
        self.script_module: type = torch.jit.ScriptModule
        self.optimizer: type = torch.optim.Optimizer
        self.storages: tuple[type, ...] = (
            torch.storage.UntypedStorage,
            torch.storage.TypedStorage,
        )
        symbolic = (getattr(torch, name, None) for name in ("SymInt", "SymFloat", "SymBool"))
        self.symbolic = frozenset(kind for kind in symbolic if kind is not None)
        """Classes of sizes that are not known; these write themselves out as their names."""
        self.leaves = frozenset({self.tensor, self.module, *self.storages})
        self.as_is: Any = torch._C.DisableTorchFunction
        """Entered to look at a tensor without any function mode or subclass being asked."""
        self.lost_memory = lost_memory_of(torch)
        self.unseen = unnoticed_of(torch).unseen
        """Entered to compute something that nothing of the program's is to notice."""
        self._transforming = transforming_of(torch)

    def unwatched(self) -> Guards:
        """Entered to ask a class of torch's for what it computes, without any mode being asked."""
        return Guards(self._enter_unwatched)

    def _enter_unwatched(self, guards: Guards) -> None:
        if self.torch._C._len_torch_dispatch_stack():
            guards.enter(WithoutDispatchModes)

    def is_transforming(self) -> bool:
        """Whether a function transform such as ``vmap`` is running, whose tensors are its own."""
        return self._transforming() is not None

    def has_plain_data(self, tensor: Any) -> bool:
        """Whether torch's own kernels may have a tensor."""
        return has_plain_data(type(tensor), self.tensor)


@cache
def _torch_of(module: Any) -> Torch:
    return Torch(module)


def loaded_torch() -> Torch | None:
    """Torch, where the program has imported it."""
    module = sys.modules.get("torch")
    specification = getattr(module, "__spec__", None)
    if module is None or getattr(specification, "_initializing", False):
        return None
    try:
        return _torch_of(module)
    except AttributeError:  # something else of that name
        return None


def array_type() -> type | None:
    """NumPy's class of arrays, where the program has imported it."""
    found = getattr(sys.modules.get("numpy"), "ndarray", None)
    return found if isinstance(found, type) else None
