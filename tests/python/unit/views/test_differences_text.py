"""The views of a comparison, from plain events."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from shapetrace.comparing.compare import compare
from shapetrace.comparing.comparison import Apart, Comparison
from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.events.model import ErrorInfo, Op, Tensor, Trace
from shapetrace.views.comparison_registry import COMPARISON_VIEWS, render_comparison
from shapetrace.views.difference_text import apart_text, changed_text
from shapetrace.views.styled import cells
from shapetrace.views.view_options import ViewOptions
from tests.python.unit.views.builder import FOLDER, Recording, f32
from tests.python.unit.views.expected import assert_expected

NAMES = ("good.json", "bad.json")

SOURCE = """\
import math

class Attention(Module):
    def forward(self, x):
        query, key = self.query(x), self.key(x)
        scores = query @ key.transpose(-2, -1) / math.sqrt(64)
        return self.dropout(scores.softmax(dim=-1))

class Net(Module):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

Net()(x)
"""

FORWARD = "Attention.forward"


def values(scale: float) -> CallFingerprints:
    numbers = tuple(scale * number for number in (0.5, -1.0, 0.25))
    return CallFingerprints(
        1, 1, (Fingerprint("float32", 96, scale / 9, scale, -scale, scale, numbers),)
    )


def attention_trace(source: str = SOURCE, layers: str = "layers") -> Trace:
    """Two layers of attention."""
    run = Recording({"model.py": source})
    x, scores = f32(2, 6, 16, name="x"), f32(2, 6, 6, name="scores")
    weight = Tensor((16, 16), "float32", name="weight", kind="Parameter")
    with run.module("", "Net", ("<module>", "Net()(x)"), [x], [x], names=["x"]):
        for layer in range(2):
            path = f"{layers}.{layer}"
            at = ("Net.forward", "layer(x)")
            with run.module(path, "Attention", at, [x], [scores], names=["x"]):
                for name in ("query", "key"):
                    place = (FORWARD, f"self.{name}(x)")
                    detail = "in_features=16, out_features=16, bias=False"
                    with run.module(
                        f"{path}.{name}", "Linear", place, [x], [x], detail=detail, names=["input"]
                    ):
                        run.op(
                            "torch.nn.functional.linear",
                            "linear({0}, {1})",
                            place,
                            [x, weight],
                            [x],
                            label="linear()",
                            direct=False,
                        )
                run.op(
                    "torch.Tensor.transpose",
                    "{0}.transpose(-2, -1)",
                    (FORWARD, "key.transpose(-2, -1)"),
                    [x],
                    [f32(2, 16, 6)],
                    label="transpose(-2, -1)",
                )
                run.op(
                    "torch.Tensor.matmul",
                    "{0} @ {1}",
                    (FORWARD, "query @ key.transpose(-2, -1)"),
                    [x, f32(2, 16, 6)],
                    [scores],
                    label="@",
                )
                if " / math" in source:
                    run.op(
                        "torch.Tensor.div",
                        "{0} / 8.0",
                        (FORWARD, "query @ key.transpose(-2, -1) / math.sqrt(64)"),
                        [scores],
                        [scores],
                        label="/",
                    )
                run.op(
                    "torch.Tensor.softmax",
                    "{0}.softmax(dim=-1)",
                    (FORWARD, "scores.softmax(dim=-1)"),
                    [scores],
                    [scores],
                    label="softmax(dim=-1)",
                )
    trace = run.trace()
    ops = tuple(dataclasses.replace(op, fingerprints=(values(1 + op.id / 7),)) for op in trace.ops)
    return dataclasses.replace(trace, ops=ops)


def changed(trace: Trace, **changes: dict[str, object]) -> Trace:
    """With something else said of the first op of each name."""
    ops: list[Op] = []
    for op in trace.ops:
        name = op.name.rpartition(".")[2]
        ops.append(dataclasses.replace(op, **changes.pop(name, {})))  # type: ignore[arg-type]
    return dataclasses.replace(trace, ops=tuple(ops))


def with_other_values(trace: Trace, begin: int) -> Trace:
    ops = tuple(
        dataclasses.replace(op, fingerprints=(values(3 + op.id),)) if op.id >= begin else op
        for op in trace.ops
    )
    return dataclasses.replace(trace, ops=ops)


def in_half_precision(trace: Trace) -> Trace:
    ops = tuple(
        dataclasses.replace(
            op,
            inputs=tuple(dataclasses.replace(t, dtype="bfloat16") for t in op.inputs),
            outputs=tuple(
                dataclasses.replace(t, dtype="bfloat16")
                for t in op.outputs
                if isinstance(t, Tensor)
            ),
        )
        for op in trace.ops
    )
    return dataclasses.replace(trace, ops=ops)


def cases() -> dict[str, Comparison]:
    good = attention_trace()
    unscaled = attention_trace(SOURCE.replace(" / math.sqrt(64)", ""))
    wide = (f32(2, 6, 12),)
    error = ErrorInfo("RuntimeError", "The size of tensor a (6) must match the size of b (16)")
    return {
        "alike": compare(good, attention_trace()),
        "unscaled": compare(good, unscaled),
        "shape": compare(good, changed(good, matmul={"outputs": wide}, softmax={"outputs": wide})),
        "arguments": compare(
            good,
            changed(good, softmax={"label": "softmax(dim=-2)", "name": "torch.Tensor.softmax"}),
        ),
        "values": compare(good, with_other_values(good, 9)),
        "error": compare(good, changed(good, matmul={"error": error, "outputs": ()})),
        "throughout": compare(good, in_half_precision(attention_trace(layers="blocks"))),
    }


CASES = cases()
FILES = [
    *((name, "text", 80, f"diff.{name}.80.txt") for name in CASES),
    ("values", "text", 120, "diff.values.120.txt"),
    ("unscaled", "markdown", 100, "diff.unscaled.md"),
    ("throughout", "markdown", 100, "diff.throughout.md"),
    ("values", "json", 100, "diff.values.json"),
]

COMPARED = tuple(file for *_, file in FILES)
"""The expected files that belong to these tests."""


@pytest.mark.parametrize(("name", "form", "width", "file"), FILES, ids=[f[3] for f in FILES])
def test_expected(name: str, form: str, width: int, file: str) -> None:
    options = ViewOptions(
        width=width, base=FOLDER, read_source={f"{FOLDER}/model.py": SOURCE.encode()}.get
    )
    text = render_comparison(CASES[name], form, NAMES, options)
    if form == "text":
        assert max(map(cells, text.splitlines())) <= width
    assert_expected(file, text)


def test_the_json_names_the_first_and_the_largest_by_their_position() -> None:
    for comparison in CASES.values():
        document = json.loads(render_comparison(comparison, "json", NAMES, ViewOptions()))
        assert document["differ"] == comparison.differ
        assert len(document["differences"]) == len(comparison.differences)
        if comparison.first is not None:
            assert comparison.differences[document["first"]] is comparison.first


@pytest.mark.parametrize("name", COMPARISON_VIEWS)
def test_every_view_says_something_of_every_comparison(name: str) -> None:
    for comparison in CASES.values():
        assert render_comparison(comparison, name, NAMES, ViewOptions(width=40))


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ("norm((16,), eps=1e-5)", "norm((16,), eps=1e-3)", "eps=1e-5 → eps=1e-3"),
        ("dropout(p=0.1, training=False)", "dropout(p=0.1)", "training=False → –"),
        ("view(2, 3)", "view(2, 4)", "3 → 4"),
        ("cat([a, b], 1)", "cat([a, c], 1)", "[a, b] → [a, c]"),
        ("relu()", "gelu()", "relu() → gelu()"),
        ("+", "-", "+ → -"),
        ("[:, 0]", "[:, 1]", "[:, 0] → [:, 1]"),
    ],
)
def test_only_the_arguments_that_differ_are_named(a: str, b: str, text: str) -> None:
    assert changed_text(a, b) == text


def test_the_runs_are_told_without_cutting_a_fact() -> None:
    good = attention_trace()
    long = dataclasses.replace(good.run, argv=("/home/ada/project/" + "long_name_" * 4 + ".py",))
    comparison = compare(good, dataclasses.replace(good, run=long))
    options = ViewOptions(width=80, base=FOLDER)
    lines = render_comparison(comparison, "text", NAMES, options).split("\n\n")[0].splitlines()
    assert max(map(cells, lines)) <= 80
    assert all("…" not in line for line in lines)
    assert sum(line.endswith(" ops") for line in lines) == 2


def test_a_long_word_on_values_leaves_the_columns_their_room() -> None:
    label = "kaiming_uniform_(a=2.23606797749979)"
    named: dict[str, dict[str, object]] = {"transpose": {"label": label}}
    good = changed(attention_trace(), **named)
    begin = next(op.id for op in good.ops if op.label == label)
    comparison = compare(good, with_other_values(good, begin))
    text = render_comparison(comparison, "text", NAMES, ViewOptions(width=80, base=FOLDER))
    call = next(line for line in text.splitlines() if line.startswith("  call "))
    assert call.count("kaiming_uniform_(a=2.236") == 2


@pytest.mark.parametrize("relative", [0.17, math.inf])
def test_checksums_are_not_said_to_be_apart(relative: float) -> None:
    apart = Apart(math.inf, relative, 0.0, "checksum", 2, 2, True)
    assert apart_text(apart) == "other whole numbers from call 2 on"
