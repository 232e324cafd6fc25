"""torch's profiler lists the operators of the program, and none that we compute with."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

import shapetrace
from shapetrace import ModelTracer, Variable, auto_diff, var_tracker
from shapetrace.agent.summaries import summary_of
from shapetrace.panes import presentation
from shapetrace.saving.callbacks import stack_tensors
from shapetrace.saving.tally import Tally
from tests.support.torches import TORCH

TO_THE_END: dict[str, Any] = {} if TORCH < (2, 5) else {"acc_events": True}
"""Or else torch, from 2.5 on, warns that it forgets what was profiled."""


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x).relu()
        h = h + 1
        return h.sum()


def listed(model: nn.Module, also: Callable[[Tensor], object] = lambda value: None) -> Any:
    with profile(activities=[ProfilerActivity.CPU], **TO_THE_END) as profiler:
        loss = model(torch.ones(2, 4))
        loss.backward()
        with torch.no_grad():
            also(loss)
        model(torch.ones(3, 4))
    return Counter(event.name for event in profiler.events() or ())


@pytest.fixture(scope="module")
def plain() -> Any:
    found = listed(Model())
    assert found["aten::relu"] == 2
    return found


def captured(model: nn.Module) -> AbstractContextManager[object]:
    paths = ["forward", "forward.h", "layer"]
    return ModelTracer(model, [Variable(paths, post_gather_callbacks=[stack_tensors])])


AROUND: dict[str, Callable[[nn.Module], AbstractContextManager[object]]] = {
    "recorded": lambda model: shapetrace.trace(),
    "with fingerprints": lambda model: shapetrace.trace(fingerprint=True),
    "captured": captured,
}


@pytest.mark.parametrize("way", AROUND)
def test_a_program(plain: Any, way: str) -> None:
    model = Model()
    with AROUND[way](model):
        assert listed(model) == plain
    assert listed(Model()) == plain


def test_followed_variables(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    follow = var_tracker("h", handler=told.append, stats=True)
    monkeypatch.setattr(Model, "forward", auto_diff(file=io.StringIO())(follow(Model.forward)))
    assert listed(Model()) == plain
    assert told


def look_in_panes(value: Tensor) -> None:
    presentation(value)
    presentation([value])


@pytest.mark.parametrize(
    "look", [summary_of, look_in_panes, lambda value: Tally()("a", [value], [1], [0])]
)
def test_a_look_at_a_value(plain: Any, look: Callable[[Tensor], object]) -> None:
    assert listed(Model(), look) == plain


def test_a_look_within_another_is_silent_to_the_end() -> None:
    from shapetrace.capture.copies import copied, unseen

    with profile(activities=[ProfilerActivity.CPU], **TO_THE_END) as profiler:
        with unseen():
            copied(torch.ones(2))
            torch.zeros(2)
        torch.full((2,), 3)
    names = {event.name for event in profiler.events() or ()}
    assert "aten::full" in names
    assert not {"aten::zeros", "aten::clone", "aten::ones"} & names
