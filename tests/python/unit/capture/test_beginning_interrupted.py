"""Exceptions of the program's while a capture begins or ends: nothing is left, or stuck."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.capture import replacing
from shapetrace.cli.captured_run import CaptureChoice, CapturedRun
from shapetrace.cli.terminal import Terminal, ViewChoice
from shapetrace.instrument import following
from shapetrace.saving.tracer import ModelTracer
from tests.support.interrupting import Interrupter, exceptions, handled_by, raising, signals

pytestmark = pytest.mark.slow

OURS = os.path.join(os.path.dirname(shapetrace.__file__), "")
SAVING = os.path.join(OURS, "hdf5", "")
STRIDE = int(os.environ.get("SHAPETRACE_EVERY_NTH_INSTRUCTION", "0"))
"""Each so many-th instruction is interrupted; 0 for some eighty of them, 1 for all."""

X = torch.ones(2, 3)


class Late(Exception):
    """What the program has raised."""


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.linear(x)
        return torch.relu(h)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        return y + 1


PATHS = ("forward.y", "inner.forward.h", "inner")


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    with handled_by(raising(Late)):
        yield


def is_ours(code: Any) -> bool:
    return bool(code.co_filename.startswith(OURS))


def begins(code: Any) -> bool:
    """Whether it is code of ours that does not save anything yet."""
    return is_ours(code) and not code.co_filename.startswith(SAVING)


def patched() -> dict[str, Any]:
    """What a tracer changes."""
    kinds = (nn.Module, nn.Linear, Inner, Model)
    found: dict[str, Any] = {}
    for kind in kinds:
        for name in ("__call__", "forward"):
            function = vars(kind).get(name)
            found[f"{kind.__name__}.{name}"] = (function, getattr(function, "__code__", None))
    hooks = nn.modules.module._global_forward_hooks
    steps: Any = sys.modules["torch.optim.optimizer"]
    return found | {
        "hooks": dict(hooks),
        "steps": dict(steps._global_optimizer_post_hooks),
        "functions": len(torch.overrides._get_current_function_mode_stack()),
        "dispatch": torch._C._len_torch_dispatch_stack(),
        "replaced": dict(replacing._replacements),
        "followed": dict(following._FOLLOWED),
        "enabled": torch._C._is_torch_function_enabled(),
        "gradients": torch.is_grad_enabled(),
    }


@pytest.mark.parametrize("comes", ["by a signal", "by another thread"])
def test_a_tracer_leaves_nothing(comes: str) -> None:
    model = Model()
    before = patched()

    def work() -> None:
        with ModelTracer(model, PATHS):
            model(X)

    interrupter = Interrupter(signals() if comes == "by a signal" else exceptions(Late), is_ours)
    for _ in range(2):  # From then on nothing is imported, or looked at for the first time.
        interrupter.run(work)
    assert patched() == before
    count, came = interrupter.count, 0
    assert count > 1000
    for at in range(1, count, STRIDE or count // 80):
        try:
            interrupter.run(work, at)
            assert not interrupter.place, f"lost at {interrupter.place}"
        except Late as late:
            came += 1
            shown = "".join(traceback.format_exception(late))
            assert OURS not in shown, (interrupter.place, shown)
        assert patched() == before, interrupter.place
    assert came > 50
    with ModelTracer(model, PATHS) as tracer:
        model(X)
    assert set(tracer.results) == set(PATHS)


def test_a_capture_begins_with_the_first_call_that_it_gets_through(tmp_path: Path) -> None:
    before = patched()
    interrupter = Interrupter(signals(), begins)
    came = 0

    def captured(at: int | None) -> tuple[bool, str]:
        """Whether the first call was interrupted, and what was said in the end."""
        errors = io.StringIO()
        choice = CaptureChoice(PATHS, output=str(tmp_path / "run.h5"), overwrite=True)
        run = CapturedRun(choice, Terminal(io.StringIO(), errors), ViewChoice())
        run._place = choice.output
        model = Model()
        run._torch_arrived()
        is_interrupted = False
        try:
            interrupter.run(lambda: model(X), at)
        except Late:
            is_interrupted = True
        for _ in range(2):
            model(X)
        code = run._hand_out_values()
        assert code == 0, (interrupter.place, errors.getvalue())
        return is_interrupted, errors.getvalue()

    captured(None)
    captured(None)
    count = interrupter.count
    assert count > 1000
    for at in range(1, count, STRIDE or count // 80):
        is_interrupted, said = captured(at)
        came += is_interrupted
        assert "capturing from Model\n" in said, (interrupter.place, said)
        assert "wrote " in said, (interrupter.place, said)
        assert patched() == before, interrupter.place
    assert came > 50
