"""Whatever of ours reads the numbers of a tensor, each as a function that says what came of it."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

import shapetrace
from shapetrace import H5PYSaverCallback, ModelTracer, Variable
from shapetrace.agent.summaries import summary_of
from shapetrace.capture import value_changes
from shapetrace.capture.copies import CannotCopyError, copied
from shapetrace.capture.results import ResultEntry, Round
from shapetrace.compat import tensor_tracker
from shapetrace.compat.tensortrace import trace_model
from shapetrace.panes import children, presentation
from shapetrace.panes.child_entries import ChildGroup
from shapetrace.ranks.packing import pack, unpack
from shapetrace.recorder.values.fingerprints import Fingerprints
from shapetrace.saving.callbacks import stack_padded_tensors, stack_tensors
from shapetrace.saving.tally import Tally
from shapetrace.variables.describing import describe
from shapetrace.variables.differences import differences
from shapetrace.variables.memories import remember
from shapetrace.variables.value_statistics import with_statistics

Then: TypeAlias = Callable[[], object]
CONSUMERS: dict[str, Callable[[Any, Then], str]] = {}


def consumer(function: Callable[[Any, Then], object]) -> None:
    """Add one, by its name."""
    name = function.__name__
    assert name not in CONSUMERS, name

    def consume(value: Any, then: Then) -> str:
        return str(function(value, then))

    CONSUMERS[name] = consume


class Model(torch.nn.Module):
    def __init__(self, then: Then) -> None:
        super().__init__()
        self.then = then

    def forward(self, x: Any) -> Any:
        a = x
        self.then()
        b: Any = [x]
        a = {"x": x}
        b = a  # noqa: F841 (captured)
        return x


def shape_of(name: str, value: Any, iteration: int) -> str:
    return type(value).__name__


@consumer
def copying(value: Any, then: Then) -> str:
    try:
        first = type(copied(value)).__name__
    except CannotCopyError as error:
        first = f"refused: {error}"
    then()
    try:
        copied(value)
    except CannotCopyError:
        pass
    return first


@consumer
def copying_a_container(value: Any, then: Then) -> object:
    copied([value, {"a": (value,)}])
    then()
    copied((value,))
    return "copied"


@consumer
def noticing_changes(value: Any, then: Then) -> object:
    seen = [
        value_changes.seen(value),
        value_changes.seen([value]),
        value_changes.seen(value_changes.Uncounted(value)),
    ]
    kept = value_changes.seen(value).lasting()
    then()
    found = [each.is_still(value) for each in seen]
    seen[1].is_still([value])
    seen[2].is_still(value_changes.Uncounted(value))
    return found[:1], kept is None or kept.is_still(value)


@consumer
def tracing_a_model(value: Any, then: Then) -> object:
    paths = ["forward", *(f"forward.{name}" for name in ("x", "a", "b", "x.0", "b.x", "x.grad"))]
    with ModelTracer(
        Model(then), [Variable(paths, post_gather_callbacks=[stack_tensors])]
    ) as tracer:
        tracer.model(value)
    refused = [line for line in tracer.problems if line.startswith("forward.x is not captured: ")]
    return refused[0].removeprefix("forward.x ") if refused else "captured"


@consumer
def tracing_a_model_with_callbacks(value: Any, then: Then) -> object:
    variable = Variable(["forward.x", "forward.b"], pre_save_callbacks=[shape_of])
    with ModelTracer(Model(then), [variable]) as tracer:
        tracer.model(value)
    return sorted(tracer.results)


@consumer
def tracing_one_call(value: Any, then: Then) -> object:
    _, tracer = trace_model(Model(then), ["forward.a"], value)
    return sorted(tracer.results)


@consumer
def summarizing(value: Any, then: Then) -> object:
    first = summary_of(value)
    then()
    summary_of(value)
    return first.statistics is not None


@consumer
def showing_in_panes(value: Any, then: Then) -> object:
    presentation(value)
    presentation([value])
    first = sum(1 for _ in _opened(value, 0))
    then()
    list(_opened(value, 0))
    return first


def _opened(value: Any, depth: int) -> Any:
    for entry in children(value):
        yield entry
        is_storage = isinstance(entry.value, torch.UntypedStorage)
        if depth < 3 and (isinstance(entry.value, (ChildGroup, torch.Tensor)) or is_storage):
            yield from _opened(entry.value, depth + 1)


@consumer
def following_a_variable(value: Any, then: Then) -> object:
    before = remember(value, wants_numbers=True)
    inside = remember([value])
    then()
    before.is_still(value)
    inside.is_still([value])
    after = remember(value, wants_numbers=True)
    differences(before, after, True)
    differences(before, after, False, 0.1)
    described = with_statistics(describe(value), value)
    return described.statistics is not None


@consumer
def printing_a_value(value: Any, then: Then) -> object:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        tensor_tracker._log_change("├─", "value", (value,))
        then()
        tensor_tracker._log_change("├─", "value", {"a": value})
    return "value" in printed.getvalue()


@consumer
def watching_a_function(value: Any, then: Then) -> object:
    told: list[Any] = []

    @shapetrace.var_tracker("a", handler=told.append, stats=True)
    def function(x: Any) -> Any:
        a = x
        then()
        a = [x]
        return a

    function(value)
    return bool(told)


@consumer
def making_a_fingerprint(value: Any, then: Then) -> object:
    looks = Fingerprints().look([value])
    then()
    Fingerprints().look(value)
    if not looks:
        return "no tensor"
    return looks[0][-1] if isinstance(looks[0], tuple) else "awaited"


@consumer
def recording(value: Any, then: Then) -> object:
    for level in ("torch", "aten"):
        with (
            shapetrace.trace(level=level, fingerprint=True) as trace,
            contextlib.suppress(Exception),
        ):
            Model(then)(value)
            value.detach()
        trace.render()
    return "recorded"


@consumer
def counting(value: Any, then: Then) -> object:
    tally = Tally()
    tally("a", [value], [1], [0])
    then()
    tally("a", [value, [value]], [2, 3], [0, 0])
    return tally.summary("a").names[0].parts[0].leaves[0].statistics is not None


@consumer
def saving_to_a_file(value: Any, then: Then) -> object:
    with H5PYSaverCallback(f"{os.getpid()}.h5", overwrite=True) as saver:
        saver("a", [value], [1], [0])
        with contextlib.suppress(RuntimeError):
            then()  # An array that shows a tensor's memory keeps it from being freed.
        saver("b", [value, [value]], [1, 2], [0, 0])
        return "".join(saver.problems[:1])


@consumer
def stacking(value: Any, then: Then) -> object:
    rows = [value, value]
    stack_tensors("a", rows)
    then()
    stack_tensors("a", [value, value])
    stack_padded_tensors("a", [value, value])
    return len(rows) == 1


@consumer
def sending_to_another_rank(value: Any, then: Then) -> object:
    problems = []
    for _ in range(2):
        entries = {"a": ResultEntry([1, 2], [0, 0], [value, [value]])}
        pieces, found = pack(Round(1, 0, "train", entries))
        unpack(memoryview(b"".join(pieces)))
        problems += [text for text, _ in found]
        then()
    return problems[:1]
