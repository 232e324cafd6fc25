"""The independent second opinion: that it agrees on what to look at, and that it can say no."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from shapetrace.events.model import DimensionRange
from shapetrace.recorder import kinds
from tests.support.reference import mode as reference_mode
from tests.support.reference.calls import Call, TensorFacts, calls_of_trace, difference
from tests.support.reference.claims import judge
from tests.support.reference.programs import traced, watched
from tests.support.reference.remains import Surroundings, survivors

PROGRAM = """\
def main():
    first = x * 2
    for step in range(2):
        first, second = first[:, 1:], b[
            step :
        ]
    number = first.sum().item()
    third = [first, second]
    first: object = second
    second += 1
    return third


main()
"""


def call(*sizes: object, name: str = "torch.neg") -> Call:
    facts = (TensorFacts(sizes, "float32"),)
    return Call(name, "program.py", 1, 1, 0, 9, True, facts, facts, None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(dedent(PROGRAM), encoding="utf-8")
    return file


def test_both_leave_out_the_same() -> None:
    assert reference_mode.METADATA_QUERIES == kinds.METADATA_QUERIES
    assert reference_mode.RENDERINGS == kinds.RENDERINGS
    assert reference_mode.TENSOR_GETTERS == kinds.TENSOR_GETTERS


def test_every_difference_is_told() -> None:
    reference = Counter({call(2, 3): 2, call(4): 1})
    assert difference(reference, reference) == ""
    assert difference(reference, Counter({call(2, 3): 1, call(4): 1, call(5): 1})) == (
        "3 calls in the reference, 3 in the trace\n"
        "missing 1 × torch.neg program.py:1:0-1:9 direct (float32[2,3]) -> float32[2,3]\n"
        "surplus 1 × torch.neg program.py:1:0-1:9 direct (float32[5]) -> float32[5]"
    )
    for changed in (
        replace(call(4), column=1),
        replace(call(4), direct=False),
        replace(call(4), outputs=()),
        replace(call(4), error="RuntimeError"),
    ):
        assert difference(reference, Counter({call(2, 3): 2, changed: 1})) != ""


def test_a_widened_call_stands_for_those_in_its_range() -> None:
    reference = Counter({call(size, 3): 1 for size in range(20)})
    widened = call(DimensionRange(0, 19), 3)
    assert difference(reference, Counter({widened: 20})) == ""
    assert difference(reference, Counter({widened: 19})) != ""
    assert difference(reference, Counter({widened: 21})) != ""
    assert difference(reference, Counter({call(DimensionRange(1, 19), 3): 20})) != ""


def test_lines_are_watched_statement_by_statement(path: Path) -> None:
    watch = watched(path)
    seen = {
        f"{target.line}-{target.end_line} {target.name}": " ".join(sorted(map(str, facts)))
        for target, facts in watch.tensors.items()
    }
    assert seen == {
        "2-2 first": "float32[2,3]",
        "4-6 first": "float32[2,1] float32[2,2]",
        "4-6 second": "float32[2] float32[3]",
        "9-9 first": "float32[2]",
        "10-10 second": "float32[2]",
    }
    assert {target.name for target in watch.executed} == {"first", "second", "number", "third"}
    assert [target.name for target in watch.containers] == ["third"]


def test_a_right_trace_is_found_right_and_a_wrong_one_wrong(path: Path) -> None:
    trace, watch = traced(path), watched(path)
    right = judge(trace, watch, (str(path),))
    assert right.wrong == ()
    assert right.lines == 4
    nothing = judge(replace(trace, ops=(), variables=()), watch, (str(path),))
    assert (nothing.covered, nothing.percentage) == (0, 0.0)
    lying = replace(
        trace, ops=tuple(replace(op, outputs=op.inputs, result=None) for op in trace.ops)
    )
    assert judge(lying, watch, (str(path),)).wrong == (
        "program.py:4 first is said to be float32[2,3], was float32[2,1] or float32[2,2]",
        "program.py:7 number is said to be float32[], was no tensor",
    )


def test_what_stays_behind_is_named() -> None:
    model = torch.nn.Linear(2, 2)
    before = Surroundings.now(model)
    assert before.changes(Surroundings.now(model)) == []
    hook = model.register_forward_hook(lambda *_: None)
    with reference_mode.ReferenceMode():
        changed = before.changes(Surroundings.now(model))
    hook.remove()
    assert [change.split(":")[0] for change in changed] == [
        "function_modes",
        "hooks_and_attributes",
    ]


@pytest.mark.slow
def test_what_lives_on_is_named() -> None:
    kept = []

    def run() -> dict[str, list[torch.Tensor]]:
        kept.append(torch.ones(1))
        return {"kept": [kept[0]], "free": [torch.ones(1)]}

    assert survivors(run) == ["kept"]


def test_counts_of_the_trace_are_expanded(path: Path) -> None:
    trace = traced(path)
    assert calls_of_trace(trace).total() == sum(op.count for op in trace.ops)
