"""What a tracer captures: paths, values, iterations, modes and intervals."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from shapetrace import CaptureError, ModelTracer, PathError, Variable
from shapetrace.capture.results import ResultEntry
from tests.python.unit.capture.models import Encoder, Returns, Steps, Structures
from tests.support.reference.values import calls_of, inputs_of, outputs_of, same


@pytest.fixture(autouse=True)
def chance() -> None:
    torch.manual_seed(0)


def capture(model: nn.Module, paths: list[str], *calls: Any, **options: Any) -> dict[str, Any]:
    """What is captured of some calls, each with one argument."""
    with ModelTracer(model, paths, **options) as tracer:
        for call in calls:
            model(call)
    assert tracer.problems == []
    return tracer.results


def values(model: nn.Module, path: str, *calls: Any) -> list[Any]:
    """The values of one path."""
    found: list[Any] = capture(model, [path], *calls)[path].values
    return found


X = torch.arange(4.0).reshape(2, 2)


def test_outputs_equal_those_that_hooks_see() -> None:
    model = Encoder()
    inputs = [torch.randn(2, 5, 6) for _ in range(3)]
    paths = ["forward", "layers.*", "layers.*.query", "layers.*.drop.forward", "head"]
    with outputs_of(model) as heard:
        results = capture(model, paths, *inputs)
    reference = {"forward": heard[""], "head": heard["head"]}
    for number in range(2):
        reference[f"layers.{number}"] = heard[f"layers.{number}"]
        reference[f"layers.{number}.query"] = heard[f"layers.{number}.query"]
        reference[f"layers.{number}.drop.forward"] = heard[f"layers.{number}.drop"]
    assert results.keys() == reference.keys()
    for name, entry in results.items():
        assert same(entry.values, reference[name]), name
        assert entry.iterations == [1, 2, 3]
        assert entry.ranks == [0, 0, 0]


def test_arguments_equal_those_that_hooks_see() -> None:
    model = Encoder()
    mask = torch.ones(3)
    with inputs_of(model) as heard, ModelTracer(model, ["forward.x", "**.mask"]) as tracer:
        model(torch.randn(1, 2, 6), mask=mask)
    results = tracer.results
    assert same(results["forward.x"].values[:1], [heard[""][0][0][0]])
    assert list(results) == [
        "forward.x",
        "forward.mask",
        "layers.0.forward.mask",
        "layers.1.forward.mask",
    ]
    assert same(results["layers.1.forward.mask"].values, [mask])


def test_helpers_equal_what_a_patch_sees() -> None:
    from tests.python.unit.capture import models

    model = Encoder()
    with calls_of(models, "scaled") as heard:
        model(torch.ones(1, 3, 6))
    torch.manual_seed(0)
    model = Encoder()
    paths = [
        "layers.*.scaled",
        "layers.*.scaled.q",
        "layers.*.scaled.scale",
        "layers.*.scaled.scores",
    ]
    results = capture(model, paths, torch.ones(1, 3, 6))
    assert len(results) == 8
    torch.manual_seed(0)
    model = Encoder()
    with calls_of(models, "scaled") as heard, outputs_of(model):
        model(torch.ones(1, 3, 6))
    for number, (arguments, _, result) in enumerate(heard):
        assert same(results[f"layers.{number}.scaled"].values, [result])
        assert same(results[f"layers.{number}.scaled.q"].values, arguments[:1])
        assert results[f"layers.{number}.scaled.scale"].values == [2.0]
        first, second = results[f"layers.{number}.scaled.scores"].values
        assert same(first / 2.0, second)
        assert same(second, result)


def test_every_change_of_a_variable() -> None:
    results = capture(Steps(), ["forward.*"], X)
    shown = {
        name.removeprefix("forward."): [
            value.tolist() if isinstance(value, torch.Tensor) else value for value in entry.values
        ]
        for name, entry in results.items()
    }
    assert shown["self"] == ["<Steps>"]
    assert shown["y"] == [
        [[0, 1], [2, 3]],
        [[1, 2], [3, 4]],
        [[2, 4], [6, 8]],
        [[5, 5], [6, 8]],
    ]
    assert shown["i"] == [0, 1, 2]
    assert shown["n"] == [0, 1, 3]
    assert shown["j"] == [0, 1, 2]
    assert shown["m"] == [6]
    assert shown["squares"] == [[0, 1, 4]]
    assert shown["name"] == ["large"]
    assert shown["total"] == [0]
    assert shown["rest"] == [[1, 4]]
    assert shown["inner"] == ["<function Steps.forward.<locals>.inner>"]
    assert len(shown["last"]) == 2


def test_what_the_last_line_of_a_function_assigns() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> None:
            self.note(x)

        def note(self, x: torch.Tensor) -> None:
            if x.sum() > 0:
                y = x * 2  # noqa: F841

    assert same(values(Model(), "note.y", X), [X * 2])


def test_a_function_in_a_function() -> None:
    results = capture(Steps(), ["forward.inner", "forward.inner.*", "inner.w"], X)
    assert list(results) == ["forward.inner.z", "forward.inner.w", "inner.w", "forward.inner"]
    assert same(results["forward.inner"].values, results["inner.w"].values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("forward.batch.mask", ["mask"]),
        ("forward.batch.ids.3", ["ids.3"]),
        ("forward.batch.ids.*", ["ids.a", "ids.3"]),
        ("forward.batch.'a.b'", ["'a.b'"]),
        ("forward.batch.*", ["mask", "ids", "'a.b'"]),
        ("forward.batch.**", ["", "mask", "ids", "ids.a", "ids.3", "'a.b'"]),
        ("forward.outs.0", ["0"]),
        ("forward.outs.*", ["0", "1", "2"]),
        ("forward.outs.2.1", ["2.1"]),
        ("forward.pair.left", ["left"]),
        ("forward.pair.1.deep.0", ["1.deep.0"]),
        ("forward.pair.*", ["left", "right"]),
        ("forward.out.hidden.0", ["hidden.0"]),
        ("forward.out.*", ["logits", "hidden"]),
        ("forward.largest.values", ["values"]),
        ("forward.h.shape", ["shape"]),
        ("forward.x.1", ["1"]),
        ("forward.self.linear.weight", ["linear.weight"]),
        ("forward.self.scale", ["scale"]),
        ("forward.self.linear.in_features", ["linear.in_features"]),
    ],
)
def test_what_is_in_a_value(path: str, names: list[str]) -> None:
    base = ".".join(path.split(".")[:2])
    results = capture(Structures(), [path], X)
    assert list(results) == [".".join(filter(None, [base, name])) for name in names]


def test_values_of_what_is_in_a_value() -> None:
    model = Structures()
    results = capture(model, ["forward.outs.*", "forward.h", "forward.x.1"], X)
    h = model.linear(X)
    assert same(results["forward.outs.1"].values, [(h * 2).detach()])
    assert results["forward.outs.2"].values[0][1] == "text"
    assert same(results["forward.x.1"].values, [X[1]])


def test_a_tensor_is_not_taken_apart_by_a_wildcard() -> None:
    with ModelTracer(Structures(), ["forward.x.*"]) as tracer:
        tracer.model(X)
    assert tracer.results == {}
    assert tracer.problems == ["'forward.x.*' captured nothing: forward.x has no '*'; it is empty"]


def test_outputs_that_hold_tensors_with_gradients() -> None:
    model = Structures()
    (output,) = values(model, "forward", X)
    assert output["all"][1].logits.grad_fn is None
    assert output["all"][4].values.grad_fn is None if hasattr(output["all"][4], "values") else True
    (attended, weights) = capture(Encoder(1), ["layers.0.attend"], torch.ones(1, 2, 6))[
        "layers.0.attend"
    ].values[0]
    assert attended.shape == (1, 2, 2, 3)
    assert weights.grad_fn is None


@pytest.mark.parametrize("value", [None, 3, "text", (), [None], {}])
def test_models_that_return_no_tensor(value: Any) -> None:
    results = capture(Returns(value), ["forward", "forward.y"], X, X)
    assert results["forward"].values == [value]
    assert results["forward"].iterations == [1]
    assert results["forward.y"].iterations == [1, 1, 2, 2]


def test_temporaries_whose_memory_is_used_again() -> None:
    class Model(nn.Module):
        def helper(self, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for i in range(6):
                self.helper(x + i)
            return x

    with torch.no_grad():
        results = capture(Model(), ["helper", "helper.x"], torch.zeros(3))
    for name in ("helper", "helper.x"):
        assert [value.tolist() for value in results[name].values] == [[i] * 3 for i in range(6)]


def test_what_has_not_changed_is_not_saved_again() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
            self.register_buffer("table", torch.arange(2))

        table: torch.Tensor

        def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
            weight, table = self.weight, self.table
            y = x * weight + table
            return y

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ModelTracer(model, ["forward", "forward.*", "forward.self.weight"]) as tracer:
        for number in range(4):
            loss = model(X, 0.5).sum()
            if number == 1:
                loss.backward()
                optimizer.step()
    iterations = {name: entry.iterations for name, entry in tracer.results.items()}
    assert iterations == {
        "forward.self": [1],
        "forward.self.weight": [1, 3],
        "forward.x": [1],
        "forward.scale": [1],
        "forward.weight": [1, 3],
        "forward.table": [1],
        "forward.y": [1, 2, 3, 4],
        "forward": [1, 2, 3, 4],
    }


def test_a_variable_that_is_none_after_a_tensor() -> None:
    class Sometimes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = x * 2 if x.sum() > 0 else None
            return x if mask is None else x * mask

    results = capture(Sometimes(), ["forward.mask"], X, -X, X)
    assert results["forward.mask"].iterations == [1, 2, 3]
    assert results["forward.mask"].values[1] is None


def test_training_and_evaluation_are_counted_apart() -> None:
    model = Returns(None)
    with ModelTracer(model, ["forward.x"]) as tracer:
        assert (tracer.current_training_iteration, tracer.current_evaluation_iteration) == (0, 0)
        model(X + 0)
        model.eval()
        model(X + 1)
        model(X + 2)
        model.train()
        model(X + 3)
        assert (tracer.current_training_iteration, tracer.current_evaluation_iteration) == (2, 2)
    entry = tracer.results["forward.x"]
    assert entry.iterations == [1, 1, 2, 2]
    assert [int(value[0, 0]) for value in entry.values] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "firsts"), [({"train_only": True}, [0, 2]), ({"eval_only": True}, [1])]
)
def test_one_mode_only(options: dict[str, Any], firsts: list[int]) -> None:
    model = Returns(None)
    with ModelTracer(model, ["forward.x"], **options) as tracer:
        model(X)
        model.eval()(X + 1)
        model.train()(X + 2)
    assert [int(value[0, 0]) for value in tracer.results["forward.x"].values] == firsts


def test_variables_have_intervals_callbacks_and_modes_of_their_own() -> None:
    gathered: list[tuple[str, list[int]]] = []

    def note(name: str, values: list[Any], iterations: list[int], ranks: list[int]) -> None:
        gathered.append((name, list(iterations)))

    third = Variable(
        ["forward.x"], trace_interval=3, gather_interval=6, post_gather_callbacks=[note]
    )
    every = Variable(["forward.y"], gather_interval=4, post_gather_callbacks=[note])
    evaluated = Variable(["forward.x"], mode="eval")
    model = Returns(None)
    with ModelTracer(model, [third, every, evaluated]) as tracer:
        for number in range(7):
            model(X + number)
        model.eval()(X)
    assert third.results["forward.x"].iterations == [3, 6]
    assert every.results["forward.y"].iterations == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 1, 1]
    assert evaluated.results["forward.x"].iterations == [1]
    assert gathered == [
        ("forward.y", [1, 1, 2, 2, 3, 3, 4, 4]),
        ("forward.x", [3, 6]),
        ("forward.y", [5, 5, 6, 6, 7, 7]),
        ("forward.y", [1, 1]),
    ]
    assert tracer.results["forward.x"] == third.results["forward.x"]


def test_nothing_is_left_over() -> None:
    model = Returns(None)
    with ModelTracer(model, ["forward.x"], gathering_interval=2) as tracer:
        for number in range(5):
            model(X + number)
            waiting = tracer.local_results.get("forward.x", ResultEntry()).iterations
            assert waiting == ([number + 1] if number % 2 == 0 else [])
    assert tracer.results["forward.x"].iterations == [1, 2, 3, 4, 5]
    assert tracer.local_results == {}


class Failing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if x.sum() < 0:
            raise RuntimeError("negative")
        z = y + 1
        return z


def test_an_iteration_that_fails_keeps_what_it_has_captured() -> None:
    model = Failing()
    with pytest.raises(RuntimeError, match="negative") as plain_error:
        model(-X)
    with ModelTracer(model, ["forward.*", "forward"], gathering_interval=4) as tracer:
        model(X)
        with pytest.raises(RuntimeError, match="negative") as error:
            model(-X)
        model(X + 1)
    assert tracer.results["forward.y"].iterations == [1, 2, 3]
    assert tracer.results["forward.z"].iterations == [1, 3]
    assert tracer.results["forward"].iterations == [1, 3]

    def frames(raised: Any) -> list[tuple[str, int]]:
        return [(str(entry.path), entry.lineno) for entry in raised.traceback][1:]

    assert frames(error) == frames(plain_error)


def test_an_error_that_ends_the_block_keeps_what_was_captured() -> None:
    model = Failing()
    tracer = ModelTracer(model, ["forward.y", "forward.nothing"], gathering_interval=9)
    with pytest.raises(RuntimeError, match="negative"), tracer:
        model(-X)
    assert tracer.results["forward.y"].iterations == [1]
    assert len(tracer.problems) == 1


def test_the_model_is_left_as_it_was() -> None:
    model = Encoder()
    before = {
        id(module): (dict(vars(module)), dict(vars(type(module)))) for module in model.modules()
    }
    code = {module: type(module).forward.__code__ for module in model.modules()}
    with ModelTracer(model, ["**", "**.q"]):
        model(torch.ones(1, 2, 6))
    for module in model.modules():
        attributes, functions = before[id(module)]
        assert vars(module).keys() == attributes.keys()
        assert dict(vars(type(module))) == functions
        assert type(module).forward.__code__ is code[module]


def test_two_tracers_that_end_in_any_order() -> None:
    model = Returns(None)
    first, second = ModelTracer(model, ["forward.x"]), ModelTracer(model, ["forward.y"])
    functions = dict(vars(Returns))
    first.__enter__()
    model(X)
    second.__enter__()
    model(X + 1)
    first.__exit__(None, None, None)
    model(X + 2)
    second.__exit__(None, None, None)
    model(X + 3)
    assert first.results["forward.x"].iterations == [1, 2]
    assert second.results["forward.y"].iterations == [1, 1, 2, 2]
    assert dict(vars(Returns)) == functions


def test_a_tracer_goes_on_where_it_was_left() -> None:
    model = Returns(None)
    tracer = ModelTracer(model, ["forward.x"])
    with tracer:
        model(X)
        with pytest.raises(CaptureError, match="running already"):
            tracer.__enter__()
    model(X + 1)
    with tracer:
        model(X + 2)
    assert tracer.results["forward.x"].iterations == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("forward",), "variables are a list: write ['forward'], not 'forward'"),
        ((["forward", "a..b"],), "path 'a..b', character 3"),
        (([3],), "a path is a text"),
        ((["forward"], 0), "trace_interval must be a whole number from 1 on, not 0"),
        ((["forward"], 1, 1.5), "gathering_interval must be a whole number from 1 on, not 1.5"),
        ((None,), "variables are a list of paths, not None"),
        ((["forward"], 1, 1, print), "pre_save_callbacks are a list: write [print]"),
        ((["forward"], 1, 1, (), (), print), "post_gather_callbacks are a list: write [print]"),
        ((["forward"], 1, 1, (), (), (), (), True, True), "leave nothing to capture"),
    ],
)
def test_what_cannot_be_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(CaptureError) as refusal:
        ModelTracer(nn.Linear(2, 2), *arguments)
    assert message in str(refusal.value)


def test_a_text_for_the_paths_of_a_variable_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"paths are a list: write \['forward.x'\]"):
        Variable("forward.x")
    with pytest.raises(CaptureError, match="mode must be"):
        Variable(["forward"], mode="test")  # type: ignore[arg-type]
    with pytest.raises(CaptureError, match=r"must be an nn\.Module, not str"):
        ModelTracer("forward", ["forward"])  # type: ignore[arg-type]
    with pytest.raises(PathError):
        Variable(["forward."])


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (
            "layrs.*.forward",
            (
                "'layrs.*.forward' matches nothing: the model (Encoder) has no 'layrs'; "
                "nearest there: layers, forward, head"
            ),
        ),
        (
            "layers.7.forward",
            "'layers.7.forward' matches nothing: module 'layers' has no '7'; nearest there: 0, 1",
        ),
        (
            "layers.*.spilt.x",
            (
                "'layers.*.spilt.x' matches nothing: module 'layers.0' has no 'spilt'; "
                "nearest there: split, scaled, drop, attend, query"
            ),
        ),
        (
            "layers.*.forward.qq",
            (
                "'layers.*.forward.qq' matches nothing: function 'layers.0.forward' has no 'qq'; "
                "nearest there: q, self, x, mask, k"
            ),
        ),
        (
            "layers.0.forward.weights.foo",
            (
                "'layers.0.forward.weights.foo' captured nothing: layers.0.forward.weights has no "
                "'foo'; it is empty"
            ),
        ),
        (
            "**.weigths",
            (
                "'**.weigths' matches nothing: no module of this model has anything called "
                "'weigths'; nearest there: weights, width, length, kwargs, args"
            ),
        ),
        (
            "layers.**.qq",
            (
                "'layers.**.qq' matches nothing: nothing in 'layers' is called 'qq'; "
                "nearest there: q, query, self, x, batch"
            ),
        ),
        (
            "**.attend.qq",
            (
                "'**.attend.qq' matches nothing: function 'layers.0.attend' has no 'qq'; "
                "nearest there: q, self, k, weights"
            ),
        ),
        ("head.extra_repr", "'head.extra_repr' captured nothing: head.extra_repr did not run"),
    ],
)
def test_a_path_that_brings_nothing_says_so(
    path: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Encoder()
    with ModelTracer(model, [path, "forward"]) as tracer:
        model(torch.ones(1, 2, 6))
    assert tracer.problems == [problem]
    assert capsys.readouterr().err == f"shapetrace: {problem}\n"
    assert list(tracer.results) == ["forward"]


def test_the_nearest_key_is_named() -> None:
    with ModelTracer(Structures(), ["forward.batch.ids.aa"]) as tracer:
        tracer.model(X)
    (problem,) = tracer.problems
    assert problem.startswith("'forward.batch.ids.aa' captured nothing: ")
    assert problem.endswith("forward.batch.ids has no 'aa'; nearest there: a, 3")


def test_a_model_that_is_not_called_says_so() -> None:
    model = Encoder()
    with ModelTracer(model, ["forward", "layers.*"]) as tracer:
        model.head(torch.ones(6))
    assert tracer.problems == [
        "nothing was captured: the model was not called within the tracer's block"
    ]


def test_a_module_that_others_call_says_so() -> None:
    model = Encoder()
    model(torch.ones(1, 2, 6))
    with ModelTracer(Returns(None), ["forward", "linear"], trace_interval=3) as tracer:
        tracer.model(X)
    assert tracer.problems == [
        "'forward' captured nothing: there were fewer than 3 iterations",
        "'linear' captured nothing: there were fewer than 3 iterations",
    ]


def test_a_module_that_is_there_twice_has_its_first_name() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model.append(model[0])
    results = capture(model, ["*.forward", "2"], X)
    assert list(results) == ["0.forward", "2", "1.forward"]
    assert len(results["0.forward"].values) == len(results["2"].values) == 2


def test_modules_in_plain_lists_are_called_by_whom_they_are_in() -> None:
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = [nn.Linear(2, 2) for _ in range(2)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.hidden:
                x = layer(x)
            return x

    results = capture(Listed(), ["forward.x", "forward.self.hidden.1.weight"], X)
    assert len(results["forward.x"].values) == 3
    assert results["forward.self.hidden.1.weight"].values[0].shape == (2, 2)


def test_a_model_without_a_forward_of_its_own_source() -> None:
    namespace: dict[str, Any] = {"nn": nn}
    source = (
        "class Made(nn.Module):\n def forward(self, x, scale=2):\n  y = x * scale\n  return y\n"
    )
    exec(compile(source, "<made>", "exec"), namespace)
    model = namespace["Made"]()
    with ModelTracer(model, ["forward", "forward.x", "forward.scale", "forward.y"]) as tracer:
        model(X)
        model(X, scale=3)
    assert [value.tolist() for value in tracer.results["forward"].values] == [
        (X * 2).tolist(),
        (X * 3).tolist(),
    ]
    assert tracer.results["forward.scale"].values == [2, 3]
    assert (
        "forward cannot be followed for y: the source of <made> is not there" in tracer.problems[0]
    )
    assert "__call__" not in vars(type(model))
