"""Exceptions of the program's that come while values are captured: none is lost or stuck."""

from __future__ import annotations

import gc
import os
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import h5py
import pytest
import torch
from torch import nn

import shapetrace
from shapetrace import _pending_exceptions
from shapetrace.capture import copies
from shapetrace.capture.copies import unseen, unseen_among, without_modes
from shapetrace.hdf5.saver import H5PYSaverCallback
from shapetrace.inspecting import unnoticed
from shapetrace.inspecting.guards import Guards
from shapetrace.saving.tracer import ModelTracer
from tests.support.examples import ONE_IN
from tests.support.interrupting import (
    Interrupter,
    handled_by,
    raising,
    signals,
    signals_and_exceptions,
)

pytestmark = pytest.mark.slow

OURS = os.path.join(os.path.dirname(shapetrace.__file__), "")
STRIDE = int(os.environ.get("SHAPETRACE_EVERY_NTH_INSTRUCTION", 29 * ONE_IN))
"""Each so many-th instruction is interrupted; 1 for all of them."""


class Late(Exception):
    """What the program's handler raises."""


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> Any:
        h = self.linear(x)
        parts = {"a": h, "b": [h * 2, 3]}
        h = h.relu()
        h[0] = 1
        return h, parts


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor, scale: int = 2) -> torch.Tensor:
        x, parts = self.inner(x)
        for _ in range(2):
            x, parts = self.inner(x)
        y = x * scale
        return y.sum() + parts["a"].sum()


PATHS = ["forward", "forward.x", "forward.y", "inner", "inner.forward.h", "inner.forward.parts.b"]


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    with handled_by(raising(Late)):
        yield


@pytest.mark.parametrize("reduces", [False, True])
def test_no_exception_is_lost_and_nothing_is_stuck(
    reduces: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    model = Model().eval()
    saved: list[tuple[str, int]] = []

    def reduce(name: str, value: Any) -> Any:
        return value

    def gathered(name: str, entry: Any) -> None:
        saved.append((name, len(entry.values)))
        entry.values.clear()
        entry.iterations.clear()
        entry.ranks.clear()

    def work() -> Any:
        return model(torch.ones(2, 3))

    interrupter = Interrupter(
        signals_and_exceptions(Late), lambda code: code.co_filename.startswith(OURS)
    )
    lost: list[Any] = []
    shown: list[Any] = []
    callbacks: Any = {"pre_save_callbacks": (reduce,)} if reduces else {}
    tracer = ModelTracer(model, PATHS, post_gather_callbacks=(gathered,), **callbacks)
    with torch.no_grad(), tracer:
        work()
        expected = work()
        saved.clear()
        work()
        reference = sorted(saved)
        assert len(reference) >= 5
        interrupter.run(work)
        count = interrupter.count
        assert count > 1000
        gc.disable()
        try:
            for at in range(1, count, STRIDE):
                try:
                    interrupter.run(work, at)
                    if interrupter.place:
                        lost.append((at, interrupter.place))
                except Late as error:
                    lines = "".join(traceback.format_exception(error))
                    if OURS in lines:
                        shown.append((at, interrupter.place, lines))
                assert tracer._running is not None
                assert tracer._running._session._iterations.local.iteration is None, (
                    interrupter.place
                )
                work()
                saved.clear()
                assert torch.equal(work(), expected), interrupter.place
                assert sorted(saved) == reference, interrupter.place
        finally:
            gc.enable()
    assert not lost, "\n".join(map(str, lost))
    assert not shown, shown[:2]
    assert {each.partition(":")[0] for each in tracer.problems} <= {"values may be missing"}
    assert "Exception ignored" not in capfd.readouterr().err


def test_a_file_is_as_of_its_last_gather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model().eval()
    path = tmp_path / "run.h5"
    saver = H5PYSaverCallback(path)
    tracer = ModelTracer(model, ["forward", "inner.forward.h"], post_gather_callbacks=(saver,))
    ignored: list[str] = []

    def hear(unraisable: Any) -> None:
        ignored.append(repr(unraisable))

    monkeypatch.setattr(sys, "unraisablehook", hear)

    def work() -> Any:
        return model(torch.ones(2, 3))

    folder = os.path.join(OURS, "hdf5", "")
    # h5py forgets what it has closed in the callbacks of weak references.
    files = (folder, os.path.dirname(h5py.__file__), weakref.__file__, _pending_exceptions.__file__)
    interrupter = Interrupter(signals(), lambda code: code.co_filename.startswith(files))
    kept: list[Late] = []
    """A program may keep what it has caught, and with it what h5py was about to do."""
    lost: list[Any] = []
    shown: list[str] = []
    came = 0
    with torch.no_grad(), tracer:
        work()
        interrupter.run(work)
        for at in range(1, interrupter.count, STRIDE):
            try:
                interrupter.run(work, at)
                if interrupter.place:
                    lost.append((at, interrupter.place))
            except Late as error:
                came += 1
                shown.append("".join(traceback.format_exception(error)))
                kept[:] = [*kept[-2:], error]
            model.inner.linear.bias.add_(1)  # or there would be nothing new to save
            work()
    saver.close()
    assert not lost, "\n".join(map(str, lost))
    assert not ignored
    assert saver.problems
    assert not saver.has_failed
    assert sys.unraisablehook is hear
    assert not [each for each in shown if OURS in each]
    assert came > 20
    with h5py.File(path) as file:
        rows = [len(it) for it in file.values() if isinstance(it, h5py.Dataset)]
    assert max(rows) >= came


# A file that was opened just then is closed as it is let go of, as in any program.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore:.*unclosed file:pytest.PytestUnraisableExceptionWarning")
def test_a_file_is_whole_wherever_its_first_commit_is_left(tmp_path: Path) -> None:
    names = {"create", "_put_new", "commit", "_apply", "written_journal"}
    folder = os.path.join(OURS, "hdf5", "")
    interrupter = Interrupter(
        signals(), lambda code: code.co_filename.startswith(folder) and code.co_name in names
    )

    def rows_after(at: int | None) -> list[float]:
        """What is in a file of which the first commit was interrupted, and the second was not."""
        path = tmp_path / f"{at}" / "run.h5"
        path.parent.mkdir()
        saver = H5PYSaverCallback(path)
        try:
            interrupter.run(lambda: saver("a", [torch.zeros(2)], [0], [0]), at)
        except Late:
            pass
        saver("a", [torch.ones(2)], [1], [0])
        saver.close()
        gc.collect()  # What an exception has kept from its end.
        assert os.listdir(path.parent) == ["run.h5"], interrupter.place
        with h5py.File(path) as file:
            return [float(row[0]) for row in file["a"]]

    assert rows_after(None) == [0, 1]
    count = interrupter.count
    assert count > 200
    for at in range(1, count, 9 * ONE_IN):
        assert rows_after(at) in ([0, 1], [1]), interrupter.place


@pytest.mark.parametrize("guards", [unseen, without_modes, lambda: unseen_among([Own()])])
def test_torch_is_left_as_it_was(guards: Callable[[], Guards]) -> None:
    weight = torch.ones(2, requires_grad=True)

    def work() -> None:
        with guards():
            weight.detach()

    files = (copies.__file__, unnoticed.__file__)
    interrupter = Interrupter(signals(), lambda code: code.co_filename in files)
    interrupter.run(work)
    count = interrupter.count
    assert count > 40
    for at in range(1, count + 1):
        with pytest.raises(Late):
            interrupter.run(work, at)
        assert torch.is_grad_enabled(), interrupter.place
        assert torch._C._is_torch_function_enabled(), interrupter.place
        assert (weight * 2).requires_grad, interrupter.place
        assert torch.ones(2).as_subclass(Own).tanh() is not None
        assert Own.asked.pop(), interrupter.place


class Own(torch.Tensor):
    """A tensor with a say in what is done with it."""

    asked: ClassVar[list[bool]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.tanh:
            cls.asked.append(True)
        return super().__torch_function__(func, types, args, kwargs or {})
