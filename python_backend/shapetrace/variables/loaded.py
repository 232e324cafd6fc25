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

        self.torch: Final = torch
        self.tensor: Final[type] = torch.tensor
        self.plain: Final = torch.plain
        self.function_modes: Final[Any] = torch.function_modes
        self.as_is: Final[Any] = torch.as_is
        self.strided: Final[Any] = torch.torch.strided
        self.tracing: Final[Any] = getattr(torch.torch._C, "_get_tracing_state", _nothing)
        """Returns None outside torch.jit.trace, which records even queries of sizes."""


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
