"""An expression is evaluated in a frame that stands still, and recorded as if it stood there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from shapetrace.events.model import ModuleCall, Op
from shapetrace.recorder.debuggers import Debugger
from shapetrace.recorder.evaluation import evaluate
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.randomness import kept_randomness
from shapetrace.recorder.session import Recorder
from shapetrace.recorder.standing import standing_of
from shapetrace.views.shapes import result_text

DEBUGGER = """
import sys

def stand_still(look):
    return look(sys._getframe(1))
"""


@dataclass
class Stopped:
    """A program that stands still where it calls ``stop``, for as long as it is asked things."""

    recorder: Recorder
    stand_still: Callable[[Callable[[FrameType], Any]], Any]
    ask: Callable[[FrameType], Any] = repr
    answers: list[Any] = field(default_factory=list)

    def run(self, text: str | None) -> None:
        """Have an expression evaluated at the next stops; None for nothing."""

        def ask(frame: FrameType) -> None:
            if text is None:
                return
            before = self.reached(frame)
            self.answers.append(result_of(lambda: evaluate(self.recorder, frame.f_back, text)))  # type: ignore[arg-type]
            assert self.reached(frame) == before

        self.ask = ask

    def reached(self, frame: FrameType) -> list[object]:
        """What the editor is told of the frames that stand still."""
        told: list[object] = []
        current: FrameType | None = frame
        while current is not None:
            if current.f_code.co_filename == __file__:
                standing = standing_of(self.recorder, current, None)
                told.append(standing and (standing.call, standing.own.reached))
            current = current.f_back
        return told

    def stop(self) -> None:
        self.stand_still(self.ask)

    def calls(self) -> list[str]:
        """All that was recorded, each with the place that it was made at."""
        trace = self.recorder.snapshot()
        calls: list[Op | ModuleCall] = sorted([*trace.ops, *trace.modules], key=lambda it: it.id)
        return [f"{_place(call)}: {_text(call)}" for call in calls]

    def evaluated(self) -> list[str]:
        """The same, of what expressions have called, directly or not."""
        trace = self.recorder.snapshot()
        frames = {frame.id: frame for frame in trace.frames}
        calls: list[Op | ModuleCall] = sorted([*trace.ops, *trace.modules], key=lambda it: it.id)
        return [
            f"{_place(call)}: {_text(call)}"
            for call in calls
            if frames[call.stack[0]].file.startswith("<evaluated at ")
        ]


def _place(call: Op | ModuleCall) -> str:
    name = (call.function or "").rpartition("<locals>.")[2]
    return name if call.direct else f"({name})"


def _text(call: Op | ModuleCall) -> str:
    name = call.label if isinstance(call, Op) else call.path or "root"
    result = f"!{call.error.type}" if call.error else result_text(call.outputs, call.result)
    return f"{name} {result}" + (f" ×{call.count}" if (call.count or 0) > 1 else "")


def result_of(function: Callable[[], Any]) -> Any:
    try:
        value = function()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return tuple(value.shape) if isinstance(value, Tensor) else value


@contextmanager
def stopping(directory: Path, **options: Any) -> Iterator[Stopped]:
    """Record as under a debugger."""
    file = directory / "debugger.py"
    file.write_text(DEBUGGER)
    names: dict[str, Any] = {}
    exec(compile(DEBUGGER, str(file), "exec"), names)
    debugger = Debugger((f"{directory.resolve()}/",), frozenset())
    recorder = Recorder(RecorderOptions(debugger=debugger, **options))
    recorder.start()
    modes = torch._C._len_torch_function_stack()
    try:
        yield Stopped(recorder, names["stand_still"])
        if recorder.active and not recorder.rest.asleep:
            assert torch._C._len_torch_function_stack() == modes
    finally:
        recorder.stop()
    assert torch._C._len_torch_function_stack() == 0
    assert [note for note in recorder.notes if "fault" in note[0]] == []


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x).relu()


class Net(nn.Module):
    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(Part() for _ in range(2))
        self.stop = stop
        self.__secret = 3

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        self.stop()
        for part in self.parts:
            y = part(y)
        return y.sum()

    def secret(self, x: Tensor) -> str:
        self.stop()
        return super().extra_repr() * self.__secret

    def extra_repr(self) -> str:
        return super().extra_repr() + "never"


def twice(x: Tensor) -> Tensor:
    """A function of the program's that expressions call."""
    y = x + x
    return y


def once(x: Tensor, stop: Callable[[], object]) -> Tensor:
    """A function that an expression in it calls."""
    x = x * 2
    stop()
    return x + 1


@pytest.mark.slow
def test_a_module_within_a_forward(tmp_path: Path) -> None:
    def main(program: Stopped) -> None:
        net = Net(program.stop)
        for text in (None, "self.parts[1](y)"):
            program.run(text)
            net(torch.ones(2, 4))

    with stopping(tmp_path) as program:
        main(program)
        assert program.answers == [(2, 4)]
        assert program.evaluated() == [
            "<evaluated>: parts.1 f32[2,4]",
            "Part.forward: parts.1.fc f32[2,4]",
            "(Part.forward): linear() f32[2,4]",
            "Part.forward: relu() f32[2,4]",
        ]
        trace = program.recorder.snapshot()
        (evaluated,) = [call for call in trace.modules if call.function == "<evaluated>"]
        (root,) = [call for call in trace.modules if call.path == ""]
        assert (evaluated.parent, root.count, program.recorder.passes_seen) == (root.id, 2, 2)
        assert [call.count for call in trace.modules if call.path == "parts.1"] == [2, 1]


def test_the_function_itself_is_called_once_more(tmp_path: Path) -> None:
    """Its lines are reached by what was evaluated, and not by the call that stands still."""
    with stopping(tmp_path) as program:
        program.run("once(x, str)")
        once(torch.ones(3), program.stop)
        assert program.answers == [(3,)]
        assert program.evaluated() == ["once: * f32[3]", "once: + f32[3]"]
        assert program.calls()[-1] == "once: + f32[3]"


def test_what_is_evaluated_again_is_counted(tmp_path: Path) -> None:
    def main(program: Stopped) -> None:
        x = torch.ones(2)
        program.run("twice(x)")
        for _ in range(3):
            program.stop()
        twice(x)

    with stopping(tmp_path) as program:
        main(program)
        assert program.answers == [(2,)] * 3
        assert program.evaluated() == ["twice: + f32[2] ×3"]
        assert program.calls()[-1] == "twice: + f32[2]"


@pytest.mark.parametrize("level", ["torch", "aten"])
def test_modes_of_the_program_count(tmp_path: Path, level: str) -> None:
    def main(program: Stopped) -> Tensor:
        program.run("(part(torch.zeros(2, 4)).device.type, part(x).requires_grad)")
        with torch.no_grad(), torch.device("meta"):
            part, x = Part(), torch.ones(2, 4)
            program.stop()
            return part(x)

    with stopping(tmp_path, level=level) as program:
        main(program)
        assert program.answers == [("meta", False)]
        assert "<evaluated>: root f32[2,4]@meta" in program.evaluated()


@pytest.mark.parametrize("level", ["torch", "aten"])
def test_an_error(tmp_path: Path, level: str) -> None:
    def main(program: Stopped) -> Tensor:
        part = Part()
        program.run("part(torch.ones(2, 3)) + 1")
        program.stop()
        return part(torch.ones(2, 4))

    with stopping(tmp_path, level=level) as program:
        main(program)
        assert program.answers[0].startswith("RuntimeError: mat1 and mat2")
        evaluated = program.evaluated()
        assert "<evaluated>: root !RuntimeError" in evaluated
        assert "(Part.forward): linear() !RuntimeError" in evaluated
        assert program.recorder.passes_seen == 1


def test_a_recording_that_rests(tmp_path: Path) -> None:
    def main(program: Stopped) -> None:
        net = Net(program.stop)
        for _ in range(5):
            net(torch.ones(2, 4))
        assert torch._C._len_torch_function_stack() == 0
        program.run("self.parts[0](x)")
        net(torch.ones(2, 4))
        assert torch._C._len_torch_function_stack() == 0

    with stopping(tmp_path, settle_after=2) as program:
        main(program)
        assert program.answers == [(2, 4)]
        assert program.evaluated() == [
            # Which module's forward it is called in was not looked at.
            "<evaluated>: root f32[2,4]",
            "Part.forward: fc f32[2,4]",
            "(Part.forward): linear() f32[2,4]",
            "Part.forward: relu() f32[2,4]",
        ]


def test_another_thread_and_one_that_nobody_watches(tmp_path: Path) -> None:
    def main(program: Stopped) -> None:
        begin = threading.Event()

        def work() -> None:
            begin.wait()
            once(torch.ones(2), program.stop)
            modes.append(torch._C._len_torch_function_stack())

        modes: list[int] = []
        before = threading.Thread(target=work)
        before.start()
        with stopping(tmp_path) as it:
            program = it
            program.run("twice(x)")
            begin.set()
            before.join()
            watched = threading.Thread(target=work)
            watched.start()
            watched.join()
            assert program.answers == [(2,), (2,)]
            assert program.evaluated() == ["twice: + f32[2] ×2"]
            assert modes == [0, 1]
            assert list(program.recorder.states) == [threading.get_ident()]

    main(None)  # type: ignore[arg-type]


def test_a_recording_of_one_pass_does_not_take_it_for_the_pass(tmp_path: Path) -> None:
    def main(program: Stopped) -> None:
        net = Net(lambda: None)
        x = torch.ones(2, 4)
        program.run("net(x) + net.forward(x)")
        for _ in range(3):
            program.stop()
            program.stop()
            was_active.append(program.recorder.active)
            net(x)

    was_active: list[bool] = []
    with stopping(tmp_path, passes=1, through_step=True) as program:
        main(program)
        assert program.answers[:4] == [()] * 4
        assert program.answers[4] == "CannotEvaluate: nothing is being recorded any more"
        assert was_active == [True, True, False]
        assert program.recorder.passes_seen == 1


def test_a_region_that_is_stepped_around(tmp_path: Path) -> None:
    def main(program: Stopped) -> None:
        net = torch.compile(Net(torch.compiler.disable(program.stop)), backend="eager")
        program.run("twice(x)")
        net(torch.ones(2, 4))

    with stopping(tmp_path) as program:
        main(program)
        assert set(program.answers) == {
            "CannotEvaluate: nothing is recorded in a torch.compile region"
        }
        assert program.evaluated() == []


class Doubled(torch.autograd.Function):
    """Stands still where torch has taken our mode off: in a call of its own, and in a backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, stop: Callable[[], None]) -> Tensor:
        ctx.stop = stop
        stop()
        return x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        ctx.stop()
        return gradients[0] * 2, None


@pytest.mark.parametrize("level", ["torch", "aten"])
def test_in_the_middle_of_what_torch_does(tmp_path: Path, level: str) -> None:
    def main(program: Stopped) -> None:
        def hook(gradient: Tensor) -> None:
            program.stop()

        program.run("twice(torch.ones(5))")
        x = torch.ones(3, requires_grad=True)
        x.register_hook(hook)
        y: Tensor = Doubled.apply(x, program.stop)
        y.sum().backward()

    with stopping(tmp_path, level=level) as program:
        main(program)
        assert program.answers == [(5,)] * 3
        evaluated = [each for each in program.evaluated() if each.startswith("twice: + ")]
        assert evaluated == ["twice: + f32[5]"] * 3


EXPRESSIONS = {
    "self.__secret": 3,
    "[each + self.__secret for each in range(2)]": [3, 4],
    "(lambda y: y + self._Net__secret)(1)": 4,
    "super().extra_repr()": "",
    "super(Net, self).extra_repr() or [super().extra_repr() for _ in range(1)]": [""],
    "x.shape[0] +\n  1": 3,
    "twice(\n    x\n)": (2, 4),
    "  x": (2, 4),
    "(y := x.sum(), y.ndim)[1]": 0,
    "1 +": "SyntaxError: invalid syntax (<evaluated at ",
    "y = 1": "SyntaxError: invalid syntax (<evaluated at ",
    "await x": "SyntaxError: 'await' outside ",
    "missing": "NameError: name 'missing' is not defined",
}


@pytest.mark.slow
def test_what_may_be_evaluated(tmp_path: Path) -> None:
    def main(program: Stopped) -> None:
        net = Net(program.stop)
        for text in EXPRESSIONS:
            program.run(text)
            net.secret(torch.ones(2, 4))

    with stopping(tmp_path) as program:
        main(program)
        for answer, (text, expected) in zip(program.answers, EXPRESSIONS.items(), strict=True):
            if isinstance(expected, str) and expected:
                assert answer.startswith(expected), text
            else:
                assert answer == expected, text


def test_random_numbers_are_put_back() -> None:
    import random

    def draw() -> tuple[float, float, float]:
        return torch.rand(1).item(), random.random(), float(np.random.rand())

    put_back = kept_randomness()
    first = draw()
    put_back()
    assert draw() == first


@pytest.mark.slow
def test_nothing_is_kept_alive(tmp_path: Path) -> None:
    import gc
    import weakref

    def main(program: Stopped) -> None:
        x = torch.ones(2)
        references.append(weakref.ref(x))
        for text in ("twice(x)", "twice(x) @ torch.ones(3)", "[each for each in x]"):
            program.run(text)
            program.stop()

    references: list[weakref.ref[Tensor]] = []
    with stopping(tmp_path) as program:
        main(program)
        program.answers.clear()
        gc.collect()
        assert references[0]() is None
