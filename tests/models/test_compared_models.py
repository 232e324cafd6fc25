"""Two runs of a real model, one with a planted fault: the fault is the first difference."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.comparing.compare import compare
from shapetrace.comparing.comparison import Comparison, Difference
from shapetrace.events.model import ModuleCall, Trace
from shapetrace.views.source_files import read_source
from tests.models import diffusers_cases, torch_nn_cases, transformers_cases
from tests.models.case import ModelCase, Program
from tests.models.observe import program_of

pytestmark = pytest.mark.models

CASES = [
    case
    for case in transformers_cases.CASES + diffusers_cases.CASES + torch_nn_cases.CASES
    if not case.fused
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

ONLY_SINGLE = {"mixtral"}
"""Models that have kernels for no other precision."""

MOST_POSITIONS = 4
"""Modules of one model that a fault is planted in, evenly spread."""


def recorded(case: ModelCase, change: Callable[[Program], object]) -> Trace:
    """A run with fingerprints, of the model with something changed."""
    program = program_of(case).fresh()
    with torch.no_grad():
        change(program)
    with shapetrace.trace(program.model, fingerprint=True) as recording:
        program()
    return recording.trace


@cache
def good(case: ModelCase) -> Trace:
    """A run with fingerprints, of the model as it is."""
    return recorded(case, lambda program: None)


def place_of(difference: Difference | None) -> str:
    """The path of the module that a difference is in."""
    assert difference is not None
    event = difference.a or difference.b
    if isinstance(event, ModuleCall):
        return event.path
    module = difference.module_a or difference.module_b
    return "" if module is None else module.path


def leaves(trace: Trace, model: nn.Module) -> list[str]:
    """The modules that were called, and have parameters of their own that nobody had before."""
    called = dict.fromkeys(call.path for call in trace.modules)
    modules = dict(model.named_modules())
    found: list[str] = []
    seen: set[int] = set()
    for path in called:
        module = modules.get(path)
        if module is None or list(module.children()):
            continue
        own = {id(p) for p in module.parameters(recurse=False) if p.is_floating_point()}
        if own and not own & seen:
            found.append(path)
        seen |= own
    return found[:: max(1, -(-len(found) // MOST_POSITIONS))]


@every_case
def test_two_runs_of_one_model_are_alike(case: ModelCase) -> None:
    comparison = compare(good(case), recorded(case, lambda program: None))
    assert comparison.differences == ()
    assert not comparison.differ
    assert comparison.alike > 0


@every_case
def test_changed_weights_are_found_where_they_are_used(case: ModelCase) -> None:
    places = leaves(good(case), program_of(case).model)
    assert places
    found = {}
    for path in places:

        def scaled(program: Program, path: str = path) -> None:
            for parameter in program.model.get_submodule(path).parameters(recurse=False):
                parameter.mul_(1.5).add_(0.01)

        found[path] = place_of(compare(good(case), recorded(case, scaled)).first)
    assert found == {path: path for path in places}


def in_double_precision(program: Program) -> None:
    program.model.double()
    for name, value in program.inputs.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            program.inputs[name] = value.double()


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "training" not in case.name and case.name not in ONLY_SINGLE],
    ids=lambda case: case.name,
)
def test_other_precision_throughout_is_said_once(case: ModelCase) -> None:
    comparison = compare(good(case), recorded(case, in_double_precision))
    dtypes = [(item.a, item.b) for item in comparison.throughout if item.kind == "dtype"]
    assert dtypes == [("float32", "float64")]
    assert "values" not in {item.kind for item in comparison.differences}


ATTENTION = """\
import math
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(16, 16)
        self.key = nn.Linear(16, 16)
        self.value = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16, eps=1e-5)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x):
        query, key, value = self.query(x), self.key(x), self.value(x)
        scores = query @ key.transpose(-2, -1) / math.sqrt(16)
        weights = scores.softmax(dim=-1)
        mixed = self.dropout(weights @ value)
        return self.norm(x + mixed)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""

FAULTS = [
    (" / math.sqrt(16)", "", ("only", "/", None)),
    ("key.transpose(-2, -1)", "key.transpose(1, 2).flip(-1)", ("arguments", None, None)),
    ("softmax(dim=-1)", "softmax(dim=-2)", ("arguments", "softmax(dim=-1)", "softmax(dim=-2)")),
    ("eps=1e-5", "eps=1e-3", ("arguments", "layers.0.norm", "layers.0.norm")),
    ("Dropout(0.0)", "Dropout(0.5)", ("arguments", "layers.0.dropout", "layers.0.dropout")),
    ("x + mixed", "mixed", ("only", "+", None)),
    ("weights @ value", "weights @ value * 1.01", ("only", None, "*")),
    (
        "self.query(x), self.key(x)",
        "self.key(x), self.query(x)",
        ("values", "transpose(-2, -1)", "transpose(-2, -1)"),
    ),
    (
        "weights @ value",
        "(weights.bfloat16() @ value.bfloat16()).float()",
        ("only", None, "bfloat16()"),
    ),
    ("scores.softmax(dim=-1)", "scores.relu()", ("op", "softmax(dim=-1)", "relu()")),
]


def run_source(path: Path, text: str) -> Trace:
    """Record the model that a file defines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    scope: dict[str, Any] = {"__name__": "model"}
    exec(compile(text, str(path), "exec"), scope)
    torch.manual_seed(0)
    model = scope["Net"]()
    x = torch.randn(2, 6, 16)
    with torch.no_grad(), shapetrace.trace(model, fingerprint=True) as recording:
        model(x)
    return recording.trace


def compared(folder: Path, changed: str) -> Comparison:
    """What is said of the model and of another text of it, in another folder."""
    before = run_source(folder / "good" / "model.py", ATTENTION)
    after = run_source(folder / "bad" / "model.py", changed)
    return compare(before, after, read_source=read_source)


def label(difference: Difference, side: str) -> str | None:
    event = difference.a if side == "a" else difference.b
    if event is None:
        return None
    return event.path if isinstance(event, ModuleCall) else event.label


@pytest.mark.parametrize(("before", "after", "expected"), FAULTS, ids=[f[1][:20] for f in FAULTS])
def test_planted_faults_in_the_source(
    before: str, after: str, expected: tuple[str, str | None, str | None], tmp_path: Path
) -> None:
    assert ATTENTION.count(before) == 1
    first = compared(tmp_path, ATTENTION.replace(before, after)).first
    assert first is not None
    kind, ours, theirs = expected
    assert first.kind == kind
    if ours is not None or theirs is not None:
        assert (label(first, "a"), label(first, "b")) == (ours, theirs)
    assert place_of(first).startswith("layers.0"), "the first layer has the fault already"


def test_a_refactoring_without_consequences(tmp_path: Path) -> None:
    changed = ATTENTION.replace("layers", "blocks").replace("Attention", "SelfAttention")
    changed = "# A comment that moves everything.\n\n" + changed
    comparison = compared(tmp_path, changed)
    assert comparison.differences == ()
    names = {(item.a, item.b) for item in comparison.throughout}
    assert names == {("layers", "blocks"), ("Attention", "SelfAttention")}
    assert comparison.alike == comparison.compared > 40


def test_half_precision_in_one_layer_is_found_there(tmp_path: Path) -> None:
    changed = ATTENTION.replace(
        "x = layer(x)",
        "x = layer.bfloat16()(x.bfloat16()).float() if layer is self.layers[2] else layer(x)",
    )
    first = compared(tmp_path, changed).first
    assert first is not None
    assert (first.kind, label(first, "b")) == ("only", "bfloat16()")
    assert first.alike_before == 2 * 11
