"""Exceptions of the program's that come while following variables: none is lost or stays."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest
import torch

import shapetrace
from shapetrace.events.followed import CallBegan, CallEnded, VariableChanged
from shapetrace.variables.calls import running
from shapetrace.variables.decorators import var_tracker
from tests.support.examples import ONE_IN
from tests.support.interrupting import Interrupter, exceptions, handled_by, raising, signals

OURS = os.path.join(os.path.dirname(shapetrace.__file__), "")
STRIDE = int(os.environ.get("SHAPETRACE_EVERY_NTH_INSTRUCTION", 23 * ONE_IN))
"""Each so many-th instruction is interrupted; 1 for all of them."""

told: list[Any] = []


class Late(Exception):
    """What the program's handler raises."""


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    with handled_by(raising(Late)):
        yield
    told.clear()


def tracked(function: Any) -> Any:
    return var_tracker("x", "total", "parts['a']", handler=told.append)(function)


def make_plain() -> Callable[[], Any]:
    @tracked
    def inner(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        x[0] = 3
        return x

    @tracked
    def outer(total: Any) -> Any:
        parts = {"a": torch.ones(2)}
        for number in range(2):
            total = total + inner(torch.ones(2) * number)
            parts["a"] += number
        try:
            total = [part * 2 for part in total]
        finally:
            parts = {}
        return total, parts

    return lambda: outer(torch.zeros(2))


def make_raising() -> Callable[[], Any]:
    @tracked
    def failing(x: Any) -> Any:
        x = x * 2
        raise KeyError(x)

    def work() -> Any:
        try:
            failing(torch.ones(2))
        except KeyError:
            return "raised"

    return work


def make_generating() -> Callable[[], Any]:
    @tracked
    def generating(total: int) -> Any:
        for number in range(3):
            total = total + number
            yield sum(each + total for each in range(2))

    def work() -> Any:
        return [*generating(1)], next(generating(2))

    return work


def outline() -> list[Any]:
    """What was told, without the numbers of calls and times."""
    found: list[Any] = []
    for event in told:
        match event:
            case CallBegan():
                found.append(("began", event.function, event.depth, event.line))
            case CallEnded():
                found.append(("ended", event.function, event.outcome, event.depth, event.line))
            case VariableChanged():
                found.append((event.name, event.line, event.differs, str(event.after)))
    return found


def is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(OURS)


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_plain, make_raising, make_generating])
@pytest.mark.parametrize("comes", ["by a signal", "by another thread"])
def test_no_exception_is_lost_and_nothing_stays(
    make: Callable[[], Callable[[], Any]], comes: str, capfd: pytest.CaptureFixture[str]
) -> None:
    effects = signals() if comes == "by a signal" else exceptions(Late)
    work = make()
    work()  # What is made once is there.
    told.clear()
    expected = work()
    reference = outline()
    interrupter = Interrupter(effects, is_ours)
    interrupter.run(work)
    count = interrupter.count
    assert count > 500
    lost = []
    shown = []
    gc.disable()
    try:
        for at in range(1, count, STRIDE):
            place = ""
            try:
                interrupter.run(work, at)
                place = interrupter.place
                if place:
                    lost.append((at, place))
            except Late as error:
                lines = "".join(traceback.format_exception(error))
                if OURS in lines:
                    shown.append((at, interrupter.place, lines))
            assert not running, interrupter.place
            told.clear()
            assert repr(work()) == repr(expected), interrupter.place
            assert outline() == reference, interrupter.place
    finally:
        gc.enable()
    assert not lost, lost[:5]
    assert not shown, shown[:2]
    assert "Exception ignored" not in capfd.readouterr().err
    assert sys.gettrace() is None
