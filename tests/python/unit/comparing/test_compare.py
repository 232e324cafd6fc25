"""What is said of two traces: throughout, ranges, counts, errors, and which difference is first."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import shapetrace
from shapetrace._errors import TraceFileError
from shapetrace.cli.diff import KIND_NAMES
from shapetrace.comparing.compare import compare
from shapetrace.comparing.comparison import KINDS, Comparison
from shapetrace.events import codec
from shapetrace.events.model import Coverage, DimensionRange, ErrorInfo, Op, Tensor, Trace
from shapetrace.events.trace_loading import Sharing, load_calls, load_pair
from shapetrace.views.comparison_registry import render_comparison
from shapetrace.views.difference_text import notes_of
from shapetrace.views.view_options import ViewOptions
from tests.python.unit.comparing.worlds import Call, World, random_world


def kinds(comparison: Comparison) -> list[str]:
    return [difference.kind for difference in comparison.differences]


def of(*calls: Call, passes: int = 1, with_values: bool = False) -> World:
    root = Call("net", class_name="Net", inside=list(calls))
    return World([root], passes=passes, with_values=with_values)


def edited(trace: Trace, name: str, **changes: Any) -> Trace:
    """The trace with something else said of the op of a name."""
    ops = tuple(
        dataclasses.replace(op, **changes) if op.name == f"torch.{name}" else op for op in trace.ops
    )
    return dataclasses.replace(trace, ops=ops)


def test_kinds_are_those_that_the_command_line_names() -> None:
    assert KIND_NAMES == KINDS


def test_another_device_throughout_is_said_once_and_can_be_ignored() -> None:
    a = random_world(3)
    b = a.copy()
    for call in [*b.ops(), *b.modules()]:
        call.device = "cuda:0"
        call.dtype = "bfloat16"
    comparison = compare(a.trace(), b.trace())
    said = {(item.kind, item.a, item.b) for item in comparison.throughout}
    assert said == {("device", "cpu", "cuda:0"), ("dtype", "float32", "bfloat16")}
    assert comparison.differences == ()
    assert comparison.differ
    assert not compare(a.trace(), b.trace(), ignored=["device", "dtype"]).differ
    assert compare(a.trace(), b.trace(), ignored=["device"]).differ


def test_another_dtype_in_few_places_is_said_of_each() -> None:
    a = random_world(3)
    b = a.copy()
    for call in b.ops()[10:13]:
        call.dtype = "bfloat16"
    comparison = compare(a.trace(), b.trace())
    assert comparison.throughout == ()
    assert kinds(comparison) == ["dtype"] * 3
    assert comparison.first is not None
    assert comparison.first.alike_before == 10


def test_another_dtype_all_along_is_said_once_though_most_keep_theirs() -> None:
    a = of(*(Call(f"op{number}") for number in range(64)))
    b = a.copy()
    for call in b.ops()[::4]:
        call.dtype = "bfloat16"
    comparison = compare(a.trace(), b.trace())
    assert [(item.kind, item.b) for item in comparison.throughout] == [("dtype", "bfloat16")]
    assert comparison.differences == ()
    c = a.copy()
    for call in c.ops()[16:32]:
        call.dtype = "bfloat16"
    comparison = compare(a.trace(), c.trace())
    assert comparison.throughout == ()
    assert kinds(comparison) == ["dtype"] * 16


def test_casts_to_what_is_so_throughout_are_part_of_it() -> None:
    a = of(*(Call(f"op{number}") for number in range(32)))
    b = a.copy()
    for call in [*b.ops(), *b.modules()]:
        call.dtype = "bfloat16"
    b.modules()[0].inside.insert(9, Call("to", "torch.bfloat16"))
    after = edited(b.trace(), "to", outputs=(Tensor((2, 16), "bfloat16"),))
    cast = edited(after, "to", inputs=(Tensor((2, 16), "float32"),))
    assert compare(a.trace(), cast).differences == ()
    lone = dataclasses.replace(
        a.trace(), ops=(*a.trace().ops, next(op for op in cast.ops if op.name == "torch.to"))
    )
    assert kinds(compare(a.trace(), lone)) == ["only"]


@pytest.mark.slow
def test_devices_in_arguments_follow_what_is_so_throughout() -> None:
    a = random_world(3)
    b = a.copy()
    for world, device in ((a, "cpu"), (b, "cuda:0")):
        world.modules()[0].inside.insert(0, Call("to", f"device='{device}'"))
        for call in [*world.ops(), *world.modules()]:
            call.device = device
    comparison = compare(a.trace(), b.trace())
    assert comparison.differences == ()


def test_ranges_that_may_be_the_same_are_alike() -> None:
    world = of(Call("cat"), Call("relu"))
    a, b = world.trace(), world.trace()
    for low, high, is_alike in ((1, 4096, True), (3, 9, True), (500, 4096, False)):
        wide = (Tensor((DimensionRange(1, 16), 16), "float32"),)
        other = (Tensor((DimensionRange(low, high), 16), "float32"),)
        found = compare(edited(a, "cat", outputs=wide), edited(b, "cat", outputs=other))
        assert kinds(found) == ([] if is_alike else ["shape"])


def test_a_size_within_a_range_is_alike() -> None:
    a = of(Call("cat")).trace()
    wide = edited(a, "cat", outputs=(Tensor((DimensionRange(1, 16), 16), "float32"),))
    assert not compare(a, wide).differ
    far = edited(a, "cat", outputs=(Tensor((DimensionRange(3, 16), 16), "float32"),))
    assert kinds(compare(a, far)) == ["shape"]


def test_runs_of_other_lengths_are_compared_as_far_as_both_go() -> None:
    a = of(Call("relu"), passes=1)
    b = of(Call("relu", count=3), passes=3)
    b.modules()[0].count = 3
    b.calls.append(Call("print"))
    comparison = compare(a.trace(), b.trace())
    assert not comparison.differ
    assert any("forward passes" in note for note in comparison.notes)
    assert kinds(compare(a.trace(), dataclasses.replace(b.trace(), run=a.trace().run))) == [
        "calls",
        "only",
    ]


def test_a_run_that_never_began_is_not_taken_for_one_that_was_cut() -> None:
    a = of(Call("relu")).trace()
    nothing = World([], passes=0).trace()
    assert kinds(compare(a, nothing)) == ["only"]
    assert kinds(compare(nothing, a)) == ["only"]
    neither = compare(nothing, nothing)
    assert not neither.differ
    assert neither.notes[0] == "neither run has calls: nothing was compared"


@pytest.mark.parametrize("what", ["label", "detail", "message"])
def test_where_objects_are_in_memory_does_not_count(what: str) -> None:
    texts = ("<function gelu at 0x7f9e519ad3a0>", "<function gelu at 0x7ff687bad3a0>")
    traces = []
    for text in (*texts, texts[1].replace("gelu", "silu")):
        label, detail = (text if what == key else "" for key in ("label", "detail"))
        act = Call("act", class_name="Act", detail=detail, inside=[Call("relu", label=label)])
        trace = of(act).trace()
        if what == "message":
            trace = edited(trace, "relu", error=ErrorInfo("TypeError", text), outputs=())
        traces.append(trace)
    assert not compare(traces[0], traces[1]).differ
    assert compare(traces[0], traces[2]).differ


def test_counts_that_the_module_around_explains_are_told_of_it_alone() -> None:
    a = of(Call("block", class_name="Block", inside=[Call("relu"), Call("linear")]))
    b = a.copy()
    for call in b.modules()[1].inside:
        call.count = 4
    b.modules()[1].count = 4
    comparison = compare(a.trace(), b.trace())
    assert [item.kind for item in comparison.differences] == ["calls"]
    first = comparison.first
    assert first is not None
    assert first.a is not None
    assert not isinstance(first.a, Op)


def test_an_error_comes_before_what_it_left_undone() -> None:
    a = of(Call("linear"), Call("relu"), Call("softmax"))
    b = of(Call("linear"), Call("relu"))
    error = ErrorInfo("RuntimeError", "mat1 and mat2")
    failed = edited(b.trace(), "relu", error=error, outputs=())
    comparison = compare(a.trace(), failed)
    assert kinds(comparison)[:2] == ["error", "only"]
    assert comparison.first is comparison.differences[0]


def test_what_matters_little_is_first_only_if_nothing_else_differs() -> None:
    a = of(Call("linear"), Call("relu"), Call("softmax")).trace()
    calls = edited(a, "linear", count=2)
    assert compare(a, calls).first is not None
    both = edited(calls, "softmax", outputs=(Tensor((9,), "float32"),))
    first = compare(a, both).first
    assert first is not None
    assert first.kind == "shape"


def test_values_are_only_compared_where_both_have_them() -> None:
    world = of(Call("linear"), with_values=True)
    with_values = world.trace()
    world.with_values = False
    comparison = compare(with_values, world.trace())
    assert not comparison.differ
    assert comparison.notes == ("values are not compared: record one of them with --fingerprint",)


def test_what_was_not_looked_into_in_one_of_them_is_said() -> None:
    plain = of(Call("linear")).trace()
    compiled = dataclasses.replace(
        plain,
        coverage=(
            Coverage("torch.compile region", "a compiled function", 3),
            Coverage("torch.compile region", "another", 1),
        ),
    )
    for a, b, who in ((plain, compiled, "B"), (compiled, plain, "A")):
        comparison = compare(a, b)
        assert not comparison.differ
        assert notes_of(comparison)[-2:] == [
            f"only {who} has what was not looked into: torch.compile region",
            "to see inside, run with TORCH_COMPILE_DISABLE=1",
        ]
        for view in ("text", "markdown", "json"):
            text = render_comparison(comparison, view, ("a.json", "b.json"), ViewOptions())
            assert "TORCH_COMPILE_DISABLE=1" in text
    both = compare(compiled, compiled)
    assert notes_of(both) == list(both.notes)


def test_rounding_that_grows_is_rounding_and_a_step_is_not() -> None:
    a = of(*(Call(f"op{number}") for number in range(40)), with_values=True)
    b = a.copy()
    for number, call in enumerate(b.ops()):
        call.value *= 1 + 2e-6 * number
    assert not compare(a.trace(), b.trace()).differ
    for call in b.ops()[30:]:
        call.value *= 1.01
    first = compare(a.trace(), b.trace()).first
    assert first is not None
    assert first.a is not None
    assert first.alike_before == 30


def test_a_tolerance_of_the_users() -> None:
    a = of(Call("linear"), Call("relu"), with_values=True)
    b = a.copy()
    b.ops()[1].value *= 1.01
    assert kinds(compare(a.trace(), b.trace())) == ["values"]
    assert not compare(a.trace(), b.trace(), tolerance=0.02).differ
    assert kinds(compare(a.trace(), b.trace(), tolerance=0.005)) == ["values"]


def test_an_empty_trace() -> None:
    empty = World([]).trace()
    assert not compare(empty, empty).differ
    full = of(Call("relu")).trace()
    assert kinds(compare(empty, full)) == ["only"]
    assert kinds(compare(full, empty)) == ["only"]


@pytest.mark.parametrize("with_values", [False, True])
def test_files_are_read_line_by_line_as_they_are_read_whole(
    with_values: bool, tmp_path: Path
) -> None:
    a, b = random_world(1, with_values=with_values).trace(), random_world(2).trace()
    codec.save(a, tmp_path / "a.json")
    codec.save(b, tmp_path / "b.json")
    assert load_pair(tmp_path / "a.json", tmp_path / "b.json") == (a, b)
    first, again = load_pair(tmp_path / "a.json", tmp_path / "a.json")
    assert all(one.inputs is other.inputs for one, other in zip(first.ops, again.ops, strict=True))


@pytest.mark.parametrize(
    "sample",
    sorted((Path(__file__).parents[3] / "contract").glob("trace_*.json")),
    ids=lambda p: p.stem,
)
def test_any_trace_file_can_be_read_so(sample: Path, tmp_path: Path) -> None:
    whole = dataclasses.replace(codec.load(sample), variables=())
    assert load_calls(sample) == whole
    rewritten = tmp_path / "trace.json"
    codec.save(codec.load(sample), rewritten)
    assert load_calls(rewritten, Sharing()) == whole


def test_a_damaged_file_is_told_of_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    codec.save(random_world(1).trace(), path)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(TraceFileError, match="cut short or damaged"):
        load_calls(path)
    path.write_text(text.replace('"line":3,', '"line":"3",', 1))
    with pytest.raises(TraceFileError, match="damaged"):
        load_calls(path)
    path.write_text(json.dumps(json.loads(text), indent=1))
    assert load_calls(path) == random_world(1).trace()


SCALARS = {
    "x / 8": "x / 4",
    "2 - x": "3 - x",
    "x ** 2": "x ** 3",
    "x > 0": "x > 1",
    "x.__setitem__(0, 1.0)": "x.__setitem__(0, 5.0)",
    "x.__iadd__(1)": "x.__iadd__(2)",
    "x.mul(2)": "x.mul(3)",
}


@pytest.mark.parametrize("with_values", [False, True])
@pytest.mark.parametrize("expression", SCALARS)
def test_another_number_in_an_operator_is_another_argument(
    expression: str, with_values: bool
) -> None:
    a, b = (
        traced(f"x = torch.zeros(3)\nx = torch.ones(3)\n{each}\n", with_values)
        for each in (expression, SCALARS[expression])
    )
    comparison = compare(a, b)
    assert comparison.first is not None
    assert comparison.first.kind in ("arguments", "values")
    assert "arguments" in [aspect.kind for aspect in comparison.first.aspects]
    assert not compare(a, a).differ


def test_what_tensors_are_called_is_no_argument() -> None:
    a = traced("x = torch.ones(3)\ny = x / 8\n", False)
    b = traced("z = torch.ones(3)\nw = z / 8\n", False)
    assert not compare(a, b).differ


def test_calls_of_a_library_are_told_apart_by_their_arguments() -> None:
    program = (
        "layer = torch.nn.Linear(3, 3, bias=False)\n"
        "optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-2, weight_decay={})\n"
        "layer(torch.ones(2, 3)).sum().backward()\n"
        "optimizer.step()\n"
    )
    a, b = (traced(program.format(decay), True) for decay in (0.01, 0.0))
    first = compare(a, b).first
    assert first is not None
    assert (first.kind, first.b) == ("only", None)
    assert isinstance(first.a, Op)
    assert first.a.label == "mul_(0.9999)"
    assert not compare(a, traced(program.format(0.01), True)).differ


def traced(program: str, with_values: bool) -> Trace:
    """The trace of a few lines."""
    torch.manual_seed(0)
    names = {"torch": torch}
    code = compile(program, "program.py", "exec")
    with shapetrace.trace(fingerprint=with_values) as recording:
        exec(code, names)
    return recording.trace
