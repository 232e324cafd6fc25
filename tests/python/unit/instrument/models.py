"""Models whose source is as it was written: pytest changes that of the tests themselves."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, n: int = 2) -> torch.Tensor:
        y = maybe = x
        if (k := n) > 1:
            y = self.layer(x)
            maybe = y
        for i in range(k):
            y = y + i
            y += sum(q for q in [1, 2])
        zs = [torch.relu(z) for z in y]
        with torch.no_grad():
            w = y.sum()
        try:
            named = dict(enumerate(zs))
        finally:
            w = w + 1
        return torch.stack(list(named.values())) + helper(w) + maybe


class Gated(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.sigmoid(x)
        x = x * y
        return x + y


def helper(w: torch.Tensor) -> torch.Tensor:
    w = w + 1
    return w


def scripted(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x)
    if bool(y.sum() > 0):
        y = y + 1
    return y
