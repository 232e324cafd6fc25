"""What a program has raised while a recording is at work reaches it, and leaves all as it was."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import shapetrace
from shapetrace.recorder.turn import Turn
from shapetrace.recorder.values.fingerprints import Fingerprints
from tests.support.examples import ONE_IN
from tests.support.interrupting import SIGNAL, Interrupter, signals, signals_and_exceptions
from tests.support.recorder import faults_of

OURS = shapetrace.__file__.removesuffix("__init__.py")


class Late(Exception):
    """What the program has raised."""


def raise_late(signum: int, frame: object) -> None:
    raise Late


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.pad(functional.relu(self.linear(x)), (0, 1))[:, :3] + x


LINEAR = nn.Linear(3, 3)
NET = nn.Sequential(Block(), Block())
X = torch.ones(2, 3)


def backward() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    x.register_hook(lambda gradient: gradient * 1.0)
    # Not by way of a checkpoint: torch's weak references there lose exceptions without us too.
    LINEAR(x).sum().backward()


PROGRAMS: dict[str, tuple[Callable[[], object], int]] = {
    "module": (lambda: LINEAR(X), 3),
    "modules": (lambda: NET(X), 41),
    "ops": (lambda: torch.cat([X, X]).sum().item(), 7),
    "backward": (backward, 53),
}
"""What is run, and before each how-manieth of its instructions it is interrupted."""

OPTIONS: list[dict[str, Any]] = [{}, {"level": "aten"}, {"fingerprint": True}]


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    before = signal.signal(SIGNAL, raise_late)
    yield
    signal.signal(SIGNAL, before)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_reaches_the_program_from_any_instruction(name: str, options: dict[str, Any]) -> None:
    program, step = PROGRAMS[name]
    interrupter = Interrupter(signals_and_exceptions(Late))
    with shapetrace.trace(**options) as recording:
        recorder = recording._recorder
        assert recorder is not None
        for _ in range(70):  # From then on nothing of it is looked at for the first time.
            interrupter.run(program)
        (state,) = recorder.states.values()
        at = 1
        while True:
            try:
                interrupter.run(program, at)
            except Late as late:
                shown = "".join(traceback.format_exception(late))
                assert OURS not in shown, interrupter.place
            else:
                assert interrupter.count < at, f"lost at {interrupter.place}"
                break
            left = (state.stack, state.aside, state.current)
            assert left == ([], 0, None), interrupter.place
            before = recorder.counters()
            program()  # which finds the mode where torch has lost it
            assert len(torch.overrides._get_current_function_mode_stack()) == 1, interrupter.place
            assert recorder.counters() > before, interrupter.place
            at += step * ONE_IN
    assert at > 100
    assert not faults_of(recording.trace)


def test_an_interrupted_turn_is_let_go_of() -> None:
    interrupter = Interrupter(signals())
    turn = Turn()

    def take() -> None:
        turn.take(lambda: None, wait=True)

    interrupter.run(take)
    for at in range(1, interrupter.count + 1):
        with pytest.raises(Late):
            interrupter.run(take, at)
        with ThreadPoolExecutor(1) as other:
            assert other.submit(turn.take, lambda: None, False).result(), interrupter.place


def test_fingerprints_outlast_interrupts() -> None:
    fingerprints = Fingerprints()
    look = fingerprints.look(X)
    interrupter = Interrupter(signals())
    calls = interrupts = 0
    while True:
        calls += 1
        fingerprints.add(1, look, [])
        try:
            interrupter.run(fingerprints.sort, 1 + 11 * interrupts)
        except Late:
            interrupts += 1
        else:
            break
    assert interrupts > 10
    assert fingerprints.number_of(1, calls) == calls
