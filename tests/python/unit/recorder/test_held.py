"""What is told of the variables of a function that stands still, and which stores it names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from shapetrace.events.model import Container
from shapetrace.events.model import Tensor as TensorEvent
from shapetrace.events.stop import Stop, StoppedFunction
from shapetrace.recorder.debuggers import Debugger
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.origins import changed_by_hand
from shapetrace.recorder.session import Recorder
from shapetrace.recorder.standing import standing_of

Ask = Callable[[], Stop]


def asked(program: Callable[[Ask], object]) -> Stop:
    """What a program was told last that asks where it stands.

    It has no ``assert``: of these pytest makes what asks for a function's ``locals()``.
    """
    told: list[Stop] = []
    recorder = Recorder(RecorderOptions(debugger=Debugger((), frozenset())))
    recorder.start()

    def ask() -> Stop:
        stop = standing_of(recorder, sys._getframe(1), None)
        assert stop is not None
        told.append(stop)
        return stop

    try:
        torch.ones(1)
        program(ask)
    finally:
        recorder.stop()
    assert [note for note in recorder.notes if "fault" in note[0]] == []
    return told[-1]


def held(stopped: StoppedFunction) -> dict[str, Any]:
    """The sizes of the variables that are told of, and the lines of their stores from the first."""
    found: dict[str, Any] = {}
    for each in stopped.locals.variables:
        assert isinstance(each.value, TensorEvent | Container)
        size = each.value.shape if isinstance(each.value, TensorEvent) else each.value.kind
        found[each.name] = (size, [place[0] - stopped.line for place in each.stores])
    return found


def test_tensors_and_what_holds_them() -> None:
    def program(ask: Ask) -> object:
        x = torch.ones(2, 3)
        pair = (x, 1)
        texts = ["a"]
        number = 3
        ask()
        later = x
        return pair, texts, number, later

    told = asked(program).own
    assert held(told) == {"x": ((2, 3), [-4]), "pair": ("tuple", [-3])}
    assert told.locals.unbound == frozenset({"later"})


def test_one_that_may_have_been_changed_since_is_not_told_of() -> None:
    def program(ask: Ask) -> object:
        x = torch.ones(2)
        x.unsqueeze_(0)
        items = [x]
        items.append(x)
        read = [torch.ones(3)]
        read[0].sum()
        return ask()

    assert held(asked(program).own) == {"read": ("list", [-2])}


def test_one_that_was_set_at_a_stop_has_come_from_nowhere() -> None:
    def program(ask: Ask) -> object:
        x = torch.ones(2)
        changed_by_hand(sys._getframe())
        ask()
        y = x
        return y

    told = asked(program).own.locals
    assert (told.variables, told.unbound) == ((), frozenset())


def test_nothing_of_the_program_is_asked() -> None:
    class Mine(Tensor):
        asked = 0

        @classmethod
        def __torch_function__(cls, *given: Any, **named: Any) -> Any:
            cls.asked += 1
            return super().__torch_function__(*given, **named)

    counts: list[int] = []

    def program(ask: Ask) -> object:
        x = torch.ones(2).as_subclass(Mine)
        counts.append(Mine.asked)
        ask()
        counts.append(Mine.asked)
        return x

    assert held(asked(program).own) == {"x": ((2,), [-2])}
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_functions_that_wait_tell_of_theirs() -> None:
    class Net(nn.Module):
        def __init__(self, ask: Ask) -> None:
            super().__init__()
            self.ask = ask

        def forward(self, x: Tensor) -> Stop:
            y = x[1:]
            return inner(y, self.ask)

    def inner(given: Tensor, ask: Ask) -> Stop:
        return ask()

    told = asked(lambda ask: Net(ask)(torch.ones(4)))
    assert held(told.own) == {"given": ((3,), [-1])}
    assert held(told.outer[0]) == {"x": ((4,), [-2]), "y": ((3,), [-1])}


def test_much_is_not_looked_at() -> None:
    def program(ask: Ask) -> object:
        x = torch.ones(2)
        big = ((0,) * 30,) * 30, x
        small = (x,)
        ask()
        return big, small

    assert list(held(asked(program).own)) == ["x", "small"]
