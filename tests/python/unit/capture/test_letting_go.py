"""A model whose values are captured goes when nobody else has it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from shapetrace import ModelTracer
from shapetrace.capture.finding import ModelFinder
from shapetrace.capture.paths import parse
from tests.python.unit.capture.models import Attention, Encoder

pytestmark = pytest.mark.slow

X = torch.ones(2, 5, 6)
PATHS = [
    *("**", "**.self", "layers.*.forward.self.query.weight", "head.forward.input.0"),
    *("forward.self.layers.0", "layers.0.attend.nothing", "layers.0.scaled"),
]


@contextmanager
def capturing(model: nn.Module, paths: list[str]) -> Iterator[ModelTracer]:
    """As the command line does: the model is the program's alone."""
    with ModelTracer(model, paths) as tracer:
        tracer.let_model_go()
        del model
        yield tracer


@pytest.mark.parametrize("change", [lambda model: model, nn.DataParallel])
def test_a_model_goes_and_what_was_captured_stays(
    change: Callable[[nn.Module], nn.Module],
) -> None:
    kept, gone = Encoder(), change(Encoder())
    parts = [*gone.modules(), *gone.parameters()]
    references = [weakref.ref(each) for each in parts]
    with ModelTracer(kept, PATHS) as expected:
        kept(X)
    del parts
    with capturing(gone, PATHS) as tracer:
        gone(X)
        gone = kept
        gc.collect()
        assert [reference() for reference in references] == [None] * len(references)
    assert tracer.results.keys() == expected.results.keys()
    assert tracer.problems == expected.problems
    assert any("has no 'nothing'" in line for line in tracer.problems)


def test_another_model_in_its_place_is_not_taken_for_it() -> None:
    model = Encoder(1)
    with capturing(model, ["forward", "layers.*", "layers.*.forward.x"]) as tracer:
        model(X)
        for _ in range(3):
            # The next one may well get the numbers of its modules.
            model = Encoder(1)
            model(X)
    assert {tuple(entry.iterations) for entry in tracer.results.values()} == {(1,)}


def test_a_module_with_the_number_of_one_that_is_gone_is_not_taken_for_it() -> None:
    model = Encoder(1)
    with ModelTracer(model, ["layers.*.forward.y", "forward"]) as tracer:
        model(X)
        number = id(model.layers[0])
        model.layers[0] = nn.Identity()
        gc.collect()
        # All free memory of this size is used up at some time, what has become free too.
        bare = [Attention.__new__(Attention) for _ in range(20_000)]
        [same] = [each for each in bare if id(each) == number]
        same.__init__()  # type: ignore[misc]  # the memory first, then the module
        model.layers[0] = same
        model(X)
    assert set(tracer.results["layers.0.forward.y"].iterations) == {1}
    assert tracer.results["forward"].iterations == [1, 2]


def test_why_a_path_brought_nothing_is_told_of_a_model_that_is_gone() -> None:
    layer = nn.TransformerEncoderLayer(6, 2, 12, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    reference = weakref.ref(model)
    with capturing(model, ["layers.*.linear1.forward"]) as tracer:
        with torch.no_grad():
            model(X)
        del model
        gc.collect()
        assert reference() is None
    [line] = tracer.problems
    assert "in evaluation torch computes a TransformerEncoder in one fused step" in line


def test_modules_that_are_not_the_model_are_let_go() -> None:
    found: list[nn.Module] = []
    finder = ModelFinder([parse("forward.nothing")], found.append)
    finder.start()
    try:
        for make in (nn.ReLU, lambda: nn.Linear(6, 2), Encoder):
            module = make()
            reference = weakref.ref(module)
            module(X)
            del module
            gc.collect()
            assert reference() is None
    finally:
        finder.stop()
    assert found == []
    assert len(finder.misses) == 2
