"""Beginning to record from another thread, in the middle of a program."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.process.main_thread import soon_on_main_thread
from shapetrace.recorder import ranks
from shapetrace.recorder.joining import running_forwards
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.session import Recorder
from tests.support.process_groups import process_group
from tests.support.recorder import names_of, paths_of
from tests.support.reference.remains import survivors
from tests.support.session_server import BACKEND


class Net(nn.Module):
    """Calls something in the middle of its forward."""

    def __init__(self, between: Callable[[], None]) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        self.between()
        x = x.relu()
        return self.inner(torch.ones(5, 3)) + x[:1]


def begun_beside(recorder: Recorder) -> None:
    """Begin as the agent does: from a thread of its own, and then on the main thread."""
    answered = threading.Semaphore(0)
    joined: list[bool] = []

    def answer(frame: FrameType) -> None:
        joined.append(recorder.join(frame))
        answered.release()

    def ask() -> None:
        recorder.start_beside()
        while not any(joined):
            assert soon_on_main_thread(answer)
            assert answered.acquire(timeout=30)

    thread = threading.Thread(target=ask)
    thread.start()
    while thread.is_alive():
        pass


def test_in_the_middle_of_a_forward() -> None:
    recorder = Recorder(RecorderOptions())
    net = Net(lambda: begun_beside(recorder))
    net(torch.ones(2, 3))
    net.between = lambda: None
    net(torch.ones(2, 3))
    recorder.stop()
    trace = recorder.snapshot()
    assert names_of(trace)[0] == "relu"
    assert paths_of(trace)[:2] == ["", "inner"]
    first, inner, second, *_ = trace.modules
    assert (first.inputs, first.count) == ((), None)
    assert inner.parent == first.id
    assert [len(second.inputs), second.count] == [1, 1]
    assert torch._C._len_torch_function_stack() == 0


def test_not_while_torch_or_compiled_code_is_running() -> None:
    recorder = Recorder(RecorderOptions())
    recorder.start_beside()
    inside: list[bool] = []

    def ask(*_: Any) -> None:
        inside.append(recorder.join(sys._getframe()))

    encoder = nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()
    encoder.register_forward_pre_hook(ask)
    handle = nn.Linear(3, 4)
    handle.register_forward_pre_hook(ask)
    encoder(torch.ones(1, 2, 4))
    torch_frame: FrameType = frame_in_torch()
    assert not recorder.join(torch_frame)
    handle(torch.ones(2, 3))
    recorder.stop()
    assert inside == [False, True]
    assert torch._C._len_torch_function_stack() == 0


def test_not_in_a_backward_pass_which_puts_the_stacks_back() -> None:
    recorder = Recorder(RecorderOptions())
    recorder.start_beside()
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    inside: list[bool] = []
    y.register_hook(lambda _: inside.append(recorder.join(sys._getframe())))
    y.sum().backward()
    assert inside == [False]
    assert recorder.join(sys._getframe())
    torch.ones(2)
    recorder.stop()
    assert names_of(recorder.snapshot()) == ["ones"]


def test_not_while_a_graph_is_traced() -> None:
    inside: list[bool] = []

    def traced(x: torch.Tensor) -> torch.Tensor:
        inside.append(recorder.join(sys._getframe()))
        value = x * 2
        return value + 1

    recorder = Recorder(RecorderOptions())
    recorder.start_beside()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.trace(traced, torch.ones(2), check_trace=False)
    recorder.stop()
    assert inside == [False]


@pytest.mark.slow
def test_not_in_a_compiled_region_wherever_torch_lies(tmp_path: Path) -> None:
    """Its files may have been found by way of a symbolic link."""
    link = tmp_path / "packages"
    link.symlink_to(Path(torch.__file__).parents[1], target_is_directory=True)
    program = f"""
import sys
sys.path[:0] = [{str(link)!r}, {str(BACKEND)!r}]
import torch
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.session import Recorder
recorder = Recorder(RecorderOptions())
@torch._dynamo.disable
def between():
    print(recorder.join(sys._getframe()))
@torch.compile(backend="eager")
def compiled(x):
    x = x * 2
    between()
    return x + 1
recorder.start_beside()
compiled(torch.ones(3))
print(recorder.join(sys._getframe()), torch.__file__)
recorder.stop()
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    inside, outside, file = ran.stdout.split() or [ran.stderr, "", ""]
    assert (inside, outside) == ("False", "True")
    assert file.startswith(str(link))


def frame_in_torch() -> FrameType:
    found: list[FrameType] = []

    class Seen(nn.Identity):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            caller = sys._getframe(1)
            found.append(caller)
            return input

    Seen()(torch.ones(1))
    return found[0]


def test_a_rank_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    assert ranks.ThisProcess().rank_and_world_size == (None, None)
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "1")
    assert ranks.ThisProcess().rank_and_world_size == (None, None)  # as in a shell on a cluster
    monkeypatch.setenv("SLURM_NTASKS", "4")
    assert ranks.ThisProcess().rank_and_world_size == (0, 4)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert ranks.ThisProcess().rank_and_world_size == (3, 8)


def test_a_recording_has_the_rank_of_its_own_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with process_group(world_size=4), shapetrace.trace() as inside:
        torch.ones(2) * 2
    with shapetrace.trace() as after:
        torch.ones(2) * 2
    with process_group(world_size=2):
        with shapetrace.trace() as another:
            torch.ones(2) * 2
        # Asked for only now, each is what it was.
        runs = [each.trace.run for each in (inside, after, another)]
    assert [(run.rank, run.world_size) for run in runs] == [(0, 4), (None, None), (0, 2)]


def test_a_process_group_that_is_taken_down_is_remembered() -> None:
    with ExitStack() as group:
        group.enter_context(process_group(world_size=3))
        with shapetrace.trace() as recording:
            group.close()
    assert (recording.trace.run.rank, recording.trace.run.world_size) == (0, 3)


def test_looking_for_forwards_keeps_no_frame() -> None:
    """Its own frame is among those that it looks at."""

    def look() -> dict[str, list[Any]]:
        value = torch.ones(2)
        running_forwards(Recorder(RecorderOptions(), None).kinds)
        return {"value": [value]}

    assert survivors(look) == []
