from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import shapetrace
from shapetrace import Tracer, trace_model
from shapetrace.compat import tracy_nn
from shapetrace.events.model import Trace
from tests.python.unit.compat.terminals import Terminal, has_rows, in_a_terminal, rows


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU())

    def forward(self, x: Tensor, scale: Tensor | None = None) -> Tensor:
        hidden: Tensor = self.layers(x)
        return hidden if scale is None else hidden * scale


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_terminal(monkeypatch, columns=160)


def traced(function: Callable[[Tensor, Tensor], Any]) -> str:
    """What a tracer prints for a function of two tensors, f32[2,3] and f32[3,3]."""
    x, y = torch.rand(2, 3), torch.rand(3, 3)
    tracer = Tracer()
    with tracer.trace():
        function(x, y)
    return tracer.text


# Beginning and end


def test_the_tree_is_printed_between_banners_once_the_tracer_stops(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, x = Block(), torch.rand(2, 3)
    tracer = Tracer("Block")
    tracer.start(model)
    model(x)
    assert capsys.readouterr().out == ""
    tracer.stop()
    printed = capsys.readouterr()
    lines = rows(printed.out)
    assert lines[0] == "● TRACING Block STARTED"
    assert lines[1].endswith("1 forward pass · 4 module calls · 2 ops")
    assert lines[2:] == [
        "Block f32[2,3] → f32[2,4]",
        "layers Sequential f32[2,3] → f32[2,4]",
        "layers.0 Linear(in_features=3, out_features=4, bias=True) f32[2,3] → f32[2,4]",
        "linear()",
        "Inputs: f32[2,3]",
        "f32[4,3] layers.0.weight",
        "f32[4] layers.0.bias",
        "Output: f32[2,4]",
        "layers.1 ReLU f32[2,4] → f32[2,4]",
        "relu()",
        "Input: f32[2,4]",
        "Output: f32[2,4]",
        "● TRACING Block COMPLETE",
    ]
    assert printed.err == ""
    assert tracer.text == printed.out


def test_modules_are_indented_by_their_depth() -> None:
    model, x = Block(), torch.rand(2, 3)
    tracer = trace_model(model)
    with tracer.trace():
        model(x)
    starts = {
        line.lstrip("│├└─ ").split()[0]: len(line) - len(line.lstrip("│├└─ "))
        for line in tracer.text.splitlines()
        if line.strip()
    }
    assert [starts[name] for name in ("Block", "layers", "layers.0", "layers.1")] == [0, 3, 6, 6]


def test_a_new_tracer_has_nothing_yet() -> None:
    tracer = Tracer()
    assert not tracer.is_active
    assert tracer.recording is None
    assert tracer.text == ""


def test_a_stopped_tracer_keeps_its_recording() -> None:
    tracer = Tracer()
    tracer.start()
    torch.ones(2)
    tracer.stop()
    assert isinstance(tracer.recording, shapetrace.Recording)
    assert len(tracer.recording.ops) == 1


def test_names() -> None:
    assert Tracer().name == "Neural Network"
    assert trace_model(Block()).name == "Quick Trace"
    assert trace_model(Block(), "My Model").name == "My Model"


def test_a_model_given_to_trace_model_is_where_paths_begin() -> None:
    model, x = Block(), torch.rand(2, 3)
    tracer = trace_model(model)
    with tracer.trace():
        model.layers(x)
    assert tracer.recording is not None
    assert [call.path for call in tracer.recording.modules] == ["layers", "layers.0", "layers.1"]


def test_trace_gives_the_tracer_and_stops_it() -> None:
    tracer = Tracer()
    states = [tracer.is_active]
    with tracer.trace(Block()) as given:
        states.append(given.is_active)
    assert given is tracer
    assert [*states, tracer.is_active] == [False, True, False]


def test_entering_a_tracer_does_not_start_it_and_leaving_it_stops_it() -> None:
    with Tracer() as tracer:
        states = [tracer.is_active]
        tracer.start(Block())
        states.append(tracer.is_active)
    assert [*states, tracer.is_active] == [False, True, False]
    assert "COMPLETE" in tracer.text


def test_a_second_start_says_so_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    model, x = Block(), torch.rand(2, 3)
    tracer = Tracer("one")
    tracer.start(model)
    model(x)
    tracer.start(model)
    assert capsys.readouterr().out == "Tracer one is already active!\n"
    tracer.stop()
    assert "layers.0" in capsys.readouterr().out


def test_a_second_stop_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    tracer = Tracer()
    tracer.stop()
    assert capsys.readouterr().out == ""
    tracer.start(Block())
    tracer.stop()
    capsys.readouterr()
    tracer.stop()
    assert capsys.readouterr().out == ""


def test_a_tracer_can_be_started_again() -> None:
    tracer = Tracer()
    with tracer.trace():
        torch.ones(2)
    with tracer.trace():
        torch.zeros(3)
    assert "zeros(3)" in tracer.text
    assert "ones(2)" not in tracer.text


def test_two_tracers_are_told_apart_and_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = _what_tracers_could_change()
    first, second = Tracer("first"), Tracer("second")
    first.start()
    second.start()
    assert capsys.readouterr().out == (
        "Tracer second records nothing: another recording is running; "
        "stop it first, there can be only one.\n"
    )
    assert not second.is_active
    torch.ones(2)
    first.stop()
    assert "ones(2)" in capsys.readouterr().out
    second.stop()
    assert capsys.readouterr().out == ""
    assert _what_tracers_could_change() == before


def test_a_tracer_inside_another_recording_leaves_that_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = Block()
    with shapetrace.trace() as trace:
        with Tracer("inner").trace(model):
            torch.ones(2)
        torch.zeros(3)
    assert "Tracer inner records nothing" in capsys.readouterr().out
    assert [op.name for op in trace.ops] == ["torch.ones", "torch.zeros"]


def test_nothing_is_left_patched() -> None:
    before = _what_tracers_could_change()
    model, x = Block(), torch.rand(2, 3)
    with Tracer().trace(model):
        assert not any(module._forward_hooks for module in model.modules())
        model(x)
        x.view(3, 2)
    assert _what_tracers_could_change() == before
    assert "view" not in vars(Tensor)


def _what_tracers_could_change() -> list[Any]:
    return [dict(vars(owner)) for owner in (Tensor, F, nn.Module)]


# What is seen


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: torch.cat([x, y]), ["cat()", "Inputs: f32[2,3] x", "f32[3,3] y"]),
        (lambda x, y: x.chunk(3, dim=1), ["chunk(3, dim=1)", "Input: f32[2,3] x"]),
        (lambda x, y: torch.ones(2, 2), ["ones(2, 2)", "Output: f32[2,2]"]),
        (lambda x, y: torch.triu(y, 1), ["triu(1)", "Input: f32[3,3] y"]),
        (lambda x, y: x.masked_fill(x > 0, 2.0), ["masked_fill(2.0)", "Inputs: f32[2,3] x"]),
        (lambda x, y: torch.softmax(x, dim=-1), ["softmax(dim=-1)", "Input: f32[2,3] x"]),
        (lambda x, y: 2 - y, ["-", "Left: 2", "Right: f32[3,3] y", "Output: f32[3,3]"]),
        (lambda x, y: torch.einsum("ij,jk->ik", x, y), ["einsum('ij,jk->ik')"]),
        (lambda x, y: x[:, 1:], ["[:, 1:]", "Input: f32[2,3] x", "Output: f32[2,2]"]),
        (lambda x, y: -x, ["-", "Input: f32[2,3] x", "Output: f32[2,3]"]),
        (lambda x, y: x < y[:2], ["<", "Left: f32[2,3] x", "Right: f32[2,3]"]),
        (lambda x, y: y.mT, ["mT", "Input: f32[3,3] y", "Output: f32[3,3]"]),
        (lambda x, y: x.double(), ["double()", "Input: f32[2,3] x", "Output: f64[2,3]"]),
        (lambda x, y: F.linear(x, y), ["linear()", "Inputs: f32[2,3] x", "f32[3,3] y"]),
        (lambda x, y: x.mean(dim=1), ["mean(dim=1)", "Input: f32[2,3] x", "Output: f32[2]"]),
        (
            lambda x, y: torch.addmm(x, x, y),
            ["addmm()", "Inputs: f32[2,3] x", "f32[2,3] x", "f32[3,3] y", "Output: f32[2,3]"],
        ),
        (
            lambda x, y: x.max(dim=1),
            ["max(dim=1)", "Input: f32[2,3] x", "Output: max(f32[2], i64[2])"],
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_ops_that_tracy_nn_misses_are_seen(
    function: Callable[[Tensor, Tensor], Any], expected: list[str]
) -> None:
    printed = traced(function)
    assert has_rows(printed, *expected), printed


def test_an_augmented_assignment_is_seen() -> None:
    def add(x: Tensor, y: Tensor) -> None:
        y += 1

    printed = traced(add)
    assert has_rows(printed, "+=", "Left: f32[3,3] y", "Right: 1", "Output: f32[3,3]"), printed


def test_operands_of_several_operators_in_a_line_are_each_its_own() -> None:
    def mixed(x: Tensor, w: Tensor) -> Tensor:
        out = w @ x.T + x.sum() * 2
        return out

    printed = traced(mixed)
    assert has_rows(printed, "@", "Left: f32[3,3] w", "Right: f32[3,2]", "Output: f32[3,2]")
    assert has_rows(printed, "*", "Left: f32[]", "Right: 2", "Output: f32[]")
    assert has_rows(printed, "+", "Left: f32[3,2]", "Right: f32[]", "Output: f32[3,2]")


def test_a_transposed_tensor_does_not_go_by_the_name_of_what_was_transposed() -> None:
    def scores(q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1)

    printed = traced(scores)
    assert has_rows(printed, "@", "Left: f32[2,3] q", "Right: f32[3,3]", "Output: f32[2,3]")
    assert has_rows(printed, "transpose(-2, -1)", "Input: f32[3,3] k", "Output: f32[3,3]")


def test_keyword_arguments_are_shown() -> None:
    def call(x: Tensor, y: Tensor) -> None:
        F.dropout(x, p=0.25)
        F.softmax(input=y, dim=0)

    printed = traced(call)
    assert has_rows(printed, "dropout(p=0.25)", "Input: f32[2,3] x", "Output: f32[2,3]")
    assert has_rows(printed, "softmax(dim=0)", "Input: f32[3,3] y", "Output: f32[3,3]")


def test_a_module_called_with_keywords_shows_them() -> None:
    model, x, scale = Block(), torch.rand(2, 3), torch.rand(4)
    tracer = Tracer()
    with tracer.trace(model):
        model(x=x, scale=scale)
    assert has_rows(tracer.text, "Block x: f32[2,3], scale: f32[4] → f32[2,4]")


def test_an_op_called_with_keywords_works() -> None:
    results: list[Tensor] = []

    def product(x: Tensor, y: Tensor) -> None:
        results.extend((x.mm(mat2=y), x.mm(y)))

    printed = traced(product)
    assert torch.equal(*results)
    assert has_rows(printed, "mm()", "Left: f32[2,3] x", "Right: f32[3,3] y"), printed


def test_the_op_that_fails_is_shown_with_its_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x @ y

    x, y = torch.rand(2, 3), torch.rand(2, 3)
    tracer = Tracer("failing")
    with (
        pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught,
        tracer.trace(),
    ):
        product(x, y)
    assert [str(entry.path) for entry in caught.traceback] == [__file__, __file__]
    assert has_rows(
        capsys.readouterr().out,
        "@",
        "Left: f32[2,3] x",
        "Right: f32[2,3] y",
        "✗ RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
        "● TRACING failing COMPLETE",
    )


def test_nested_outputs_are_shown_whole() -> None:
    model, x = nn.LSTM(3, 4), torch.rand(5, 1, 3)
    tracer = Tracer()
    with tracer.trace(model):
        model(x)
    assert "→ (f32[5,1,4], (f32[1,1,4], f32[1,1,4]))" in tracer.text


def test_printing_a_tensor_adds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    printed = traced(lambda x, y: (print(x), f"{y}", repr(x)))
    assert "0 ops" in printed
    assert "Nothing was recorded" in printed


def test_attention_is_seen_with_all_that_goes_into_it() -> None:
    model, x = nn.MultiheadAttention(4, 2), torch.rand(5, 1, 4)
    tracer = Tracer()
    with tracer.trace(model):
        model(x, x, x)
    assert has_rows(
        tracer.text,
        "multi_head_attention_forward(4, 2, None, None, False, 0.0)",
        *("Inputs: f32[5,1,4]", "f32[5,1,4]", "f32[5,1,4]"),
        *("f32[12,4] in_proj_weight", "f32[12] in_proj_bias", "f32[4,4]", "f32[4]"),
        "Output: (f32[5,1,4], f32[1,5,5])",
    )


def test_a_fused_layer_keeps_its_fast_path_and_the_tree_says_so() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.rand(2, 3, 8)
    tracer = Tracer()
    with torch.no_grad():
        expected = layer(x)
        with tracer.trace(layer):
            result = layer(x)
    assert torch.equal(result, expected)
    assert "fused fast path" in tracer.text


# How it is printed


def test_colour_is_decided_when_the_tree_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer()
    tracer.start()
    torch.ones(2)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    tracer.stop()
    assert "\x1b[36mones(2)\x1b[0m" in terminal.getvalue()
    assert "\x1b" not in tracer.text


def test_notices_are_yellow_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer("one", live=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with tracer.trace():
        tracer.start()
    assert terminal.getvalue().startswith("\x1b[33mTracer one is already active!\x1b[0m\n")


def test_no_color_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    with Tracer().trace():
        torch.ones(2)
    assert "ones(2)" in terminal.getvalue()
    assert "\x1b" not in terminal.getvalue()


def test_output_without_our_signs_is_written_in_those_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    model, x = Block(), torch.rand(2, 3)
    with Tracer("ASCII").trace(model):
        model(x)
    text = written.getvalue().decode("ascii")
    assert text.startswith("* TRACING ASCII STARTED\n")
    assert "f32[2,3] -> f32[2,4]" in text
    assert "\\u" not in text


def _closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, _closed()], ids=["none", "closed"])
def test_without_an_output_the_program_goes_on(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    tracer = Tracer()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        with tracer.trace():
            torch.ones(2)
    assert "ones(2)" in tracer.text


def test_a_fault_of_ours_is_told_and_not_raised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(trace: Trace, *_: object, **__: object) -> None:
        raise LookupError(f"{len(trace.ops)} ops")

    monkeypatch.setattr(tracy_nn, "view_of", broken)
    with Tracer("unlucky").trace():
        torch.ones(2)
    assert capsys.readouterr().out == (
        "Tracer unlucky cannot show what it recorded: LookupError: 1 ops\n"
    )


# What else tracy_nn has


def test_colours_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with Tracer(live=False).trace():
        torch.ones(2)
    assert "\x1b[" in terminal.getvalue()
    names = [name for name in vars(shapetrace.Color) if name.isupper()]
    assert len(names) == 12
    for name in (*names, "_is_disabled"):
        monkeypatch.setattr(shapetrace.Color, name, getattr(shapetrace.Color, name))
    shapetrace.Color.RED = "red"
    shapetrace.Color.disable()
    assert {getattr(shapetrace.Color, name) for name in names} == {""}
    for live in (False, True):
        terminal.truncate(0)
        with Tracer(live=live).trace():
            torch.ones(2)
        assert "ones(2)" in terminal.getvalue()
        assert "\x1b[" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [(Terminal(), "\x1b[91m\x1b[0m"), (io.StringIO(), ""), (_closed(), ""), (None, "")],
    ids=["terminal", "file", "closed", "none"],
)
def test_colours_are_those_of_the_stream_that_was_there_at_first(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None, expected: str
) -> None:
    spec = importlib.util.spec_from_file_location("loaded_anew", tracy_nn.__file__)
    assert spec is not None
    assert spec.loader is not None
    anew = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        spec.loader.exec_module(anew)
    assert expected == anew.Color.RED + anew.Color.END


def test_operations_by_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    tracer = shapetrace.TensorOpsTracer(shapetrace.Color)
    tracer._stop_tensor_ops_tracing()
    tracer._start_tensor_ops_tracing()
    tracer._start_tensor_ops_tracing()
    Block()(torch.rand(2, 3))
    assert capsys.readouterr().out == ""
    tracer._stop_tensor_ops_tracing()
    printed = capsys.readouterr().out
    assert "f32[2,4]" in printed
    assert "TRACING" not in printed
    with shapetrace.trace():
        tracer._start_tensor_ops_tracing()
    assert "TensorOpsTracer records nothing" in capsys.readouterr().out
    assert isinstance(Tracer().tensor_ops_tracer, shapetrace.TensorOpsTracer)
    assert not Tracer()._is_active
