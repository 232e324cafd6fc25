"""When a recording begins and when it ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.session import Recorder
from shapetrace.views.shapes import value_text
from tests.support.recorder import LEVELS, counts_of, faults_of, names_of, paths_of


def test_second_recording_is_refused_with_a_message_that_says_what_to_do(x: torch.Tensor) -> None:
    with shapetrace.trace() as outer:
        with pytest.raises(shapetrace.AlreadyTracingError, match="leave it before"):
            shapetrace.trace().start()
        with pytest.raises(shapetrace.AlreadyTracingError), shapetrace.trace():
            raise AssertionError("entered")
        x + 1
    assert names_of(outer.trace) == ["add"]


def test_what_is_no_module_is_refused_by_what_it_is() -> None:
    with pytest.raises(TypeError, match=r"^model must be an nn\.Module, not str$"):
        shapetrace.trace("model")


def test_starting_a_running_recording_again_is_refused_and_harms_nothing(x: torch.Tensor) -> None:
    with shapetrace.trace() as recording:
        with pytest.raises(shapetrace.AlreadyTracingError):
            recording.start()
        x + 1
    assert names_of(recording.trace) == ["add"]


def test_recording_can_be_used_again(net: nn.Module, x: torch.Tensor) -> None:
    recording = shapetrace.trace(net)
    with recording:
        net[0](x)  # type: ignore[index]
    assert paths_of(recording.trace) == ["0"]
    with recording:
        net[1](x)  # type: ignore[index]
    assert paths_of(recording.trace) == ["1"]


def test_stopping_twice_changes_nothing(x: torch.Tensor) -> None:
    recording = shapetrace.trace().start()
    x + 1
    recording.stop()
    x - 1
    recording.stop()
    assert names_of(recording.trace) == ["add"]
    with shapetrace.trace() as other:
        recording.stop()
        x * 1
    assert names_of(other.trace) == ["mul"]


def test_trace_is_there_while_the_recording_goes_on(net: nn.Module, x: torch.Tensor) -> None:
    with shapetrace.trace() as recording:
        net(x)
        assert paths_of(recording.trace) == ["", "0", "1"]
        x + 1
        assert names_of(recording.trace) == ["linear", "relu", "add"]


def test_trace_of_a_recording_that_never_ran_is_refused() -> None:
    with pytest.raises(RuntimeError, match="nothing was recorded yet"):
        _ = shapetrace.trace().ops


@pytest.mark.parametrize(
    "options",
    [
        {"level": "python"},
        {"passes": 0},
        {"passes": 1.5},
        {"settle_after": -1},
        {"settle_after": "2"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        shapetrace.trace(**options)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_recording_begun_inside_a_forward_and_ended_inside_another(level: str) -> None:
    recording = shapetrace.trace(level=level)

    class Beginning(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            recording.start()
            return y + 1

    class Ending(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x - 1
            recording.stop()
            return y / 2

    result = nn.Sequential(Beginning(), nn.Identity(), Ending(), nn.ReLU())(torch.ones(2))
    assert result.tolist() == [1, 1]
    assert names_of(recording.trace) == ["add", "sub"]
    assert not faults_of(recording.trace)


def test_stopping_in_a_hook_of_a_backward_pass() -> None:
    recording = shapetrace.trace()
    with recording:
        leaf = torch.ones(2, requires_grad=True)
        leaf.register_hook(lambda grad: recording.stop())
        (leaf * 2).sum().backward()
        after = leaf + 1
        leaf.grad = torch.zeros(2)
        (after * 3).sum().backward()
    assert names_of(recording.trace) == ["ones", "register_hook", "mul", "sum"]
    assert leaf.grad.tolist() == [3, 3]


def test_passes_end_the_recording(net: nn.Module, x: torch.Tensor) -> None:
    with shapetrace.trace(passes=2) as recording:
        for _ in range(4):
            nn.Flatten()(x)
            net(x)
    assert counts_of(recording) == {"flatten(1, -1)": 2, "linear()": 2, "relu()": 2}
    assert recording.run.passes == 2


def test_failed_pass_is_a_pass_and_the_next_call_is_left_alone(net: nn.Module) -> None:
    narrow = torch.ones(2, 3)
    with shapetrace.trace(passes=1) as recording:
        for _ in range(2):
            with pytest.raises(RuntimeError):
                net(narrow)
    assert recording.run.passes == 1
    assert counts_of(recording) == {"linear()": 1}


@pytest.mark.parametrize("fails", [False, True])
def test_through_step_ends_when_the_next_pass_would_begin(
    fails: bool, net: nn.Module, x: torch.Tensor
) -> None:
    ended: list[int] = []
    calls: list[int] = []

    class Counting(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            if fails and len(calls) > 1:
                raise ValueError("the second pass")
            result: torch.Tensor = super().forward(x)
            return result

    counting = Counting(*net)  # type: ignore[misc]
    optimizer = torch.optim.SGD(counting.parameters(), lr=0.1)
    options = RecorderOptions(passes=1, through_step=True)
    recorder = Recorder(options, on_complete=lambda: ended.append(len(calls)))
    recorder.start()
    try:
        for _ in range(2):
            optimizer.zero_grad()
            loss = counting(x).sum()
            loss.backward()
            optimizer.step()
    except ValueError:
        assert fails
    assert ended == [1]
    assert len(calls) == 2
    assert not recorder.active
    assert recorder.complete
    seen = {op.label.split("(")[0]: op.count for op in recorder.snapshot().ops}
    assert seen["linear"] == seen["sum"] == seen["backward"] == 1
    recorder.stop()


def test_a_step_may_have_passes_of_several_modules() -> None:
    judge, make = nn.Linear(3, 1), nn.Linear(2, 3)
    options = RecorderOptions(passes=1, through_step=True)
    recorder = Recorder(options)
    recorder.start()
    steps = 0
    while recorder.active and steps < 5:
        real, noise = torch.ones(4, 3), torch.ones(4, 2)
        (judge(real).sum() - judge(make(noise)).sum()).backward()
        steps += 1
    assert steps == 2
    counted = {(call.class_name, call.count) for call in recorder.snapshot().modules}
    assert counted == {("Linear", 1)}
    assert len(recorder.snapshot().modules) == 3
    assert recorder.passes_seen == 3
    recorder.stop()


def test_values_are_looked_at_again_where_the_calls_beside_them_repeat() -> None:
    def pass_on(parts: list[torch.Tensor]) -> None:
        for part in parts:
            same = part
            torch.ones(1)
            other = same
            if other is part:
                torch.ones(2)

    with shapetrace.trace() as recording:
        pass_on([torch.ones(size) for size in (3, 4, 5)])
    held = [(each.name, value_text(each.tensor)) for each in recording.trace.variables]
    for name in ("part", "same", "other"):
        assert [text for known, text in held if known == name] == ["f32[3]", "f32[4]", "f32[5]"]


def test_completion_that_ends_the_program_is_let_through(net: nn.Module, x: torch.Tensor) -> None:
    def leave() -> None:
        raise SystemExit(0)

    recorder = Recorder(RecorderOptions(passes=1), on_complete=leave)
    recorder.start()
    with pytest.raises(SystemExit):
        net(x)
    assert not recorder.active


def test_patch_of_the_program_that_outlives_a_recording(net: nn.Module, x: torch.Tensor) -> None:
    calls: list[str] = []
    recording = shapetrace.trace().start()
    original = nn.Module.__call__

    def patched(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        calls.append(type(module).__name__)
        return original(module, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn.Module, "__call__", patched)
        net(x)
        recording.stop()
        net(x)
        with shapetrace.trace() as later:
            net(x)
    # The program has put back what it found, which was ours.
    net(x)
    with shapetrace.trace() as last:
        net(x)
    nn.Module.__call__ = nn.Module._wrapped_call_impl  # type: ignore[method-assign]
    assert calls == ["Sequential", "Linear", "ReLU"] * 3
    for each in (recording, later, last):
        assert [(call.path, call.count) for call in each.modules] == [("", 1), ("0", 1), ("1", 1)]
