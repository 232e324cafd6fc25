"""A program that is captured does what it does otherwise."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace import ModelTracer
from tests.python.unit.capture.models import Encoder, Structures
from tests.python.unit.capture.test_copies import Counting, CountingKernels
from tests.support.reference.values import same

X = torch.linspace(-1, 1, 60).reshape(2, 5, 6)
EVERYTHING = ["**", "**.self", "layers.*.forward.**", "layers.*.forward.x.shape"]


@pytest.fixture(autouse=True)
def chance() -> None:
    torch.manual_seed(0)


def trained(model: nn.Module, steps: int = 3) -> list[Any]:
    """Everything that training a model shows."""
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    shown: list[Any] = []
    for _ in range(steps):
        optimizer.zero_grad()
        x = X.clone().requires_grad_()
        output = model(x)
        loss = output.pow(2).sum()
        loss.backward()
        optimizer.step()
        shown += [output.detach().clone(), loss.item(), x.grad, x._version, output._version]
        shown += [copy.deepcopy(parameter.grad) for parameter in model.parameters()]
    shown += [parameter.detach().clone() for parameter in model.parameters()]
    return [*shown, torch.get_rng_state()]


def test_training_is_as_without_a_tracer() -> None:
    model = Encoder()
    plain = trained(copy.deepcopy(model))
    with ModelTracer(model, EVERYTHING) as tracer:
        captured = trained(model)
    assert same(plain, captured)
    assert tracer.problems == []
    assert len(tracer.results) > 40


@pytest.mark.parametrize(
    "setting",
    [
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        lambda: torch.autograd.set_detect_anomaly(True, check_nan=True),
        lambda: torch.device("cpu"),
    ],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_every_setting(setting: Callable[[], Any]) -> None:
    model = Encoder().eval()
    with setting():
        plain = model(X)
    with ModelTracer(model, EVERYTHING) as tracer, setting():
        captured = model(X)
    assert same(plain, captured)
    assert captured.requires_grad == plain.requires_grad
    assert tracer.problems == []
    assert same(tracer.results["forward"].values, [plain])
    assert not any(
        value.is_inference() or value.requires_grad
        for entry in tracer.results.values()
        for value in entry.values
        if isinstance(value, torch.Tensor)
    )


def test_changes_in_place_are_seen_in_inference_mode() -> None:
    model = Encoder(1).eval()
    with ModelTracer(model, ["layers.0.forward.y"]) as tracer, torch.inference_mode():
        model(X)
    first, second, _ = tracer.results["layers.0.forward.y"].values
    assert same(first + 1, second)


def test_the_programs_own_modes_see_its_own_calls_only() -> None:
    model = Encoder().eval()
    seen: list[list[Any]] = []
    for tracer in (None, ModelTracer(model, EVERYTHING)):
        with Counting() as functions, CountingKernels() as kernels:
            if tracer is None:
                model(X)
            else:
                with tracer:
                    model(X)
        seen.append([functions.calls, kernels.calls])
    assert seen[0] == seen[1]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["torch", "aten"])
def test_a_recording_sees_the_programs_own_calls_only(level: str) -> None:
    model = Encoder()

    def ops(trace: Any) -> list[Any]:
        return [(op.name, op.line, op.column, op.count, op.inputs, op.outputs) for op in trace.ops]

    with shapetrace.trace(level=level) as plain:
        model(X)
    with ModelTracer(model, EVERYTHING), shapetrace.trace(level=level) as inside:
        model(X)
    with shapetrace.trace(level=level) as outside, ModelTracer(model, EVERYTHING):
        model(X)
    assert ops(inside) == ops(plain)
    assert ops(outside) == ops(plain)
    assert [call.path for call in outside.modules] == [call.path for call in plain.modules]
    assert inside.coverage == outside.coverage == plain.coverage


def test_a_callback_that_computes_is_not_seen_either() -> None:
    model = Encoder().eval()

    def mean(name: str, value: Any, iteration: int) -> Any:
        return value.mean(dim=0)

    tracer = ModelTracer(model, ["forward"], pre_save_callbacks=[mean])
    with tracer, shapetrace.trace() as trace, Counting() as functions:
        output = model(X)
    assert not any(op.name.endswith("mean") for op in trace.ops)
    assert torch.Tensor.mean not in functions.calls
    assert same(tracer.results["forward"].values, [output.mean(dim=0)])


def test_what_a_callback_raises_comes_out_of_the_call_of_the_model() -> None:
    model = Encoder()

    def fail(name: str, value: Any, iteration: int) -> Any:
        raise LookupError(name)

    tracer = ModelTracer(model, ["forward", "head"], pre_save_callbacks=[fail])
    with pytest.raises(LookupError, match="head"), tracer:
        model(X)
    assert tracer.results == {}
    model(X)


# Torch 2.4 warns of its own way to unpickle a storage.
@pytest.mark.filterwarnings("ignore:You are using `torch.load`:FutureWarning")
def test_the_model_can_be_copied_and_saved_meanwhile() -> None:
    model = Encoder().eval()
    with ModelTracer(model, EVERYTHING):
        expected = model(X)
        copied = copy.deepcopy(model)
        again = pickle.loads(pickle.dumps(model))
        stream = io.BytesIO()
        torch.save(model, stream)
        assert same(copied(X), expected)
    assert same(again(X), expected)
    stream.seek(0)
    assert same(torch.load(stream, weights_only=False)(X), expected)
    assert not any("shapetrace" in str(value) for value in vars(copied).values())


class Warns(nn.Module):
    def helper(self) -> None:
        warnings.warn("from the caller", stacklevel=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.helper()
        warnings.warn("from outside", stacklevel=4)
        return x


def test_warnings_are_of_the_same_lines() -> None:
    model = Warns()
    places = []
    for tracer in (None, ModelTracer(model, ["forward", "helper.self"])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if tracer is None:
                model(X)
            else:
                with tracer:
                    model(X)
        places.append([(warning.filename, warning.lineno) for warning in caught])
    plain, captured = places
    assert captured[0] == plain[0]
    assert captured[1][0] == plain[1][0]


def test_hooks_run_once_and_in_the_same_order() -> None:
    model = Encoder(1)
    calls: list[str] = []
    model.register_forward_pre_hook(lambda *_: calls.append("before"))
    model.layers[0].register_forward_hook(lambda *_: calls.append("layer"))
    model.register_forward_hook(lambda module, inputs, output: output * 0)
    with ModelTracer(model, ["forward"]) as tracer:
        output = model(X)
    assert calls == ["before", "layer"]
    assert output.abs().sum() == 0
    assert tracer.results["forward"].values[0].abs().sum() > 0


def test_the_fused_path_stays_and_is_told_of() -> None:
    layer = nn.TransformerEncoderLayer(6, 2, 12, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with torch.no_grad(), CountingKernels() as plain:
        model(X)
    paths = ["forward", "layers.*", "layers.*.linear1.forward", "layers.*.self_attn.forward.query"]
    with ModelTracer(model, paths) as tracer, torch.no_grad(), CountingKernels() as kernels:
        model(X)
    assert kernels.calls == plain.calls
    assert list(tracer.results) == ["layers.0", "layers.1", "forward"]
    assert tracer.problems == [
        f"'{path}' captured nothing: {name} did not run; in evaluation torch computes a "
        "TransformerEncoder in one fused step (torch.backends.mha.set_fastpath_enabled(False) "
        "turns that off)"
        for path, name in (
            ("layers.*.linear1.forward", "layers.0.linear1.forward"),
            ("layers.*.self_attn.forward.query", "layers.0.self_attn.forward"),
        )
    ]


@pytest.mark.parametrize("level", ["vmap", "grad"])
def test_transforms_of_functions(level: str) -> None:
    model = Encoder(1).eval()

    def loss(x: torch.Tensor) -> torch.Tensor:
        return model(x[None]).sum()

    transformed: Any = torch.vmap(loss) if level == "vmap" else torch.func.grad(loss)
    given = X if level == "vmap" else X[0]
    plain = transformed(given)
    with ModelTracer(model, ["forward", "forward.x", "forward.mask"]) as tracer:
        assert same(transformed(given), plain)
        model(X)
    assert tracer.results["forward"].iterations == [2]
    assert tracer.results["forward.mask"].iterations == [1]
    assert "within a function transform such as vmap" in tracer.problems[0]


def test_fake_tensors() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = Encoder(1)
        with ModelTracer(model, ["forward", "forward.x"]) as tracer:
            assert model(torch.ones(1, 2, 6)).shape == (1, 2, 3)
    assert tracer.results == {}
    assert tracer.problems == [
        f"{name} is not captured: a FakeTensor has no data while a program is traced"
        for name in ("forward.x", "forward")
    ]


def test_exporting_and_tracing() -> None:
    model = Encoder(1).eval()
    plain = torch.export.export(model, (X,))
    with ModelTracer(model, EVERYTHING):
        exported = torch.export.export(model, (X,))
    assert str(exported.graph) == str(plain.graph)
    assert same(exported.module()(X), model(X))


def test_gradient_checkpointing_is_captured_once() -> None:
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(6, 6)

        def part(self, x: torch.Tensor) -> torch.Tensor:
            y = self.inner(x)
            return y.relu()

        def forward(self, x: torch.Tensor) -> Any:
            return checkpoint(self.part, x, use_reentrant=False)

    model = Model()
    with ModelTracer(model, ["part.y", "inner", "forward"]) as tracer:
        for _ in range(2):
            model(X.clone().requires_grad_()).sum().backward()
            checkpoint(model, X.clone().requires_grad_(), use_reentrant=False).sum().backward()
    for entry in tracer.results.values():
        assert entry.iterations == [1, 2, 3, 4]


@pytest.mark.slow
def test_graph_and_memory_are_let_go() -> None:
    import gc
    import weakref

    model = Structures()
    references = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: torch.Tensor) -> Any:
            y = x * 2
            references.append(weakref.ref(y))
            out = self.inner(y)
            references.append(weakref.ref(out["loss"]))
            return out

    watched = Watched()
    with ModelTracer(watched, ["**", "forward.out.**"]):
        watched(torch.ones(2, 2, requires_grad=True))
        gc.collect()
        assert [reference() for reference in references] == [None] * 2
