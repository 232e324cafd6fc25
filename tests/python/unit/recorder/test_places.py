"""Each name that a value is stored to has the range of just this name, on every Python."""

from __future__ import annotations

import dis
from pathlib import Path

import pytest

from shapetrace.events.model import Trace
from shapetrace.recorder.assignments import Assignments
from shapetrace.recorder.patterns import Called
from shapetrace.views.shapes import value_text
from tests.support.recorder import Traced

STATEMENTS = {
    "values, places = x.max(1)": {"values f32[2]", "places i64[2]"},
    "for index, row in enumerate(x): row.sum()": {"row f32[3]"},
    "((p, q), r), s = (x.max(1), x.T), x[0]": {"p f32[2]", "q i64[2]", "r f32[3,2]", "s f32[3]"},
    "p, q = x, x.T; p, q = q, p": {"q f32[3,2]", "p f32[3,2]", "q f32[2,3]"},
    "p = q = x.T": {"p f32[3,2]", "q f32[3,2]"},
    "p, q, r, s = x.T, x, x[0], x[1]": {"p f32[3,2]", "q f32[2,3]", "r f32[3]", "s f32[3]"},
    "first, *rest = x.unbind(0)": {"first f32[3]", "rest [f32[3]]"},
    "ü, ß = x.max(1)": {"ü f32[2]", "ß i64[2]"},
    "with pair(x) as (p, q): p.sum()": {"p f32[2,3]", "q f32[3,2]"},
    "match x, x.T:\n        case (p, q): p.sum()": {"p f32[2,3]", "q f32[3,2]"},
    "match [x, x.T, x.T]:\n        case [p, *q]: p.sum()": {
        "p f32[2,3]",
        "q [f32[3,2], f32[3,2]]",
    },
    "match x.T:\n        case p as q: p.sum()": {"p f32[3,2]", "q f32[3,2]"},
}

PROGRAM = """
import contextlib

@contextlib.contextmanager
def pair(t):
    yield t, t.T

def main():
    x = torch.ones(2, 3)
    {}
    torch.zeros(1)
"""


def names_in(trace: Trace, path: Path, function: str) -> set[str]:
    """The variables of a function, each as the source has it at its place."""
    lines = [line.encode() for line in path.read_text("utf-8").splitlines()]
    found = set()
    for each in trace.variables:
        if each.function == function and each.kind == "assignment" and each.name != "x":
            place = lines[each.line - 1][each.column : each.end_column].decode()
            assert place == each.name, (place, each.line)
            found.add(f"{each.name} {value_text(each.tensor)}")
    return found


@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_name_has_the_range_of_just_this_name(
    traced: Traced, tmp_path: Path, statement: str
) -> None:
    trace = traced(PROGRAM.format(statement))
    assert names_in(trace, tmp_path / "program.py", "main") == STATEMENTS[statement]


def test_what_a_library_function_called_is_not_the_value_of_its_call(traced: Traced) -> None:
    trace = traced(
        """
        import functools

        def main():
            parts = [torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 5)]
            return functools.reduce(torch.matmul, parts)
        """
    )
    assert [(op.label, op.direct) for op in trace.ops[3:]] == [("matmul()", False)] * 2


def test_a_comparison_that_is_asked_about_is_told(traced: Traced) -> None:
    trace = traced(
        """
        def main():
            x = torch.ones(2, 3)
            if x.sum() > 0:
                x = x.T
            return max(x[0, 0], x[0, 1])
        """
    )
    told = [(op.form, op.direct) for op in trace.ops]
    assert told[1:4] == [("sum({0})", True), ("{0} > 0", True), ("__bool__({0})", True)]
    assert told[-2:] == [("gt({0}, {1})", False), ("__bool__({0})", False)]


def test_a_function_in_a_local_variable_is_known_wherever_it_is_called() -> None:
    def function(x, block):
        return x + block(x) + block(block(x))

    code = function.__code__
    calls = [each.offset for each in dis.get_instructions(code) if each.opname == "CALL"]
    assignments = Assignments(code)
    assert [assignments.called_at(each) for each in calls] == [Called("block", False)] * 3
