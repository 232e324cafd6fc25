# ruff: noqa: F841, RUF059
"""Models whose values are captured."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Pair = namedtuple("Pair", "left right")


@dataclass
class Out:
    logits: Tensor
    hidden: list[Tensor]


def scaled(q: Tensor, k: Tensor, scale: float = 2.0) -> Tensor:
    scores = q @ k.transpose(-2, -1)
    scores = scores / scale
    return scores


class Attention(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.drop = nn.Dropout(0.5)

    def split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, 2, width // 2).transpose(1, 2)

    def attend(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.softmax(scaled(q, k), dim=-1)
        return weights @ k, weights

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q = self.query(x)
        q = self.split(q)
        k = self.split(self.key(x))
        y, weights = self.attend(q, k)
        y += 1
        y = y.transpose(1, 2).reshape(x.shape)
        return self.drop(y)


class Encoder(nn.Module):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(layers))
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = x + layer(x, mask)
        return self.head(x)


class Structures(nn.Module):
    """All kinds of things that hold something."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x: Tensor) -> dict[str, Any]:
        h = self.linear(x)
        batch = {"mask": h > 0, "ids": {"a": h, 3: h * 2}, "a.b": h + 1}
        outs = [h, h * 2, (h * 3, "text")]
        pair = Pair(h + 1, {"deep": [h - 1]})
        out = Out(h.relu(), outs[:1])
        largest = h.max(dim=1)
        empty: dict[str, Tensor] = {}
        return {"loss": h.sum(), "all": (h, out, pair, batch, largest, empty)}


class Steps(nn.Module):
    """Variables in every kind of place."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        def inner(z: Tensor) -> Tensor:
            w = z * 2
            return w

        y = x * 1
        y += 1
        y.mul_(2)
        y[0] = 5
        n = 0
        for i in range(3):
            n += i
        squares = [j * j for j in range(3)]
        if (m := n * 2) > 3:
            name = "large"
        z = inner(y)
        total, *rest = squares
        last = self.linear(z)
        last = last + 1
        return last


class Returns(nn.Module):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.value = value

    def forward(self, x: Tensor) -> Any:
        y = self.linear(x)
        y = y.relu()
        return self.value


class Streaming(nn.Module):
    """What it yields comes after the call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Iterator[Tensor]:
        for step in range(2):
            x = self.linear(x)
            x = x + step
            yield x


class Awaited(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    async def forward(self, x: Tensor, pause: Any) -> Tensor:
        y = x * 2
        await pause()
        z = self.linear(y)
        return z


class AsyncStreaming(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    async def forward(self, x: Tensor) -> AsyncIterator[Tensor]:
        for _ in range(2):
            x = self.linear(x)
            yield x
