"""Fingerprints of models that nobody here wrote: repeatable, unnoticed, and right about changes."""

from __future__ import annotations

import gc
import math
from functools import cache
from typing import Any

import pytest
import torch

import shapetrace
from shapetrace.events.fingerprint import Fingerprint, distance
from shapetrace.events.model import ModuleCall, Op, Trace
from tests.models import diffusers_cases, torch_nn_cases, transformers_cases
from tests.models.case import ModelCase, Program
from tests.models.observe import Results, plain, program_of
from tests.support.reference.remains import living_tensors

pytestmark = pytest.mark.models

CASES = transformers_cases.CASES + diffusers_cases.CASES + torch_nn_cases.CASES
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

FORWARD = ("bert", "gpt2", "llama", "vit", "whisper", "wav2vec2", "unet", "nn.LSTM")
"""Cases that only compute what goes from one layer to the next, in bfloat16 too."""
every_forward_case = pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in FORWARD], ids=lambda case: case.name
)


def looked_at(program: Program) -> tuple[Results, Trace]:
    with shapetrace.trace(program.model, fingerprint=True) as recording:
        results = Results.of(program)
    return results, recording.trace


@cache
def usual(case: ModelCase) -> tuple[Results, Trace]:
    return looked_at(program_of(case).fresh())


def prints_of(trace: Trace) -> list[Any]:
    calls: list[ModuleCall | Op] = [*trace.modules, *trace.ops]
    return [call.fingerprints for call in calls]


def pairs_of(one: Trace, other: Trace) -> list[tuple[Op, Fingerprint, Fingerprint]]:
    """What two runs of the same ops returned."""
    return [
        (op, *pair)
        for op, another in zip(one.ops, other.ops, strict=True)
        for ours, theirs in zip(op.fingerprints, another.fingerprints, strict=True)
        for pair in zip(ours.outputs, theirs.outputs, strict=True)
    ]


def coarse(case: ModelCase, dtype: torch.dtype) -> Program:
    """The same model and inputs in another dtype."""
    program = program_of(case).fresh()
    program.model.to(dtype)
    for name, given in program.inputs.items():
        if isinstance(given, torch.Tensor) and given.is_floating_point():
            program.inputs[name] = given.to(dtype)
    return program


@every_case
def test_the_model_notices_nothing(case: ModelCase) -> None:
    results, trace = usual(case)
    assert plain(case).difference(results) == ""
    assert not [entry for entry in trace.coverage if entry.reason.startswith("fault")]


@every_case
def test_equal_runs_have_equal_ones(case: ModelCase) -> None:
    _, trace = usual(case)
    _, again = looked_at(program_of(case).fresh())
    assert prints_of(trace) == prints_of(again)
    assert len(prints_of(trace)) > 3
    for op in trace.ops:
        notes = {each.note for call in op.fingerprints for each in call.outputs}
        assert notes <= {None, "not set to anything yet"}


@every_case
def test_every_call_that_returns_tensors_has_one(case: ModelCase) -> None:
    _, trace = usual(case)
    for op in trace.ops:
        if op.error is None and op.fingerprints:
            assert op.fingerprints[0].first == 1
            assert op.fingerprints[-1].last == op.count
    whole = [call for call in trace.modules if call.outputs and call.error is None]
    assert whole
    assert all(call.fingerprints and call.fingerprints[0].outputs for call in whole)


@every_case
def test_nothing_is_left_behind(case: ModelCase) -> None:
    usual(case)
    gc.collect()
    before = living_tensors()
    with shapetrace.trace(fingerprint=True) as recording:
        program_of(case).fresh()()
    gc.collect()
    assert living_tensors() == before
    assert recording.ops


@every_forward_case
def test_a_changed_weight_is_noticed(case: ModelCase) -> None:
    _, before = usual(case)
    program = program_of(case).fresh()
    # One that the outcome depends on, in the middle: a matrix between layers.
    names = [name for name, each in program.model.named_parameters() if each.dim() == 2]
    name = names[len(names) // 2]
    with torch.no_grad():
        program.model.get_parameter(name).mul_(1.02)
    _, after = looked_at(program)
    differing = [
        op for op, ours, theirs in pairs_of(before, after) if distance(ours, theirs).amount > 1
    ]
    assert differing, name
    paths = {call.id: call.path for call in before.modules}
    path = name.rpartition(".")[0]
    if path in paths.values():
        assert paths[differing[0].module or 0] == path


@every_forward_case
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_another_precision_agrees_and_an_error_in_it_does_not(
    case: ModelCase, dtype: torch.dtype
) -> None:
    _, exact = usual(case)
    name = str(dtype).removeprefix("torch.")

    def worst(program: Program) -> float:
        _, trace = looked_at(program)
        assert [op.name for op in trace.ops] == [op.name for op in exact.ops]
        pairs = pairs_of(exact, trace)
        return max(distance(ours, theirs, by_way_of=(name,)).amount for _, ours, theirs in pairs)

    assert worst(coarse(case, dtype)) < 1
    wrong = coarse(case, dtype)
    with torch.no_grad():
        for parameter in list(wrong.model.parameters())[:6]:
            parameter.mul_(1.5)
    found = worst(wrong)
    assert 1 < found < math.inf
