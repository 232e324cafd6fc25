"""What a program has raised while a recording begins or ends reaches it, and leaves nothing."""

from __future__ import annotations

import gc
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.compat.torch_code_tracing import TracingMode
from shapetrace.compat.tracy_nn import TensorOpsTracer, Tracer
from tests.support.interrupting import SIGNAL, Interrupter, exceptions, signals
from tests.support.reference.remains import LOCKS

OURS = os.path.join(os.path.dirname(shapetrace.__file__), "")
STRIDE = int(os.environ.get("SHAPETRACE_EVERY_NTH_INSTRUCTION", "0"))
"""Each so many-th instruction is interrupted; 0 for thirty of them, 1 for all."""

LINEAR = nn.Linear(3, 3)
X = torch.ones(1, 3)


class Late(TimeoutError):
    """What the program has raised: an OSError, as timeouts are."""


def raise_late(signum: int, frame: object) -> None:
    raise Late


def recorded() -> None:
    with shapetrace.trace():
        LINEAR(X)


def recorded_aten() -> None:
    with shapetrace.trace(level="aten"):
        LINEAR(X)


def listed() -> None:
    with TracingMode():
        X.add(1)


class Doubled(TracingMode):
    """Takes part in each op."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def dispatched() -> None:
    with Doubled():
        X.add(1)


def traced() -> None:
    with Tracer("Net").trace(LINEAR):
        LINEAR(X)


def started() -> None:
    tracer = Tracer("Net", live=True)
    with tracer:
        tracer.start(LINEAR)
        LINEAR(X)


def operated() -> None:
    tracer = TensorOpsTracer()
    tracer._start_tensor_ops_tracing()
    try:
        X.add(1)
    finally:
        tracer._stop_tensor_ops_tracing()


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.signal(SIGNAL, raise_late)
    gc.disable()  # Python drops what comes in a callback of its own while it collects.
    yield
    gc.enable()
    signal.signal(SIGNAL, before)


def is_ours(code: Any) -> bool:
    return bool(code.co_filename.startswith(OURS))


# A file that was opened just then is closed as it is let go of, as in any program.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore:.*unclosed file:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("comes", ["by a signal", "by another thread"])
@pytest.mark.parametrize(
    "program", [recorded, recorded_aten, listed, dispatched, traced, started, operated]
)
def test_it_reaches_the_program_and_nothing_is_left(
    program: Callable[[], None], comes: str, capfd: pytest.CaptureFixture[str]
) -> None:
    interrupter = Interrupter(signals() if comes == "by a signal" else exceptions(Late), is_ours)
    original = (nn.Module.__call__, threading.Thread._bootstrap_inner)  # type: ignore[attr-defined]
    for _ in range(3):  # From then on nothing is imported, or looked at for the first time.
        interrupter.run(program)
    interrupter.run(program)
    count, came = interrupter.count, 0
    assert count > 1000
    for at in range(1, count, STRIDE or count // 30):
        try:
            interrupter.run(program, at)
            assert not interrupter.place, f"lost at {interrupter.place}"
        except Late as late:
            came += 1
            shown = "".join(traceback.format_exception(late))
            assert OURS not in shown, (interrupter.place, shown)
        left = (nn.Module.__call__, threading.Thread._bootstrap_inner)  # type: ignore[attr-defined]
        assert left == original, interrupter.place
        assert not torch.overrides._get_current_function_mode_stack(), interrupter.place
        assert not torch._C._len_torch_dispatch_stack(), interrupter.place
        assert not [name for name, lock in LOCKS.items() if lock._is_owned()], interrupter.place
    assert came > 10
    with shapetrace.trace() as recording:
        LINEAR(X)
    assert len(recording.modules) == 1
    assert "Exception ignored" not in capfd.readouterr().err
