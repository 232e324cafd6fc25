"""A fault of ours is noted in coverage, and the program goes on as if nobody had watched."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.recorder import (
    modules,
    names,
    patches,
    rest,
    session,
    thread_state,
    trampolines,
    variables,
    watch_importlib_bootstrap,
    watched_threads,
)
from tests.support.recorder import LEVELS, bits_of, faults_of, names_of

watch = watch_importlib_bootstrap

BREAKABLE: list[tuple[Any, str]] = [
    (watch, "site_of"),
    (watch, "collect"),
    (watch, "describe_tensor"),
    (watch, "describe_value"),
    (watch, "api_caller"),
    (trampolines.Trampolines, "give"),
    (thread_state, "describe_tensor"),
    (thread_state, "describe_value"),
    (thread_state, "argument_texts"),
    (thread_state, "input_names"),
    (thread_state, "site_of"),
    (thread_state, "describe_error"),
    (thread_state, "widen"),
    (thread_state, "widen_all"),
    (thread_state.ThreadState, "find"),
    (thread_state.ThreadState, "locate"),
    (thread_state.ThreadState, "draft"),
    (thread_state.ThreadState, "with_output"),
    (thread_state.ThreadState, "failed"),
    (thread_state.ThreadState, "add_kernel"),
    (thread_state.ThreadState, "enter"),
    (thread_state.ThreadState, "leave"),
    (thread_state.ThreadState, "leave_failed"),
    (thread_state.ThreadState, "unwind"),
    (names, "note_locals"),
    (names, "note_callers"),
    (variables, "describe_value"),
    (variables, "runs_once"),
    (thread_state, "note_returned"),
    (session.Recorder, "assignments_of"),
    (modules.ModuleBook, "record"),
    (modules, "_detail"),
    (modules, "count_parameters"),
    (modules, "_forward_names"),
    (modules, "fused_path_check"),
    (rest, "describe_value"),
    (rest.Rest, "after_pass"),
    (rest.Rest, "wants_to_look"),
    (session.Recorder, "begin_pass"),
    (session.Recorder, "after_outermost"),
    (session.Recorder, "is_stepped_aside"),
    (session.Recorder, "intern"),
    (session.Recorder, "add_op"),
    (session.Recorder, "add_module"),
    (session.Recorder, "add_kernel"),
    (session.Recorder, "next_id"),
    (session.Recorder, "note_variable"),
    (session.Recorder, "modes_again"),
]
"""Parts that a call of the program goes through."""


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, *, by: torch.Tensor) -> torch.Tensor:
        y = self.layer(x) * by
        return torch.cat([y, y], dim=0).softmax(-1)


def story() -> object:
    """A program that goes through every part."""
    torch.manual_seed(0)
    net = Net()
    results: list[object] = []
    for size in range(1, 22):
        x = torch.ones(size, 3, requires_grad=True)
        net(x, by=torch.full((size, 1), 2.0)).pow(2).sum().backward()
        results.append(x.grad)
    for bad in (torch.ones(2, 4), torch.ones(2, 5)):
        try:
            net(bad, by=bad)
        except RuntimeError:
            results.append(traceback.format_exc())
    return bits_of(results)


def break_with(error: BaseException) -> Callable[..., Any]:
    def broken(*_: object, **__: object) -> Any:
        raise copy.copy(error)  # The traceback of one that is raised again grows and grows.

    return broken


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("owner", "name"), BREAKABLE, ids=[name for _, name in BREAKABLE])
def test_fault_is_noted_and_the_program_goes_on(
    owner: Any, name: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = story()
    recording = shapetrace.trace(level=level, settle_after=15).start()
    assert hasattr(owner, name)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, break_with(ZeroDivisionError("injected")))
        try:
            result = story()
        finally:
            patch.undo()
            recording.stop()
    assert result == plain
    assert all("injected" in fault for fault in faults_of(recording.trace))
    with shapetrace.trace(level=level) as after:
        assert story() == plain
    assert not faults_of(after.trace)
    assert "softmax" in names_of(after.trace)


@pytest.mark.parametrize(
    "name", ["find", "draft", "enter", "leave", "leave_failed", "failed", "with_output"]
)
def test_fault_in_the_middle_is_told_in_coverage(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shapetrace.trace() as recording, monkeypatch.context() as patch:
        patch.setattr(thread_state.ThreadState, name, break_with(ZeroDivisionError("injected")))
        story()
    (note,) = [each for each in recording.coverage if each.reason.startswith("fault")]
    assert note.where == "ZeroDivisionError: injected"
    assert note.count > 0


@pytest.mark.parametrize("owner_and_name", BREAKABLE[:30:3], ids=lambda pair: str(pair[1]))
def test_interrupt_in_our_code_is_the_programs(
    owner_and_name: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = owner_and_name
    net, x = Net(), torch.ones(2, 3)

    def run() -> None:
        net(x, by=x)
        torch.ones(2) @ torch.ones(2)

    with shapetrace.trace() as recording:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, break_with(KeyboardInterrupt()))
            try:
                run()
            except KeyboardInterrupt as interrupt:
                shown = traceback.format_exception(interrupt)[2:]
                assert "shapetrace/recorder" not in "".join(shown[:-1]).replace(__file__, "")
                assert not any("importlib_bootstrap" in line for line in shown)
        run()
    assert not faults_of(recording.trace)
    assert recording.modules


@pytest.mark.parametrize("name", ["step_aside", "step_back", "is_stepped_aside"])
def test_fault_while_stepping_around(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net, x = nn.TransformerEncoder(layer, 1).eval(), torch.rand(2, 3, 8)
    with torch.no_grad():
        plain = net(x)
        with shapetrace.trace() as recording, monkeypatch.context() as patch:
            patch.setattr(session.Recorder, name, break_with(ZeroDivisionError("injected")))
            seen = net(x)
    assert torch.allclose(seen, plain, atol=1e-6)
    assert faults_of(recording.trace) == ["ZeroDivisionError: injected"]


def test_fault_in_the_snapshot_does_not_end_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(session, "take_snapshot", break_with(ZeroDivisionError("injected")))
        with shapetrace.trace() as recording:
            torch.ones(1)
        with pytest.raises(ZeroDivisionError):
            _ = recording.trace
    assert names_of(recording.trace) == ["ones"]


def test_fault_at_the_start_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            watched_threads, "enter_function_mode", break_with(ZeroDivisionError("injected"))
        )
        with pytest.raises(ZeroDivisionError):
            shapetrace.trace().start()
    with monkeypatch.context() as patch:
        patch.setattr(patches, "step_around_tracing", break_with(ZeroDivisionError("injected")))
        with pytest.raises(ZeroDivisionError):
            shapetrace.trace().start()
    with shapetrace.trace() as recording:
        torch.ones(1)
    assert names_of(recording.trace) == ["ones"]


HOSTILE = """
class Hostile:
    def __getattribute__(self, name):
        asked.append(name)
        raise SystemExit(f"{name} is not to be asked for")

    def __eq__(self, other):
        raise SystemExit("not to be compared")

    def __hash__(self):
        raise SystemExit("not to be hashed")

    def __bool__(self):
        raise SystemExit("not to be judged")

    def __len__(self):
        raise SystemExit("not to be counted")

    def __iter__(self):
        raise SystemExit("not to be gone through")

    def __repr__(self):
        raise SystemExit("not to be shown")

    __str__ = __repr__

class HostileList(list):
    def __iter__(self):
        raise SystemExit("not to be gone through")

    def __len__(self):
        raise SystemExit("not to be counted")

    def __getitem__(self, index):
        raise SystemExit("not to be taken from")

class HostileDict(dict):
    items = keys = values = __iter__ = __len__ = __getitem__ = Hostile.__len__

class HostileKey:
    def __str__(self):
        raise SystemExit("not to be shown")

    __repr__ = __str__

asked = []

class Net(nn.Module):
    def forward(self, x, *args, **kwargs):
        hostile = args[0]
        mine = HostileList([x])
        y = x * 2
        return y, hostile, mine

net, x = Net(), torch.ones(2)

def main():
    asked.clear()
    hostile = Hostile()
    result = net(x, hostile, HostileList([x]), given=HostileDict(a=x), key={HostileKey(): x})
    y = result[0] + 1
    return y, list(asked)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_objects_of_the_program_are_never_asked_anything(level: str, harmless: Any) -> None:
    trace = harmless(HOSTILE, level=level)
    (call,) = trace.modules
    assert call.input_names == ("x", "*1", "*2", "given", "key")
