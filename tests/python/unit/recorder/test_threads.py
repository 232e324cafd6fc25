"""Threads: those started inside, those started before, short ones, and stopping from another."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from tests.support.recorder import LEVELS, faults_of, names_of, outline, paths_of, unindented
from tests.support.reference.remains import Surroundings


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.layer(x)
        return hidden.relu()


def in_thread(function: Any, *args: Any, name: str = "worker") -> None:
    """Run something in a thread to its end."""
    thread = threading.Thread(target=function, args=args, name=name)
    thread.start()
    thread.join()


def test_operations_of_a_thread_started_inside_carry_its_name() -> None:
    x, net = torch.ones(2, 3), Block()

    def work() -> None:
        y = x * 2
        net(y)

    with shapetrace.trace() as recording:
        in_thread(work, name="loader")
        x + 1
    assert outline(recording.trace) == unindented(
        """
        * (f32[2,3]) -> f32[2,3] [loader]
        root: Block(f32[2,3]) -> f32[2,3]
          layer: Linear(f32[2,3]) -> f32[2,3]
            linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside [loader]
          relu() (f32[2,3]) -> f32[2,3] [loader]
        + (f32[2,3]) -> f32[2,3]
        """
    )
    assert recording.run.passes == 1


def test_thread_started_before_is_seen_when_it_calls_a_module_and_left_alone_after() -> None:
    x, net = torch.ones(2, 3), Block()
    depths = []

    def work() -> None:
        net(x)
        depths.append(torch._C._len_torch_function_stack())

    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        pool.submit(work).result()
        with shapetrace.trace() as recording:
            pool.submit(work).result()
            pool.submit(work).result()
        pool.submit(work).result()
    assert depths == [0, 0, 0, 0]
    assert [(call.path, call.count) for call in recording.modules] == [("", 2), ("layer", 2)]
    assert {op.thread for op in recording.ops} == {"pool_0"}


def test_many_short_threads_do_not_add_up() -> None:
    x, net = torch.ones(2, 3), Block()
    with shapetrace.trace() as recording:
        for _ in range(200):
            in_thread(net, x)
    assert [(call.path, call.count) for call in recording.modules] == [("", 200), ("layer", 200)]
    assert names_of(recording.trace) == ["linear", "relu"]


def test_replicas_are_parts_of_their_models_pass() -> None:
    net, x = Block(), torch.ones(2, 3)
    results: list[torch.Tensor] = []

    class Parallel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = net

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for row in x:
                in_thread(lambda row=row: results.append(net(row)), name="replica")
            return torch.stack(results) * 2

    with shapetrace.trace(passes=1) as recording:
        Parallel()(x)
        net(x)
    assert recording.run.passes == 1
    assert names_of(recording.trace)[-2:] == ["stack", "mul"]


@pytest.mark.parametrize("level", LEVELS)
def test_stopping_while_another_thread_is_inside_a_forward(level: str) -> None:
    entered, leave = threading.Event(), threading.Event()
    depths: list[int] = []

    class Waiting(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            entered.set()
            leave.wait(10)
            return super().forward(y)

    def work() -> None:
        Waiting()(torch.ones(2, 3))
        depths.append(torch._C._len_torch_function_stack())
        depths.append(torch._C._len_torch_dispatch_stack())

    before = Surroundings.now(nn.Identity())
    recording = shapetrace.trace(level=level).start()
    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(10)
    recording.stop()
    leave.set()
    thread.join()
    assert before.changes(Surroundings.now(nn.Identity())) == []
    assert names_of(recording.trace)[-1] == "mul"
    assert not faults_of(recording.trace)
    assert depths == [0, 0]


def test_starting_and_stopping_in_other_threads() -> None:
    recording = shapetrace.trace()
    in_thread(recording.start)
    nn.Linear(1, 1)(torch.ones(1))
    in_thread(recording.stop)
    assert paths_of(recording.trace) == [""]

    with shapetrace.trace() as recording:
        torch.ones(1)
        in_thread(recording.stop)
        torch.ones(2)
    torch.ones(3)
    assert [op.label for op in recording.ops] == ["ones(1)"]
