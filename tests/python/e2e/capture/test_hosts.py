"""Gathering between two hosts, each with a torchrun of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.python.e2e.capture.hosts import PORT, two_hosts
from tests.python.e2e.capture.ranks import WITHIN, result, start, write
from tests.support.machine import needs_ip, needs_namespaces

pytestmark = pytest.mark.e2e

SOURCE = """
    import os
    import time
    import torch
    import torch.distributed as dist
    from rounds import a_round, tell
    from shapetrace.ranks.gathering import gathering_for_this_process
    from shapetrace.ranks.liveness import Patience

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    gathering, gathered = gathering_for_this_process(), []
    for number in range(1, 6):
        dist.all_reduce(torch.ones(1))
        gathered += gathering.hand_in(a_round(number, rank, torch.full((200_000,), rank)))
    gathered += gathering.finish()
    for entries in gathered:
        entries["x"].values = [value.unique() for value in entries["x"].values]
    tell("hosts", gathering, gathered)

    gathering = gathering_for_this_process(patience=Patience(silent=1.0, stuck=2.0, beat=0.1))
    gathered = gathering.hand_in(a_round(1, rank))
    if rank == 0:
        number = 1
        while not gathered:
            number += 1
            time.sleep(0.02)
            gathered += gathering.hand_in(a_round(number, rank))
        open("all have come", "w").close()
    # What is on both hosts: the file system, by which the test talks to them.
    while not os.path.exists("cut"):
        time.sleep(0.02)
    gathered += gathering.hand_in(a_round(10**6, rank))
    tell("cut off", gathering, gathered + gathering.finish())
    open(f"done {rank}", "w").close()
    while not os.path.exists("end"):
        time.sleep(0.02)
    os._exit(0)  # Torch's own process group has lost its other half.
"""


def until(holds: Callable[[], bool], processes: list[subprocess.Popen[str]]) -> None:
    deadline = time.monotonic() + WITHIN
    while not holds():
        for process in processes:
            assert process.poll() is None, result(process)
        assert time.monotonic() < deadline
        time.sleep(0.02)


def end(launcher: subprocess.Popen[str]) -> None:
    """It ends its ranks when it is asked to end."""
    launcher.terminate()
    try:
        launcher.communicate(timeout=WITHIN)
    finally:
        launcher.kill()


@needs_ip
@needs_namespaces
def test_two_hosts_and_a_cable_that_is_cut(tmp_path: Path) -> None:
    program = write(tmp_path, SOURCE)
    with two_hosts(tmp_path) as hosts, contextlib.ExitStack() as stack:
        processes = []
        for number, host in enumerate(hosts):
            launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2"]
            launcher += [f"--node-rank={number}", "--nproc-per-node=2"]
            launcher += [f"--master-addr={hosts[0].address}", f"--master-port={PORT}"]
            process = start(
                [*host.prefix, *launcher, str(program)],
                tmp_path,
                GLOO_SOCKET_IFNAME=host.interface,
            )
            stack.callback(end, process)
            processes.append(process)
        until(lambda: (tmp_path / "all have come").exists(), processes)
        hosts[1].cut_off()
        (tmp_path / "cut").touch()
        until(lambda: all((tmp_path / f"done {rank}").exists() for rank in range(4)), processes)
        (tmp_path / "end").touch()
        # The launchers would wait for each other, and cannot: the ranks have ended.
        for process in processes:
            process.terminate()
        main, other = [result(process) for process in processes]
    assert main.told("hosts").values() == [[[rank] for rank in range(4)]] * 5
    assert main.told("hosts").problems == []
    told = main.told("cut off")
    assert told.values()[0] == ["0:1", "1:1", "2:1", "3:1"]
    assert told.values()[-1] == ["0:1000000", "1:1000000"]
    for rank in (2, 3):
        (problem,) = [line for line in told.problems if line.startswith(f"rank {rank} ")]
        assert problem == f"rank {rank} has not been heard of for 1 s, after round 1 (train)"
        (problem,) = other.told("cut off", rank).problems
        assert problem.startswith(f"rank {rank}: the process group's key-value store does not")
