"""The parts of torch for remembering tensors; nothing is imported here."""

from __future__ import annotations

import sys
from typing import Any, Final

from shapetrace.inspecting.torch_access import Torch, loaded_torch


class Tensors:
    """The parts of torch that following needs, on top of those for the debugger's panes."""

    def __init__(self, torch: Torch) -> None:
        # Modules that describe tensors are loaded now, not in the middle of a followed call.
        import shapetrace.events.rows
        import shapetrace.recorder.describe
        import shapetrace.recorder.plain_rows  # noqa: F401 (only loaded)

        internals: Any = torch.torch._C
        self.torch: Final = torch
        self.tensor: Final[type] = torch.tensor
        self.parameter: Final[type] = torch.parameter
        self.plain: Final = frozenset({torch.tensor, torch.parameter})
        self.function_modes: Final[Any] = internals._len_torch_function_stack
        self.as_is: Final[Any] = internals.DisableTorchFunction
        self.version_of: Final[Any] = torch.base._version.__get__
        self.strided: Final[Any] = torch.torch.strided
        self.settings: Final[Any] = torch.torch.__future__
        """torch.__future__: one setting has modules swap tensors, which weak references prevent."""
        self.tracing: Final[Any] = getattr(internals, "_get_tracing_state", _nothing)
        """Returns None outside torch.jit.trace, which records even queries of sizes."""
        # Not data_ptr(), which makes a lazily cloned tensor copy its data.
        self.address_of: Final[Any] = getattr(internals, "_data_address", _address_of_storage)
        """Address of a tensor's storage; the tensor may begin later in it."""
        self.offset_of: Final[Any] = torch.base.storage_offset


def _address_of_storage(tensor: Any) -> int:
    address: int = tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
    return address


def _nothing() -> None:
    """Nothing is running."""


_tensors: Tensors | None = None


def loaded_tensors() -> Tensors | None:
    """Torch; None if the program has not imported it."""
    global _tensors
    if _tensors is None and "torch" in sys.modules:
        torch = loaded_torch()
        if torch is not None:
            _tensors = Tensors(torch)
    return _tensors
