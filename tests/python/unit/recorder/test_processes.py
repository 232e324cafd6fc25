"""Children of a traced process: forked, spawned, worker processes of loaders, other programs."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shapetrace
from tests.support.recorder import LEVELS, faults_of, names_of

BACKEND = Path(shapetrace.__file__).parents[1]


def work() -> list[float]:
    """Something to compute, in whatever process."""
    with torch.no_grad():
        net = nn.Linear(2, 1)
        net.weight.fill_(1)
        net.bias.fill_(0)
        return [float(value) for value in net(torch.ones(3, 2)).flatten()]


def report(connection: multiprocessing.connection.Connection) -> None:
    """Compute in a child and tell what is on the stacks there."""
    connection.send((work(), torch._C._len_torch_function_stack(), nn.Module.__call__.__module__))


def untouched(name: str) -> bool:
    return name == "torch.nn.modules.module"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("level", LEVELS)
def test_forked_child_goes_on_as_if_nobody_watched(level: str) -> None:
    reading, writing = os.pipe()
    with shapetrace.trace(level=level) as recording:
        torch.ones(1)
        child = os.fork()
        if child == 0:
            told = f"{work()} {torch._C._len_torch_function_stack()} {len(recording.ops)}"
            os.write(writing, told.encode())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        torch.ones(2)
    told = os.read(reading, 1000).decode()
    os.close(reading)
    os.close(writing)
    assert status == 0
    assert told.startswith("[2.0, 2.0, 2.0] 0 ")
    assert names_of(recording.trace) == ["ones", "ones"]
    assert [(each.reason, each.count) for each in recording.coverage] == [("forked process", 1)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_inside_a_forward_and_inside_a_backward_hook() -> None:
    results: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            return
        results.append(os.waitpid(child, 0)[1])

    class Forking(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            fork()
            return y + 1

    parent = os.getpid()
    with shapetrace.trace() as recording:
        x = torch.ones(2, requires_grad=True)
        x.register_hook(lambda grad: fork())
        y = Forking()(x)
        if os.getpid() != parent:
            os._exit(0 if y.tolist() == [3, 3] and work() == [2, 2, 2] else 1)
        y.sum().backward()
        if os.getpid() != parent:
            os._exit(0 if work() == [2, 2, 2] else 1)
    assert results == [0, 0]
    assert not faults_of(recording.trace)
    assert names_of(recording.trace)[-1] == "backward"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_of_multiprocessing(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe()
    with shapetrace.trace() as recording:
        child = context.Process(target=report, args=(there,))
        child.start()
        result, depth, module = here.recv()
        child.join()
    assert (result, depth) == ([2.0, 2.0, 2.0], 0)
    assert untouched(module)
    assert child.exitcode == 0
    assert not faults_of(recording.trace)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_of_a_loader() -> None:
    data = TensorDataset(torch.arange(8.0))

    def batches() -> list[list[float]]:
        torch.manual_seed(0)
        # Python 3.14 would have a server fork them.
        loader = DataLoader(
            data, batch_size=4, num_workers=2, shuffle=True, multiprocessing_context="fork"
        )
        return [batch.tolist() for (batch,) in loader]

    plain = batches()
    with shapetrace.trace() as recording:
        assert batches() == plain
    for thread in threading.enumerate():
        if thread.name.startswith("QueueFeeder"):
            thread.join(10)  # it ends in its own time
    assert not faults_of(recording.trace)
    notes = {each.reason: each.count for each in recording.coverage}
    assert notes == {"forked process": 2}


@pytest.mark.slow
def test_program_that_forks_runs_on_with_its_recording() -> None:
    program = dedent(
        """
        import os, sys
        import torch
        import shapetrace

        with shapetrace.trace() as trace:
            x = torch.ones(2) * 2
            child = os.fork()
            if child == 0:
                y = x + 1
                sys.exit(3)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            y = x - 1
        print(status, [op.label for op in trace.ops], torch._C._len_torch_function_stack())
        """
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(BACKEND)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.stdout, ran.stderr) == ("3 ['ones(2)', '*', '-'] 0\n", "")


def test_other_programs_are_not_touched() -> None:
    with shapetrace.trace() as recording:
        torch.ones(1)
        ran = subprocess.run(
            [sys.executable, "-c", "print(2 + 2)"], capture_output=True, text=True, timeout=60
        )
    assert ran.stdout == "4\n"
    assert names_of(recording.trace) == ["ones"]
    assert not faults_of(recording.trace)


@pytest.mark.slow
def test_importing_what_the_recorder_waits_for_in_the_middle() -> None:
    program = dedent(
        """
        import sys
        import torch
        import shapetrace

        finders = list(sys.meta_path)
        with shapetrace.trace() as trace:
            assert "torch._dynamo.eval_frame" not in sys.modules
            step = torch.compile(lambda x: x * 2, backend="eager", fullgraph=True)
            step(torch.ones(2))
        step(torch.ones(2))
        count = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        print(count, sys.meta_path == finders, [each.reason for each in trace.coverage])
        # Dynamo keeps the module call since torch 2.6.
        kept = getattr(torch._dynamo.utils, "unpatched_nn_module_call", torch.nn.Module.__call__)
        print(kept is torch.nn.Module.__call__)
        """
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": str(BACKEND)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    # torch says so of itself where it was built for devices, as on the other Pythons.
    errors = [each for each in ran.stderr.splitlines() if "triton not found" not in each]
    assert (ran.stdout, errors) == ("1 True ['torch.compile region']\nTrue\n", [])
