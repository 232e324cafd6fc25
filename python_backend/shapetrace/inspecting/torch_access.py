"""The torch and NumPy that the program has imported; nothing is imported here.

Before torch is fully imported no value can be a tensor, and ``loaded_torch`` returns None.
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
    """The parts of torch that reading values needs."""

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
        """Classes of symbolic sizes, whose repr is their name."""
        self.plain = frozenset({self.tensor, self.parameter})
        """Tensor classes without Python code of their own."""
        self.leaves = frozenset({self.tensor, self.module, *self.storages})
        self.as_is: Any = torch._C.DisableTorchFunction
        """Context to inspect a tensor without function modes and ``__torch_function__``."""
        self.function_modes: Any = torch._C._len_torch_function_stack
        self.settings: Any = torch.__future__
        """torch.__future__: one setting has modules swap tensors, which weak references prevent."""
        self.version_of: Any = self.base._version.__get__
        # Not data_ptr(), which makes a lazily cloned tensor copy its data.
        self.address_of: Any = getattr(torch._C, "_data_address", _address_of_storage)
        """Address of a tensor's storage; the tensor may begin later in it."""
        self.offset_of: Any = self.base.storage_offset
        self.lost_memory = lost_memory_of(torch)
        self.unseen = unnoticed_of(torch).unseen
        """Context to compute without the program noticing."""
        self._transforming = transforming_of(torch)

    def unwatched(self) -> Guards:
        """Context to let a torch class compute without any mode noticing."""
        return Guards(self._enter_unwatched)

    def _enter_unwatched(self, guards: Guards) -> None:
        if self.torch._C._len_torch_dispatch_stack():
            guards.enter(WithoutDispatchModes)

    def is_transforming(self) -> bool:
        """Return whether a function transform such as ``vmap`` runs, which owns its tensors."""
        return self._transforming() is not None

    def has_plain_data(self, tensor: Any) -> bool:
        """Return whether torch's kernels compute with a tensor without its class's code."""
        return has_plain_data(type(tensor), self.tensor)


def _address_of_storage(tensor: Any) -> int:
    address: int = tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
    return address


@cache
def torch_of(module: Any) -> Torch:
    """The parts of torch, the module."""
    return Torch(module)


def loaded_torch() -> Torch | None:
    """Torch; None if the program has not imported it."""
    module = sys.modules.get("torch")
    specification = getattr(module, "__spec__", None)
    if module is None or getattr(specification, "_initializing", False):
        return None
    try:
        return torch_of(module)
    except AttributeError:  # another module of that name
        return None


def array_type() -> type | None:
    """NumPy's array class; None if the program has not imported NumPy."""
    found = getattr(sys.modules.get("numpy"), "ndarray", None)
    return found if isinstance(found, type) else None
