"""What torch changes in place without counting it: each change is captured all the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import optimizer as optimizers

from shapetrace import ModelTracer
from tests.support.reference.values import same


@pytest.fixture(autouse=True)
def chance() -> None:
    torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.frozen = nn.Linear(3, 3).requires_grad_(False)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = self.norm(x)
        y: torch.Tensor = self.frozen(self.linear(x))
        return y


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_parameters_after_steps_of_fused_optimizers(kind: Any) -> None:
    model = Net()
    optimizer = kind(model.parameters(), lr=0.1, fused=True)
    expected = []
    hooks = dict(optimizers._global_optimizer_post_hooks)
    paths = ["forward.self.linear.weight", "linear.forward.self.bias", "forward.self.frozen.weight"]
    with ModelTracer(model, paths) as tracer, ModelTracer(model, paths) as other:
        for _ in range(3):
            expected.append(model.linear.weight.detach().clone())
            optimizer.zero_grad()
            model(torch.randn(4, 3)).square().sum().backward()
            optimizer.step()
    assert same(tracer.results["forward.self.linear.weight"].values, expected)
    assert tracer.results["linear.forward.self.bias"].iterations == [1, 2, 3]
    assert tracer.results["forward.self.frozen.weight"].iterations == [1]
    assert other.results.keys() == tracer.results.keys()
    assert dict(optimizers._global_optimizer_post_hooks) == hooks


def test_running_statistics() -> None:
    model, reference = Net(), nn.BatchNorm1d(3)
    xs = [torch.randn(4, 3) for _ in range(2)]
    expected = [_mean_of(reference)]
    for x in xs:
        for _ in range(2):
            x = reference(x)
            expected.append(_mean_of(reference))
    path = "forward.self.norm.running_mean"
    with ModelTracer(model, [path]) as tracer:
        for x in xs:
            model(x)
        model.eval()
        model(xs[0])
    assert same(tracer.results[path].values, expected)
    assert tracer.results[path].iterations == [1, 1, 1, 2, 2]


def _mean_of(norm: nn.BatchNorm1d) -> torch.Tensor:
    assert norm.running_mean is not None
    return norm.running_mean.clone()
