"""Forwards that are not what the class defines: decorated, set on a module, made by TorchScript."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from shapetrace import ModelTracer
from tests.support.reference.values import same

X = torch.arange(4.0).reshape(2, 2)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return y


def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) * 2

    return wrapper


class Decorated(Plain):
    @doubled
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return y


class Inheriting(Decorated):
    pass


def wrapped_on_the_module() -> nn.Module:
    model = Plain()
    model.forward = doubled(model.forward)  # type: ignore[method-assign]
    return model


def partial_around_the_method() -> nn.Module:
    model = Plain()
    inner = model.forward

    def forward(module: nn.Module, *args: Any) -> Any:
        return inner(*args) * 2

    around = functools.update_wrapper(functools.partial(forward, model), inner)
    model.forward = around  # type: ignore[method-assign]
    return model


def partial_in_its_place() -> nn.Module:
    model = Plain()

    def forward(module: Plain, x: torch.Tensor) -> Any:
        y = module.linear(x)
        return y * 2

    model.forward = functools.partial(forward, model)  # type: ignore[method-assign]
    return model


@pytest.mark.parametrize(
    "made",
    [
        Decorated,
        Inheriting,
        wrapped_on_the_module,
        partial_around_the_method,
        partial_in_its_place,
    ],
)
def test_what_the_caller_gets_and_what_is_within(made: Callable[[], nn.Module]) -> None:
    model = nn.Sequential(made(), made())
    own = [dict(vars(module)) for module in model.modules()]
    with ModelTracer(model, ["*.forward", "*.forward.y"]) as tracer:
        model(X)
    assert tracer.problems == []
    assert [dict(vars(module)) for module in model.modules()] == own
    value = X
    for index, module in enumerate(model):
        within = module.get_submodule("linear")(value)
        value = module(value)
        assert same(tracer.results[f"{index}.forward"].values, [value.detach()])
        assert same(tracer.results[f"{index}.forward.y"].values, [within.detach()])


@pytest.mark.parametrize("made", [Decorated, wrapped_on_the_module, partial_around_the_method])
def test_the_model_itself(made: Callable[[], nn.Module]) -> None:
    model = made()
    with ModelTracer(model, ["forward", "forward.x"]) as tracer:
        expected = [model(X), model(-X)]
    assert tracer.problems == []
    assert same(tracer.results["forward"].values, [each.detach() for each in expected])
    assert tracer.results["forward"].iterations == [1, 2]
    assert same(tracer.results["forward.x"].values, [X, -X])


@pytest.fixture
def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer torches discourage it
        made = torch.jit.script(nn.Sequential(nn.Linear(2, 2)))
    assert isinstance(made, nn.Module)
    return made


def test_what_is_beside_torchscript(scripted: nn.Module) -> None:
    model = nn.Sequential(scripted, nn.ReLU())
    with ModelTracer(model, ["1", "**.forward"]) as tracer:
        expected = model(X)
    assert same(tracer.results["1"].values, [expected.detach()])


def test_torchscript_from_the_outside(scripted: nn.Module) -> None:
    model = nn.Sequential(nn.Linear(2, 2), scripted)
    with ModelTracer(model, ["1", "1.forward.input"]) as tracer:
        expected = model(X)
    assert tracer.problems == []
    assert same(tracer.results["1"].values, [expected.detach()])
    assert same(tracer.results["1.forward.input"].values, [model[0](X).detach()])


def test_torchscript_as_the_model(scripted: nn.Module) -> None:
    with ModelTracer(scripted, ["forward", "forward.input", "0.forward"]) as tracer:
        expected = [scripted(X), scripted(-X)]
    assert same(tracer.results["forward"].values, [each.detach() for each in expected])
    assert tracer.results["forward.input"].iterations == [1, 2]
    assert len(tracer.problems) == 1
    assert tracer.problems[0].endswith(
        "0.forward was not called from Python; TorchScript's own calls are not seen"
    )


def test_a_lambda_from_the_outside() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model[1].forward = lambda value: value * 3
    with ModelTracer(model, ["1", "1.forward.value"]) as tracer:
        expected = model(X)
    assert tracer.problems == []
    assert same(tracer.results["1"].values, [expected.detach()])
    assert same(tracer.results["1.forward.value"].values, [model[0](X).detach()])
