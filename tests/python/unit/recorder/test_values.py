"""Whose value it is: direct calls, names of inputs, variables; silence where none is known."""

from __future__ import annotations

from pathlib import Path

import pytest

import shapetrace
from shapetrace.events.model import Trace
from shapetrace.views.shapes import value_text
from tests.support.recorder import Program, Traced, unindented


def variables_of(trace: Trace) -> str:
    """Each variable with the source of its line, in order of lines."""
    rows = set()
    for each in trace.variables:
        lines = Path(each.file).read_text(encoding="utf-8").splitlines()
        kind = "parameter" if each.kind == "parameter" else "assigned"
        rows.add(
            (
                each.line,
                each.name,
                f"{kind} {each.name}: {value_text(each.tensor)} | {lines[each.line - 1].strip()}",
            )
        )
    return "".join(f"{row}\n" for _, _, row in sorted(rows))


def test_parameters_and_assignments(traced: Traced) -> None:
    trace = traced(
        """
        x = torch.ones(2, 3)

        def plain(t, scale=2):
            return (t * scale).sum(0)

        def main():
            work(x, x.T, key=x[0])

        def work(a, b, *, key, unused=None):
            c = a @ b
            d = plain(a)
            e, f = c.split(1, dim=1)
            (g, h), i = torch.max(a, 0), key
            total = 0
            for row in a:
                total = total + row.sum()
            if total > 5:
                branch = a + 1
            else:
                branch = b + 1
            numbers = c.tolist()
            if (walrus := d * 2).sum() > 100:
                never = d
            last = [c, d][0] + walrus[0]
            return last
        """
    )
    assert variables_of(trace) == unindented(
        """
        parameter t: f32[2,3] | def plain(t, scale=2):
        parameter a: f32[2,3] | def work(a, b, *, key, unused=None):
        parameter b: f32[3,2] | def work(a, b, *, key, unused=None):
        parameter key: f32[3] | def work(a, b, *, key, unused=None):
        assigned c: f32[2,2] | c = a @ b
        assigned d: f32[3] | d = plain(a)
        assigned e: f32[2,1] | e, f = c.split(1, dim=1)
        assigned f: f32[2,1] | e, f = c.split(1, dim=1)
        assigned g: f32[3] | (g, h), i = torch.max(a, 0), key
        assigned h: i64[3] | (g, h), i = torch.max(a, 0), key
        assigned i: f32[3] | (g, h), i = torch.max(a, 0), key
        assigned row: f32[3] | for row in a:
        assigned total: f32[] | total = total + row.sum()
        assigned branch: f32[2,3] | branch = a + 1
        assigned walrus: f32[3] | if (walrus := d * 2).sum() > 100:
        assigned last: f32[2,2] | last = [c, d][0] + walrus[0]
        """
    )


def test_a_modules_output_is_the_value_of_its_call(traced: Traced) -> None:
    trace = traced(
        """
        class Pair(nn.Module):
            def forward(self, x):
                return x, {"twice": x * 2}

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.pair, self.layer = Pair(), nn.Linear(3, 4)

            def forward(self, x):
                same, other = self.pair(x)
                y = self.layer(other["twice"])
                return y

        net, x = Net(), torch.ones(2, 3)

        def main():
            out = net(x)
        """
    )
    text = variables_of(trace)
    assert "assigned y: f32[2,4] | y = self.layer(other" in text
    assert "assigned out: f32[2,4] | out = net(x)" in text
    assert "assigned same: f32[2,3] | same, other = self.pair(x)" in text
    linear = next(op for op in trace.ops if op.name.endswith("linear"))
    assert not linear.direct
    layer = next(call for call in trace.modules if call.path == "layer")
    assert (layer.line, layer.column, layer.end_column) == (linear.line, 12, 38)


NAMES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.zeros(3))

    def forward(self, x):
        hidden = self.layer(x) * self.scale
        return torch.cat([hidden, x + self.shift], dim=0) @ made.T

net = nn.Sequential(Net())
given = torch.ones(2, 3)
made = torch.ones(2, 3)

def main():
    return net(given)
"""


def test_inputs_carry_the_names_the_program_has_for_them(traced: Traced) -> None:
    trace = traced(NAMES)
    named = {op.name.rsplit(".", 1)[-1]: [tensor.name for tensor in op.inputs] for op in trace.ops}
    assert named["linear"][1:] == ["0.layer.weight", "0.layer.bias"]
    assert named["mul"][1] == "0.scale"
    assert named["add"] == ["x", "0.shift"]
    assert named["cat"][0] == "hidden"
    (layer,) = [call for call in trace.modules if call.path == "0.layer"]
    assert [getattr(value, "name", None) for value in layer.inputs] == ["x"]


@pytest.mark.parametrize(
    ("body", "claimed"),
    [
        ("y = pick(x * 2, x[0])", None),
        ("y = sum([x, x])", None),
        ("y = list(map(torch.neg, [x]))[0]", None),
        ("y = max(x[0], x[1], key=lambda row: row.sum())", None),
        ("y = (x * 2).tolist()", None),
        ("y = x * 2 if flag else x", "f32[2,3]"),
        ("y = (x * 2, x[0])[1]", None),
        ("y = [row * 2 for row in x]", None),
        ("y = (lambda t: t[0])(x * 2)", None),
        ("y = holder.tensor", None),
        ("y = x.shape", None),
        ("y = torch.ones(2).numpy()", None),
        ("y = x.sum() > 3 and x", None),
        ("y = -x", "f32[2,3]"),
        ("y = x[0] + 1", "f32[3]"),
        ("y = z = x + 1", "f32[2,3]"),
        ("y = x; y += 1", "f32[2,3]"),
        ("y: object = x @ x.T", "f32[2,2]"),
    ],
)
def test_value_of_an_assignment_is_claimed_only_where_it_is_known(
    body: str, claimed: str | None, tmp_path: Path
) -> None:
    """Nothing reads the variable afterwards, so only the statement itself can tell."""
    program = Program.write(
        f"""
        from types import SimpleNamespace

        def pick(first, second):
            return second

        x, flag = torch.ones(2, 3), True
        holder = SimpleNamespace(tensor=x)

        def main(x=x):
            {body}
        """,
        tmp_path,
    )
    recording = shapetrace.trace()
    outcome = program.run(recording)
    assert outcome.traceback == ""
    found = {value_text(each.tensor) for each in recording.variables if each.name == "y"}
    assert found == ({claimed} - {None})


def test_generators_and_other_functions_never_lend_their_values(traced: Traced) -> None:
    trace = traced(
        """
        x = torch.ones(2, 3)

        def rows(t):
            for row in t:
                doubled = row * 2
                yield doubled

        def apply(function, value):
            result = function(value)
            return result

        def main():
            first = next(rows(x))
            second = apply(torch.sum, x)
            third = apply(lambda t: t[:, :1], x)
            return first + second + third
        """
    )
    assert variables_of(trace) == unindented(
        """
        parameter t: f32[2,3] | def rows(t):
        assigned row: f32[3] | for row in t:
        assigned doubled: f32[3] | doubled = row * 2
        parameter value: f32[2,3] | def apply(function, value):
        assigned result: f32[] | result = function(value)
        assigned first: f32[3] | first = next(rows(x))
        assigned second: f32[] | second = apply(torch.sum, x)
        parameter t: f32[2,3] | third = apply(lambda t: t[:, :1], x)
        assigned third: f32[2,1] | third = apply(lambda t: t[:, :1], x)
        """
    )
