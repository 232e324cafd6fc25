"""Differences of older torches."""

from __future__ import annotations

import pkgutil
from typing import Any

import pytest
import torch

TORCH = tuple(map(int, torch.__version__.split(".")[:2]))


def needs(*names: str) -> None:
    """Skip a test of what this torch does not have."""
    for name in names:
        try:
            pkgutil.resolve_name(name)
        except (AttributeError, ImportError):
            pytest.skip(f"torch {torch.__version__} has no {name}")


def distributed_tensors() -> Any:
    """The module of ``DTensor``, which had another name before torch 2.5."""
    name = "torch.distributed.tensor" if TORCH >= (2, 5) else "torch.distributed._tensor"
    return pkgutil.resolve_name(name)
