"""The programs that are measured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Workload:
    """A model with the arguments it is called with, and the setting it is called in."""

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    setting: Callable[[], contextlib.AbstractContextManager[object]]


def tiny_encoder(setting: str) -> Workload:
    """Six encoder layers so small that a forward pass is nothing but overhead."""
    model = _encoder(layers=6, width=64, heads=4, hidden=256)
    model.train(setting == "train")
    return Workload(model, (torch.randn(2, 16, 64),), SETTINGS[setting])


def real_work() -> Workload:
    """Twelve encoder layers of width 1024 over 512 tokens: the kernels take nearly all the time."""
    model = _encoder(layers=12, width=1024, heads=16, hidden=4096)
    inputs = (torch.randn(1, 512, 1024),)
    return Workload(model.eval(), inputs, SETTINGS["eval, fused path off"])


def _encoder(*, layers: int, width: int, heads: int, hidden: int) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, heads, hidden, batch_first=True)
    return nn.TransformerEncoder(layer, layers)


@contextlib.contextmanager
def _without_fused_path() -> Iterator[None]:
    """PyTorch's own switch for the path that runs an encoder layer as one kernel."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


SETTINGS: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "train": contextlib.nullcontext,
    "eval, fused path": torch.no_grad,
    "eval, fused path off": _without_fused_path,
}
"""The ways the tiny encoder is called; evaluation is always without gradients."""
