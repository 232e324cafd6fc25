"""Processes that a program makes report for themselves: forked ones, ranks, workers of loaders."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.debug_adapter import PATIENCE
from tests.support.debug_client import DebugSession, Ended, Launch, Script, launch
from tests.support.session_server import Heard, SessionServer

pytestmark = pytest.mark.e2e


@contextmanager
def watched(
    text: str, directory: Path, more: Mapping[str, Any] | None = None, mode: Any = "debug"
) -> Iterator[tuple[SessionServer, DebugSession]]:
    """A program of which all processes are recorded, and debugged where that is asked for."""
    script = Script.write(text, directory)
    with SessionServer() as server:
        how = server.launch(mode, how=Launch(more=more or {}))
        with launch(script, how) as session, session.subprocesses():
            yield server, session


def run(text: str, directory: Path, processes: int, **options: Any) -> tuple[list[Heard], Ended]:
    """Run a program to its end; returns what so many processes said, and what it wrote."""
    with watched(text, directory, **options) as (server, session):
        session.go()
        ended = session.end()
        heard = server.processes(processes)
        for each in heard:
            each.wait_for_end()
    for each in heard:
        assert [note for note in each.coverage if "fault" in note.reason] == []
    return heard, ended


FORKS = """
import multiprocessing, os, sys, torch, warnings
# From Python 3.12 on, a fork beside the debugger's threads warns.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
net = torch.nn.Linear(3, 4)
def work(number):
    print("child", net(torch.ones(number, 3)).shape, flush=True)
if __name__ == "__main__":
    net(torch.ones(2, 3))
    {start}
    net(torch.ones(3, 3))
    print("over")
"""
BY_MULTIPROCESSING = (
    "p = multiprocessing.get_context('fork').Process(target=work, args=(7,)); p.start(); p.join()"
)
BY_HAND = "child = os.fork()\n    if child == 0: work(7); sys.exit(0)\n    os.waitpid(child, 0)"


@pytest.mark.parametrize(
    ("start", "debugged"),
    [(BY_MULTIPROCESSING, True), (BY_HAND, False)],
    ids=["multiprocessing", "os"],
)
def test_a_forked_child(start: str, debugged: bool, tmp_path: Path) -> None:
    program = FORKS.format(start=start)
    (parent, child), ended = run(program, tmp_path, 2, more={"subProcess": debugged})
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.endswith("over\n")
    assert parent.input_shapes() == {(2, 3), (3, 3)}
    assert child.input_shapes() == {(7, 3)}
    assert child.hello.process.parent == parent.hello.process.pid
    assert child.bye == "the program has ended"


def test_a_child_of_a_forked_child(tmp_path: Path) -> None:
    program = """
    import os, torch
    net = torch.nn.Linear(3, 4)
    net(torch.ones(1, 3))
    def descend(depth):
        child = os.fork()
        if child == 0:
            net(torch.ones(depth, 3))
            if depth < 3:
                descend(depth + 1)
            os._exit(depth)
        print(depth, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    descend(2)
    """
    heard, ended = run(program, tmp_path, 3)
    assert sorted(ended.stdout.splitlines()) == ["2 2", "3 3"]
    # They say hello in whatever order they come to it.
    found = {frozenset(each.input_shapes()) for each in heard}
    assert found == {frozenset({(number, 3)}) for number in (1, 2, 3)}


def test_a_fork_in_the_middle_of_a_forward(tmp_path: Path) -> None:
    """What the child goes on with has its place; what it was called with is not known there."""
    program = """
    import os, torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 4)
        def forward(self, x):
            x = self.inner(x)
            if os.fork() == 0:
                x = x.reshape(-1)
                os._exit(0)
            os.wait()
            return x * 2
    print(Net()(torch.ones(2, 3)).shape)
    """
    (parent, child), ended = run(program, tmp_path, 2)
    assert ended.stdout == "torch.Size([2, 4])\n"
    assert [op.label for op in child.ops.values()] == ["reshape(-1)"]
    assert [(each.path, each.inputs) for each in child.modules.values()] == [("", ())]
    assert {op.label for op in parent.ops.values()} >= {"*"}


def test_a_child_that_has_nothing_to_do_with_torch(tmp_path: Path) -> None:
    program = """
    import os, torch
    torch.nn.Linear(3, 4)(torch.ones(2, 3))
    for number in range(20):
        child = os.fork()
        if child == 0:
            os._exit(number)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == number
    """
    with watched(program, tmp_path) as (server, session):
        session.go()
        assert session.end().exit_code == 0
        server.process().wait_for_end()
        assert len(server.all) == 1


LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        sample = torch.arange(5) + index
        return sample.float()  # @made
if __name__ == "__main__":
    net = torch.nn.Linear(5, 4)
    for batch in DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context={how!r}):
        out = net(batch)
        print(out.shape)
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers_of_a_data_loader(how: str, tmp_path: Path) -> None:
    program = LOADER.format(how=how)
    # One more watches over what spawned processes share.
    processes = 3 if how == "fork" else 4
    heard, ended = run(program, tmp_path, processes, more={"subProcess": how == "spawn"})
    assert ended.exit_code == 0
    assert ended.stdout == "torch.Size([4, 4])\n" * 2
    parent, *workers = sorted((it for it in heard if it.ops), key=lambda it: not it.modules)
    assert len(workers) == 2
    assert parent.input_shapes() == {(4, 5)}
    for worker in workers:
        assert {"arange(5)", "+", "float()"} <= {op.label for op in worker.ops.values()}


def test_a_stop_in_a_worker_of_a_data_loader(tmp_path: Path) -> None:
    script = Script.write(LOADER.format(how="fork"), tmp_path)
    with SessionServer() as server:
        how = server.launch(how=Launch(more={"subProcess": True}))
        with launch(script, how) as session, session.subprocesses("made") as children:
            session.go()
            server.processes(2)[1].wait_for(lambda it: it.ops)
            for child in stopped(children, 2):
                stop = child.stop()
                assert str(stop.top) == "__getitem__ @made"
                assert child.evaluate("sample.shape", stop.top) == "torch.Size([5])"
                child.clear_breakpoints()
                child.resume()
            assert session.end().exit_code == 0
        for worker in server.processes(3)[1:]:
            worker.wait_for_end()
            assert {"arange(5)", "+", "float()"} <= {op.label for op in worker.ops.values()}


def test_a_stop_in_a_child_that_was_forked_in_the_middle_of_a_forward(tmp_path: Path) -> None:
    program = """
    import os, torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 4)
        def forward(self, x):
            x = self.inner(x)
            if os.fork() == 0:
                x = x.reshape(-1)
                x = x + 1  # @forked
                os._exit(0)
            os.wait()
            return x * 2
    net = Net()
    y = net(torch.ones(2, 3))
    print(y.shape)
    """
    script = Script.write(program, tmp_path)
    question = "__import__('sys').modules['shapetrace.agent.stop_query'].describe_stop({})"
    with SessionServer() as server:
        how = server.launch(how=Launch(more={"subProcess": True}))
        with launch(script, how) as session, session.subprocesses("forked") as children:
            session.go()
            (child,) = stopped(children, 1)
            stop = child.stop()
            heard = server.processes(2)[1]
            told, outer = (
                heard.stop_of(child.evaluate(question.format(place.number)))
                for place in stop.frames[:2]
            )
            child.clear_breakpoints()
            child.resume()
            assert session.end().stdout == "torch.Size([2, 4])\n"
    assert told is not None
    assert outer is not None
    # Only what the child itself has done; what the parent has is not its own.
    assert [heard.ops[each].label for each in told.own.reached] == ["reshape(-1)"]
    assert heard.modules[told.call or 0].path == ""
    assert (outer.own.function, outer.call, outer.own.reached) == ("<module>", None, frozenset())
    assert told.outer == (outer.own,)


def test_a_stop_in_a_forked_child_that_has_recorded_nothing(tmp_path: Path) -> None:
    """It has not said hello by then. It does, as the editor waits for what it says of the stop."""
    program = """
    import os, torch
    x = torch.ones(2, 3)
    def prepare(x):
        return x  # @forked
    if os.fork() == 0:
        prepare(x)
        os._exit(0)
    os.wait()
    """
    script = Script.write(program, tmp_path)
    question = "__import__('sys').modules['shapetrace.agent.stop_query'].describe_stop({})"
    with SessionServer() as server:
        how = server.launch(how=Launch(more={"subProcess": True}))
        with launch(script, how) as session, session.subprocesses("forked") as children:
            session.go()
            (child,) = stopped(children, 1)
            answer = child.evaluate(question.format(child.stop().top.number))
            told = server.processes(2)[1].stop_of(answer)
            child.clear_breakpoints()
            child.resume()
            assert session.end().exit_code == 0
    assert told is not None
    assert (told.own.function, told.call, told.own.reached) == ("prepare", None, frozenset())
    assert [each.name for each in told.own.locals.variables] == ["x"]


def stopped(sessions: list[DebugSession], number: int) -> list[DebugSession]:
    """So many of these sessions, once they have stopped."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = [
            session
            for session in list(sessions)
            if any(message.get("event") == "stopped" for message in session.connection.messages)
        ]
        if len(found) >= number:
            return found
        assert time.monotonic() < deadline, f"{len(found)} of {number} stopped"
        time.sleep(0.02)


def test_a_traced_forward_pass_does_not_end_workers(tmp_path: Path) -> None:
    program = """
    import torch
    from torch.utils.data import DataLoader
    model = torch.nn.Linear(3, 3)
    def collate(samples):
        batch = torch.stack(samples)
        with torch.no_grad():
            return model(model(batch))
    if __name__ == "__main__":
        data = [torch.ones(3)] * 8
        for batch in DataLoader(data, batch_size=2, num_workers=1, collate_fn=collate):
            print(batch.shape, flush=True)
        out = torch.nn.Linear(3, 5)(batch)
        print(out.shape, flush=True)
    """
    heard, ended = run(program, tmp_path, 2, mode="forwardPass")
    assert ended.exit_code == 0
    assert ended.stdout == "torch.Size([2, 3])\n" * 4 + "torch.Size([2, 5])\n"
    assert {frozenset(each.input_shapes()) for each in heard} == {frozenset({(2, 3)})}


RANKS = """
import os, torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
net = torch.nn.Linear(3, 4)
out = net(torch.ones(rank + 2, 3))
total = out.sum()
dist.all_reduce(total)
dist.destroy_process_group()
"""


def test_two_ranks_of_torchrun(tmp_path: Path) -> None:
    script = Script.write(RANKS, tmp_path)
    torchrun = {
        "module": "torch.distributed.run",
        "args": ["--standalone", "--nproc-per-node=2", str(script.path)],
        "subProcess": True,
    }
    with SessionServer() as server:
        how = replace(server.launch(), more={**torchrun, "program": None})
        with launch(script, how) as session, session.subprocesses():
            session.go()
            assert session.end().exit_code == 0
        ranks = [each for each in server.processes(3) if each.hello.process.rank is not None]
        for each in ranks:
            each.wait_for_end()
    assert sorted((each.hello.process.rank, each.hello.process.world_size) for each in ranks) == [
        (0, 2),
        (1, 2),
    ]
    for each in ranks:
        assert each.input_shapes() == {((each.hello.process.rank or 0) + 2, 3)}


def test_the_rank_that_only_the_process_group_knows(tmp_path: Path) -> None:
    program = """
    import os, torch
    import torch.distributed as dist
    import torch.multiprocessing
    def work(rank, file):
        dist.init_process_group("gloo", f"file://{file}", rank=rank, world_size=2)
        out = torch.nn.Linear(3, 4)(torch.ones(rank + 2, 3))
        dist.barrier()
        while not os.path.exists("seen"):
            pass
        dist.destroy_process_group()
    if __name__ == "__main__":
        torch.multiprocessing.start_processes(
            work, (os.path.abspath("meeting"),), 2, start_method="fork"
        )
    """
    with watched(program, tmp_path) as (server, session):
        session.go()
        children = server.processes(3)[1:]
        for each in children:
            each.wait_for(lambda it: it.run and it.run.rank is not None)
        (tmp_path / "seen").touch()
        assert session.end().exit_code == 0
    assert {each.run.rank for each in children if each.run} == {0, 1}
    assert {each.run.world_size for each in children if each.run} == {2}
    assert {each.statuses[-1]["rank"] for each in children} == {0, 1}
    assert sys.executable == children[0].hello.process.executable
