from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import shapetrace
from shapetrace import Tracer, trace_model
from shapetrace.compat import tracy_nn

x = torch.rand(2, 3)
y = torch.rand(3, 3)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU())

    def forward(self, x: Tensor, scale: Tensor | None = None) -> Tensor:
        hidden: Tensor = self.layers(x)
        return hidden if scale is None else hidden * scale


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def traced(function: Callable[[], Any], model: nn.Module | None = None) -> str:
    """What a tracer prints for a function; an error that the function raises is let go."""
    tracer = Tracer("test")
    with pytest.raises(Exception) if _raises(function) else _nothing(), tracer.trace(model):
        function()
    return tracer.text
