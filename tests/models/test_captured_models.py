"""Real models with a tracer on all of their modules, beside hooks that know nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from shapetrace import ModelTracer
from tests.models import diffusers_cases, torch_nn_cases, transformers_cases
from tests.models.case import ModelCase, tensors_of
from tests.models.observe import program_of
from tests.support.reference.values import outputs_of, same

pytestmark = pytest.mark.models

CASES = [*transformers_cases.CASES, *diffusers_cases.CASES, *torch_nn_cases.CASES]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def shown(case: ModelCase, *paths: str) -> tuple[list[Any], ModelTracer | None]:
    """Everything that a program shows, with a tracer or without."""
    program = program_of(case).fresh()
    tracer = ModelTracer(program.model, list(paths)) if paths else None
    if tracer is None:
        output = program()
    else:
        with tracer:
            output = program()
    gradients = [
        parameter.grad for parameter in program.model.parameters() if parameter.grad is not None
    ]
    state = [value.clone() for value in program.model.state_dict().values()]
    tensors = [tensor.detach() for tensor in tensors_of(output)]
    return [tensors, gradients, state, torch.get_rng_state()], tracer


@every_case
def test_a_captured_model_does_what_it_does_otherwise(case: ModelCase) -> None:
    plain, _ = shown(case)
    captured, tracer = shown(case, "**.forward", "**.hidden_states", "**.scores")
    assert tracer is not None
    assert same(plain, captured)
    assert tracer.results
    assert [line for line in tracer.problems if "may be missing" in line] == []


@every_case
def test_outputs_are_those_that_hooks_see(case: ModelCase) -> None:
    if case.fused:
        return  # Hooks would close the fused path.
    _, tracer = shown(case, "**.forward")
    assert tracer is not None
    program = program_of(case).fresh()
    with outputs_of(program.model) as heard:
        program()
    checked = 0
    for name, calls in heard.items():
        entry = tracer.results.get(f"{name}.forward" if name else "forward")
        if entry is None:
            # To generate, parts are called that are not called by the model then.
            assert "generate" in case.name, name
            continue
        assert agree(once(entry.values), once(calls)), name
        checked += 1
    assert checked > len(heard) / 2


def once(values: list[Any]) -> list[Any]:
    """Values without those that are as the one before: what has not changed is not saved again."""
    kept: list[Any] = []
    for value in values:
        if not kept or not agree(kept[-1], value):
            kept.append(value)
    return kept


def agree(captured: Any, reference: Any) -> bool:
    """Whether two values are equal, but for objects, of which a tracer keeps a few words."""
    if isinstance(captured, torch.Tensor) or isinstance(reference, torch.Tensor):
        return same(captured, reference)
    if isinstance(reference, dict):
        return (
            isinstance(captured, dict)
            and list(captured) == list(reference)
            and all(agree(captured[key], reference[key]) for key in reference)
        )
    if isinstance(reference, (list, tuple)):
        return len(captured) == len(reference) and all(map(agree, captured, reference))
    if isinstance(captured, str) and captured.startswith("<"):
        return captured == f"<{type(reference).__name__}>" or captured == reference
    return bool(captured == reference)
