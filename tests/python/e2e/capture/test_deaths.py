"""Ranks that are killed. Not under torchrun, which ends all the others then."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.python.e2e.capture.ranks import Outcome, result, start, write

pytestmark = pytest.mark.e2e


class Ranks:
    """One process for each rank; all are ended with the test."""

    def __init__(self, folder: Path, source: str, count: int) -> None:
        program = write(folder, source)
        self.processes = [
            start([sys.executable, "-u", str(program), str(rank), str(count)], folder)
            for rank in range(count)
        ]

    def until_told(self, rank: int, line: str) -> None:
        stdout = self.processes[rank].stdout
        assert stdout is not None
        for told in stdout:
            if told.strip() == line:
                return
        raise AssertionError(result(self.processes[rank]).stderr)

    def go_on(self, rank: int) -> None:
        """Let its `input()` return."""
        stdin = self.processes[rank].stdin
        assert stdin is not None
        stdin.write("\n")
        stdin.flush()

    def kill(self, rank: int) -> None:
        self.processes[rank].kill()

    def result(self, rank: int) -> Outcome:
        return result(self.processes[rank])

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                assert stream is not None
                with contextlib.suppress(OSError):
                    stream.close()
            process.wait()


@contextlib.contextmanager
def ranks(folder: Path, source: str, count: int) -> Iterator[Ranks]:
    started = Ranks(folder, source, count)
    try:
        yield started
    finally:
        started.end()


def test_rank_0_finishes_without_one_that_was_killed(tmp_path: Path) -> None:
    source = """
        import sys
        import torch
        import torch.distributed as dist
        from rounds import a_round, tell
        from shapetrace.ranks.gathering import gathering_for_this_process

        rank, count = map(int, sys.argv[1:])
        dist.init_process_group("gloo", init_method="file://store", rank=rank, world_size=count)
        gathering, gathered = gathering_for_this_process(), []
        if rank == 2:
            gathering.hand_in(a_round(1, rank, torch.full((300_000,), 2)))
            input()
        elif rank == 1:
            gathering.hand_in(a_round(1, rank, torch.full((300_000,), 1)))
            gathering.hand_in(a_round(2, rank, torch.full((2,), 1)))
            sys.exit()  # Nobody calls finish.
        number = 0
        while not gathered:
            number += 1
            gathered += gathering.hand_in(a_round(number, rank, torch.zeros(1, dtype=torch.int64)))
        print("gathered", flush=True)
        input()
        gathered += gathering.finish()
        for entries in gathered:
            entries["x"].values = [value.unique() for value in entries["x"].values]
        tell("killed", gathering, gathered)
    """.replace("file://store", f"file://{tmp_path}/store")
    with ranks(tmp_path, source, 3) as started:
        started.until_told(0, "gathered")
        started.kill(2)
        assert started.result(1).code == 0
        started.go_on(0)
        outcome = started.result(0)
    assert (outcome.code, outcome.stderr) == (0, "")
    told = outcome.told("killed")
    assert told.values()[0] == [[0], [1], [2]]
    assert [value for block in told.values() for value in block].count([1]) == 2
    assert told.problems == ["rank 2 has died after round 1 (train)"]
    assert list(tmp_path.glob("store-shapetrace*")) == []


def test_the_others_end_when_rank_0_was_killed(tmp_path: Path) -> None:
    """The store is gone with it."""
    source = """
        import os
        import sys
        import time
        import torch
        import torch.distributed as dist
        from rounds import a_round, tell
        from shapetrace.ranks.gathering import gathering_for_this_process

        rank, count = map(int, sys.argv[1:])
        if rank == 0:
            store = dist.TCPStore("127.0.0.1", 0, count, True, wait_for_workers=False)
            with open("port.new", "w") as file:
                file.write(str(store.port))
            os.replace("port.new", "port")
        else:
            while not os.path.exists("port"):
                time.sleep(0.02)
            store = dist.TCPStore("127.0.0.1", int(open("port").read()), count, False)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=count)
        gathering = gathering_for_this_process()
        gathering.hand_in(a_round(1, rank))
        dist.barrier()
        print("ready", flush=True)
        input()
        gathering.hand_in(a_round(2, rank))
        tell("orphaned", gathering, gathering.finish())
    """
    with ranks(tmp_path, source, 3) as started:
        for rank in range(3):
            started.until_told(rank, "ready")
        started.kill(0)
        started.processes[0].wait()
        for rank in (1, 2):
            started.go_on(rank)
        outcomes = {rank: started.result(rank) for rank in (1, 2)}
    for rank, outcome in outcomes.items():
        assert outcome.code == 0, outcome.stderr
        (problem,) = outcome.told("orphaned", rank).problems
        # Torch tells of it at once or, on a busy machine, waits for the store until we do no more.
        gone = rf"rank {rank}: the process group's key-value store (is gone|does not answer)"
        assert re.match(gone, problem)
