from __future__ import annotations

import gc
import importlib
import importlib.util
import inspect
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import shapetrace
from shapetrace import TracingMode
from shapetrace.compat import torch_code_tracing
from shapetrace.compat.torch_code_tracing import StackFrame, Trace
from tests.python.unit.compat.terminals import Terminal, in_a_terminal
from tests.support.torches import needs


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_terminal(monkeypatch, columns=100)


@pytest.fixture
def original() -> Any:
    """The tool itself, which does not load before torch 2.7, for want of a dtype."""
    needs("torch.float8_e8m0fnu")
    return importlib.import_module("torch_code_tracing")


def traces_of(function: Callable[[Tensor], Any]) -> list[Trace]:
    """What runs when a function is called with f32[2,3]."""
    x = torch.rand(2, 3)
    with TracingMode(quiet=True) as mode:
        function(x)
    return mode.traces


def op_texts(function: Callable[[Tensor], Any]) -> list[str]:
    return [trace.op_str for trace in traces_of(function)]


def imported(path: Path, source: str) -> ModuleType:
    """A program in a file of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, "utf-8")
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expression(frame: StackFrame) -> str:
    """The source text that a frame's position says."""
    assert frame.code_context is not None
    lines = Path(frame.filename).read_bytes().split(b"\n")
    _, end_line, column, end_column = frame.positions
    assert None not in (end_line, column, end_column)
    inside = lines[frame.lineno - 1 : end_line]
    inside[-1] = inside[-1][:end_column]
    inside[0] = inside[0][column:]
    return b"\n".join(inside).decode()


# What is recorded


def test_ops_are_written_as_they_were_called() -> None:
    def program(x: Tensor) -> None:
        linear = F.linear(x.view(1, 2, 3), torch.ones(4, 3), torch.zeros(4))
        linear.transpose(1, 2).add_(1)
        torch.cat([x, x], 1).max(dim=1)
        torch.div(x, 2, rounding_mode="floor").to(torch.bfloat16).sum()

    assert op_texts(program) == [
        "view(f32[2,3], [1, 2, 3]) -> f32[1,2,3]",
        "ones([4, 3], device='cpu', pin_memory=False) -> f32[4,3]",
        "zeros([4], device='cpu', pin_memory=False) -> f32[4]",
        "view(f32[1,2,3], [2, 3]) -> f32[2,3]",
        "t(f32[4,3]) -> f32[3,4]",
        "addmm(f32[4], f32[2,3], f32[3,4]) -> f32[2,4]",
        "view(f32[2,4], [1, 2, 4]) -> f32[1,2,4]",
        "transpose.int(f32[1,2,4], 1, 2) -> f32[1,4,2]",
        "add_.Tensor(f32[1,4,2], 1) -> f32[1,4,2]",
        "cat([f32[2,3], f32[2,3]], 1) -> f32[2,6]",
        "max.dim(f32[2,6], 1) -> (f32[2], i64[2])",
        "div.Tensor_mode(f32[2,3], 2, rounding_mode='floor') -> f32[2,3]",
        "_to_copy(f32[2,3], dtype=torch.bfloat16) -> bf16[2,3]",
        "sum(bf16[2,3]) -> bf16[]",
    ]


def test_a_stack_goes_from_where_the_block_is_to_the_call() -> None:
    def inner(x: Tensor) -> Tensor:
        return x * 2

    def outer(x: Tensor) -> Tensor:
        return inner(x)

    (trace,) = traces_of(outer)
    beginning, caller, called = trace.stack
    assert [frame.function for frame in trace.stack] == ["traces_of", "outer", "inner"]
    assert expression(beginning) == "function(x)"
    assert called.filename == __file__
    assert called.lineno == inner.__code__.co_firstlineno + 1
    assert called.code_context == ("return x * 2",)
    assert expression(called) == "x * 2"
    assert expression(caller) == "inner(x)"


def test_modules_stand_between_an_op_and_its_stack() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    traces = traces_of(model)
    assert [trace.op_str.partition("(")[0] for trace in traces][:2] == ["t", "addmm"]
    # All frames between are torch's own.
    assert {trace.stack[-1].function for trace in traces} == {"traces_of"}


def test_a_loop_is_one_trace_with_its_count() -> None:
    def program(x: Tensor) -> None:
        for _ in range(5):
            x = x * 2
        x * 2

    assert [(trace.op_str, trace.count) for trace in traces_of(program)] == [
        ("mul.Tensor(f32[2,3], 2) -> f32[2,3]", 5),
        ("mul.Tensor(f32[2,3], 2) -> f32[2,3]", 1),
    ]


def test_traces_accumulate() -> None:
    mode = TracingMode(quiet=True)
    assert mode.traces == []
    with mode:
        torch.ones(1)
    with mode:
        torch.ones(2)
        assert len(mode.traces) == 2
        torch.ones(3)
    names = [trace.op_str.partition(",")[0] for trace in mode.traces]
    assert names == ["ones([1]", "ones([2]", "ones([3]"]


def test_traces_do_not_change() -> None:
    (trace,) = traces_of(lambda x: x + 1)
    assert trace in {trace}
    with pytest.raises(AttributeError):
        trace.count = 2  # type: ignore[misc]


# What torch-code-tracing gets wrong


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x @ x, "mm(f32[2,3], f32[2,3])"),
        (lambda x: x.view(5), "view(f32[2,3], [5])"),
        (lambda x: torch.einsum("ij->q", x), "einsum('ij->q', f32[2,3])"),
    ],
    ids=["kernel", "method", "before any kernel"],
)
def test_the_op_that_fails_is_there_with_its_inputs(
    function: Callable[[Tensor], Any], expected: str
) -> None:
    x = torch.rand(2, 3)
    mode = TracingMode(quiet=True)
    with pytest.raises(RuntimeError) as caught, mode:
        function(x)
    (trace,) = mode.traces
    assert trace.op_str == expected
    assert trace.error is not None
    assert trace.error == f"RuntimeError: {str(caught.value).splitlines()[0]}"


def _dtype(name: str) -> torch.dtype:
    needs(f"torch.{name}")
    dtype: torch.dtype = getattr(torch, name)  # torch's own types lack it
    return dtype


def _strided_nested(x: Tensor) -> Tensor:
    return torch.nested.nested_tensor([x, x[:1]]) * 2


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:.*quantiz.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*quantiz.*:UserWarning")
@pytest.mark.parametrize(
    ("function", "output"),
    [
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8), "qu8[2,3]"),
        (lambda x: torch.empty(2, dtype=_dtype("uint4")), "u4[2]"),
        (lambda x: torch.empty(2, dtype=_dtype("int7")), "i7[2]"),
        (lambda x: torch.empty(2, dtype=_dtype("float4_e2m1fn_x2")), "f4e2m1fn_x2[2]"),
        (lambda x: x.to(torch.float8_e4m3fn), "f8e4m3fn[2,3]"),
        (lambda x: x > 0, "bool[2,3]"),
        (_strided_nested, "f32[?]"),
        (lambda x: x.to_sparse() * 2, "f32[2,3]"),
        (lambda x: x.to("meta") * 2, "f32[2,3]@meta"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unusual_tensors_are_described(function: Callable[[Tensor], Any], output: str) -> None:
    assert op_texts(function)[-1].endswith(f" -> {output}")


def test_inference_mode_changes_nothing() -> None:
    def program(x: Tensor) -> Tensor:
        with torch.inference_mode():
            return F.linear(x, torch.ones(4, 3))

    assert op_texts(program)[1:] == ["linear(f32[2,3], f32[4,3]) -> f32[2,4]"]


def test_a_backward_pass_is_recorded_once() -> None:
    weight = torch.ones(3, 3, requires_grad=True)
    x = torch.rand(2, 3)
    with TracingMode(quiet=True) as mode:
        (x @ weight).sum().backward()
    counts = {trace.op_str.partition("(")[0]: trace.count for trace in mode.traces}
    assert counts == {"mm": 1, "sum": 1, "ones_like": 1, "expand": 1, "t": 1} | {
        name: count for name, count in counts.items() if name == "detach"
    }
    assert [trace.op_str for trace in mode.traces].count("mm(f32[3,2], f32[2,3]) -> f32[3,3]") == 1
    assert "inside torch" not in mode.format()


@pytest.mark.slow
def test_no_tensor_is_kept_alive() -> None:
    def program(x: Tensor) -> weakref.ref[Tensor]:
        local = x * 2
        local + 1
        return weakref.ref(local)

    x = torch.rand(2, 3)
    with TracingMode(quiet=True) as mode:
        reference = program(x)
        gc.collect()
        assert reference() is None
    assert len(mode.traces) == 2


def test_positions_fit_lines_that_are_not_ascii(tmp_path: Path) -> None:
    source = "def f(x):\n    größe = ('→', x + 1)[1]; return größe\n"
    module = imported(tmp_path / "umlaut.py", source)
    (trace,) = traces_of(module.f)
    assert expression(trace.stack[-1]) == "x + 1"


def test_statements_of_several_lines_are_whole(tmp_path: Path) -> None:
    source = "def f(x):\n    return (\n        x\n        + 1\n    )\n"
    module = imported(tmp_path / "long.py", source)
    (trace,) = traces_of(module.f)
    called = trace.stack[-1]
    assert called.code_context == ("return (", "    x", "    + 1", ")")
    assert expression(called) == "x\n        + 1"


@pytest.mark.parametrize("package", ["torchvision", "torch_geometric", "torchaudio"])
def test_packages_that_are_named_like_torch_are_not_hidden(tmp_path: Path, package: str) -> None:
    path = tmp_path / "site-packages" / package / "ops.py"
    module = imported(path, "def f(x):\n    return x + 1\n")
    (trace,) = traces_of(module.f)
    assert trace.stack[-1].filename == str(path)


def test_a_frame_without_source_has_no_context() -> None:
    names: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x + 1\n", "<made up>", "exec"), names)
    (trace,) = traces_of(names["f"])
    assert trace.stack[-1].filename == "<made up>"
    assert trace.stack[-1].code_context is None


# Printing


def test_the_listing_is_printed_when_the_block_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with TracingMode() as mode:
        torch.ones(2)
        assert capsys.readouterr().out == ""
    printed = capsys.readouterr().out
    assert "# ones(2) -> f32[2]" in printed
    assert "aten.ones([2]" in printed
    assert "\x1b" not in printed
    assert printed == mode.format()


def test_only_what_is_new_is_printed_and_print_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    mode = TracingMode()
    with mode:
        torch.ones(2)
    capsys.readouterr()
    with mode:
        torch.zeros(3)
    printed = capsys.readouterr().out
    assert "zeros(3)" in printed
    assert "ones(2)" not in printed
    mode.print()
    printed = capsys.readouterr().out
    assert printed.index("ones(2)") < printed.index("zeros(3)")
    assert printed == mode.format()


def test_quiet_prints_nothing_of_its_own_accord(capsys: pytest.CaptureFixture[str]) -> None:
    with TracingMode(quiet=True) as mode:
        torch.ones(2)
    assert capsys.readouterr().out == ""
    mode.print()
    assert "ones(2)" in capsys.readouterr().out


def test_without_a_recording_there_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    mode = TracingMode()
    assert mode.format() == ""
    mode.print()
    assert capsys.readouterr().out == ""


def test_what_was_seen_before_an_error_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.rand(2, 3)
    with pytest.raises(RuntimeError) as caught, TracingMode():
        x @ x
    assert not [entry for entry in caught.traceback if "python_backend" in str(entry.path)]
    printed = capsys.readouterr().out
    assert "# f32[2,3] @ f32[2,3]" in printed
    assert "✗ RuntimeError: mat1 and mat2" in printed


def test_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with TracingMode(live=False) as mode:
        torch.ones(2)
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[" in mode.format(color=True)
    assert "\x1b[" not in mode.format()
    terminal.truncate(0)
    with TracingMode(color=False, live=False):
        torch.ones(2)
    assert "ones(2)" in terminal.getvalue()
    assert "\x1b[" not in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    with TracingMode(color=True):
        torch.ones(2)
    assert "\x1b[" not in terminal.getvalue()


def test_succinct_folds_what_torch_does_by_itself() -> None:
    weights = [torch.ones(3, requires_grad=True) for _ in range(4)]
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9, foreach=False)
    for weight in weights:
        weight.grad = torch.ones(3)
    with TracingMode(quiet=True) as mode:
        optimizer.step()
    assert any(trace.op_str.startswith("add_.Tensor(") for trace in mode.traces)
    assert "inside torch" in mode.format()
    assert "aten.add_" not in mode.format()
    assert "inside torch" not in mode.format(succinct=False)
    assert "aten.add_" in mode.format(succinct=False)
    assert mode.format(succinct=True) == mode.format()
    mode.succinct = False
    assert mode.format() == mode.format(succinct=False)


# Beside other modes


def test_what_the_torch_mode_took_is_ignored() -> None:
    with TracingMode(None, 3, quiet=True) as mode:
        torch.ones(2)
    assert len(mode.traces) == 1
    with pytest.raises(TypeError, match="suckinct"):
        TracingMode(suckinct=True)  # type: ignore[call-arg]


def test_a_mode_within_another_recording_says_that_it_records_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shapetrace.trace() as trace:
        with TracingMode() as mode:
            torch.ones(2)
        torch.zeros(3)
    assert capsys.readouterr().out == (
        "TracingMode records nothing: another recording is running; "
        "stop it first, there can be only one.\n"
    )
    assert mode.traces == []
    assert [op.name for op in trace.ops] == ["torch.ones", "torch.zeros"]


def test_a_mode_within_itself_goes_on_to_the_end_of_the_outer_block() -> None:
    mode = TracingMode(quiet=True)
    with mode:
        with mode:
            torch.ones(2)
        torch.zeros(3)
    assert [trace.op_str.partition("(")[0] for trace in mode.traces] == ["ones", "zeros"]


def test_a_device_context_around_and_inside_is_left_alone() -> None:
    with torch.device("meta"), TracingMode(quiet=True) as mode:
        outer = torch.ones(2)
        with torch.device("cpu"):
            inner = torch.ones(2)
        after = torch.ones(2)
    assert [tensor.device.type for tensor in (outer, inner, after)] == ["meta", "cpu", "meta"]
    assert [trace.op_str.rpartition(" ")[2] for trace in mode.traces] == [
        "f32[2]@meta",
        "f32[2]",
        "f32[2]@meta",
    ]
    assert torch.ones(2).device.type == "cpu"


def test_on_a_terminal_ops_are_printed_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with TracingMode(color=False):
        x = torch.ones(2)
        x.neg()
        before = terminal.getvalue()
    assert "ones([2]" in before
    assert "neg(f32[2]) -> f32[2]" in terminal.getvalue()
    assert terminal.getvalue().count("ones([2]") == 1


def test_the_keyword_argument_of_the_torch_mode_is_taken() -> None:
    with TracingMode(None, quiet=True, _dispatch_key=None) as tracing:
        torch.ones(2).add(1)
    assert "add.Tensor" in tracing.format()


# As the base of other classes


def test_what_torch_code_tracing_has_is_here(original: Any) -> None:
    assert shapetrace.DTYPE_ABBRS == original.DTYPE_ABBRS
    assert shapetrace.DTYPE_ABBRS is torch_code_tracing.DTYPE_ABBRS
    for name in vars(original.TracingMode):
        assert hasattr(TracingMode, name), name
    theirs = inspect.signature(original.TracingMode).parameters
    ours = inspect.signature(TracingMode).parameters
    for name in ("quiet", "succinct", "color"):
        assert (theirs[name].default, theirs[name].kind) == (ours[name].default, ours[name].kind)
    mode, its = TracingMode(quiet=True, color=False), original.TracingMode(quiet=True, color=False)
    for name in ("_verbose", "_color", "_succinct", "traces"):
        assert getattr(mode, name) == getattr(its, name), name
    mode._verbose = True
    assert not mode.quiet


def program(x: Tensor) -> Tensor:
    return F.relu(x.view(3, 2) + 1)


def test_a_subclass_gets_each_op_and_returns_what_it_returns(original: Any) -> None:
    def made(base: type[Any]) -> tuple[Any, Any, list[str]]:
        class Doubling(base):
            def __init__(self) -> None:
                super().__init__(quiet=True)
                self.seen: list[str] = []

            def __enter__(self) -> Any:
                return super().__enter__()

            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                self.seen.append(str(func))
                if func is torch.ops.aten.relu.default:
                    return torch.full((1,), 7.0)
                return super().__torch_dispatch__(func, types, args, kwargs)

        with Doubling() as mode:
            result = program(torch.zeros(2, 3))
        return mode, result, mode.seen

    mode, result, seen = made(TracingMode)
    _, their_result, theirs = made(original.TracingMode)
    assert result.equal(their_result)
    assert seen == theirs
    assert [trace.op_str.partition("(")[0] for trace in mode.traces][1:3] == ["view", "add.Tensor"]
    frames = [frame.function for frame in mode.traces[1].stack]
    assert frames[:2] == ["made", "program"]
    assert torch.relu(torch.ones(1)).item() == 1


def test_what_a_subclass_raises_is_the_programs() -> None:
    class Refusing(TracingMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError(str(func))

    x = torch.zeros(2, 3)
    with pytest.raises(KeyError, match=r"aten\.view") as caught, Refusing(quiet=True):
        program(x)
    assert not [entry for entry in caught.traceback if "python_backend" in str(entry.path)]
    assert program(torch.zeros(2, 3)).shape == (3, 2)


def test_a_subclass_chooses_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    class OnlyAdditions(TracingMode):
        def _add_trace(self, trace: Trace) -> None:
            if trace.op_str.startswith("add"):
                super()._add_trace(trace)

    with OnlyAdditions() as mode:
        program(torch.zeros(2, 3))
    assert [trace.op_str for trace in mode.traces] == ["add.Tensor(f32[3,2], 1) -> f32[3,2]"]
    printed = capsys.readouterr().out
    assert printed == mode.format()
    assert "aten.add" in printed
    assert "aten.view" not in printed
    assert "relu" not in printed.replace("F.relu(x.view(3, 2) + 1)", "")
    mode.traces.clear()
    assert mode.format() == ""


@pytest.mark.slow
def test_a_subclass_prints_as_it_likes(capsys: pytest.CaptureFixture[str]) -> None:
    class Numbered(TracingMode):
        def _trace_str(self, index: int, color: bool, succinct: bool) -> str:
            return f"{index} {color} {succinct} {self.traces[index].op_str.partition('(')[0]}"

    lines = ["0 False True view", "1 False True add.Tensor", "2 False True relu"]
    mode = Numbered()
    x = torch.zeros(2, 3)
    with mode:
        program(x)
    assert capsys.readouterr().out.splitlines() == lines
    with mode:
        program(x)
        assert len(mode.format().splitlines()) == 6
    assert capsys.readouterr().out.splitlines()[0] == "3 False True view"
    mode.print()
    assert capsys.readouterr().out.splitlines()[:3] == lines
    assert mode.format().splitlines()[:3] == lines

    class Silent(TracingMode):
        def _print_trace(self, index: int, succinct: bool) -> None:
            printed.append(self._trace_str(index, False, succinct))

    printed: list[str] = []
    with Silent():
        program(x)
    assert capsys.readouterr().out == ""
    assert len(printed) == 3
    assert "aten.add" in printed[1]
    assert "aten.view" not in printed[1]
    assert Silent()._trace_str(-1, color=False, succinct=True) == "<no traces>"


def test_a_trace_that_a_subclass_makes_is_shown() -> None:
    class Loud(TracingMode):
        def _add_trace(self, trace: Trace) -> None:
            super()._add_trace(Trace(trace.op_str.upper(), trace.stack))

    with Loud(quiet=True) as mode:
        torch.ones(2)
        assert "aten.ones([2]" in mode.format()
    assert mode.format().startswith("# ONES([2]")
