"""TorchScript modules, of which only arguments and results can be captured."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import Module


def is_scripted(module: Module) -> bool:
    """Return whether ``torch.jit.script`` or ``torch.jit.trace`` made a module."""
    return isinstance(module, torch.jit.ScriptModule)


def parameters_of_forward(module: Module) -> list[str] | None:
    """The parameter names of a scripted module's ``forward``; None if it has none."""
    scripted: Any = module
    if not scripted._c._has_method("forward"):
        return None
    schema = scripted._c._get_method("forward").schema
    return [argument.name for argument in schema.arguments[1:]]
