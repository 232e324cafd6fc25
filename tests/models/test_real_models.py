"""Models that nobody here wrote: traced exactly, unchanged, with nothing left behind.

Each is at random initialisation and tiny, and nothing is downloaded.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import shapetrace
from tests.models import diffusers_cases, torch_nn_cases, transformers_cases
from tests.models.case import ModelCase, tensors_of
from tests.models.observe import (
    assigned_lines,
    plain,
    program_of,
    reference_calls,
    reference_modules,
    traced,
)
from tests.support.reference.calls import Call, calls_of_trace, difference
from tests.support.reference.claims import judge
from tests.support.reference.modules import module_difference, modules_of_trace
from tests.support.reference.remains import Surroundings, living_tensors, survivors

pytestmark = pytest.mark.models

ENOUGH = 95.0
"""Percent of the executed tensor-assigning lines that must have a value."""

CASES = transformers_cases.CASES + diffusers_cases.CASES + torch_nn_cases.CASES
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_open_case = pytest.mark.parametrize(
    "case", [case for case in CASES if not case.fused], ids=lambda case: case.name
)
every_fused_case = pytest.mark.parametrize(
    "case", [case for case in CASES if case.fused], ids=lambda case: case.name
)


@every_open_case
def test_calls_are_those_of_the_reference(case: ModelCase) -> None:
    _, trace = traced(case)
    assert difference(reference_calls(case), calls_of_trace(trace)) == ""


@every_open_case
def test_module_calls_are_those_that_hooks_see(case: ModelCase) -> None:
    _, trace = traced(case)
    actual = modules_of_trace(trace, program_of(case).model)
    assert module_difference(reference_modules(case), actual) == ""


@every_case
def test_results_are_bit_identical(case: ModelCase) -> None:
    results, _ = traced(case)
    assert plain(case).difference(results) == ""


@every_case
def test_lines_get_their_values_and_none_a_wrong_one(case: ModelCase) -> None:
    _, trace = traced(case)
    verdict = judge(trace, assigned_lines(case), case.own)
    assert verdict.lines > 0
    assert not verdict.wrong, str(verdict)
    assert verdict.percentage >= ENOUGH, str(verdict)


@every_fused_case
def test_fused_paths_are_stepped_around(case: ModelCase) -> None:
    _, trace = traced(case)
    fused = [call for call in trace.modules if call.note is not None]
    places = {(call.file, call.line, call.column) for call in fused}

    def outside(calls: Counter[Call]) -> Counter[Call]:
        kept = [call for call in calls if (call.file, call.line, call.column) not in places]
        return Counter({call: calls[call] for call in kept})

    assert len(places) == 1, "one call of the program's own goes into a fused path"
    assert difference(outside(reference_calls(case)), outside(calls_of_trace(trace))) == ""
    inside = calls_of_trace(trace).total() - outside(calls_of_trace(trace)).total()
    assert inside == 0, "a mode would have closed the fused path"
    assert [entry for entry in trace.coverage if "fused" in entry.reason]


@every_case
def test_nothing_is_left_behind(case: ModelCase) -> None:
    plain(case)
    recordings: list[Any] = []
    changes: list[list[str]] = []

    def run(watched: bool) -> dict[str, list[Any]]:
        program = program_of(case).fresh()
        before = Surroundings.now(program.model)
        if watched:
            with shapetrace.trace(program.model) as recording:
                output = program()
            recordings.append(recording)
        else:
            output = program()
        changes.append(before.changes(Surroundings.now(program.model)))
        return {
            "module": list(program.model.modules()),
            "parameter": list(program.model.parameters()),
            "input": list(tensors_of(program.inputs)),
            "output": list(tensors_of(output)),
        }

    kept_by_itself = survivors(lambda: run(watched=False))
    tensors = living_tensors()
    assert survivors(lambda: run(watched=True)) == kept_by_itself
    assert living_tensors() == tensors
    assert changes[1] == changes[0], "some models put hooks on themselves, as they would untraced"
    assert recordings[0].ops


def test_a_model_dies_while_its_recording_lives() -> None:
    """The check above compares with a plain run; this one allows nothing to stay."""
    recordings = []

    def run() -> dict[str, list[Any]]:
        case = torch_nn_cases.CASES[0]
        program = program_of(case).fresh()
        with shapetrace.trace(program.model) as recording:
            output = program()
        recordings.append(recording)
        return {"model": [program.model], "output": list(tensors_of(output))}

    assert survivors(run) == []
    assert recordings[0].modules[0].class_name == "SequenceTagger"
