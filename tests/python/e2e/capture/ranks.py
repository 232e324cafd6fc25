"""Programs of several ranks, each a process of its own, and what they tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
BESIDE = Path(__file__).parent / "beside"
WITHIN = 120.0

_OF_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Told:
    """What one rank told of one scenario."""

    gathered: list[dict[str, list[list[Any]]]]
    """For each round and name: the rank and value of each."""

    problems: list[str]

    def values(self, name: str = "x") -> list[list[Any]]:
        return [[value for _, value in entries[name]] for entries in self.gathered]


@dataclass(frozen=True)
class Outcome:
    code: int
    stdout: str
    stderr: str

    def told(self, scenario: str, rank: int = 0) -> Told:
        for line in self.stdout.splitlines():
            if line.startswith('{"scenario"'):
                told = json.loads(line)
                if told["scenario"] == scenario and told["rank"] == rank:
                    return Told(told["gathered"], told["problems"])
        raise AssertionError(f"rank {rank} told nothing of {scenario}: {self.stdout}{self.stderr}")


def environment(**extra: str) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if name not in _OF_LAUNCHERS}
    path = os.pathsep.join([str(ROOT / "python_backend"), str(BESIDE)])
    return environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | extra


def write(folder: Path, source: str) -> Path:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(source))
    return path


def start(command: Sequence[str], folder: Path, **extra: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(**extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process: subprocess.Popen[str]) -> Outcome:
    """Wait for its end; it does not outlive the test."""
    try:
        stdout, stderr = process.communicate(timeout=WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        raise AssertionError(f"it hangs: {stdout}{stderr}") from None
    return Outcome(process.returncode, stdout, stderr)


def torchrun(folder: Path, source: str, ranks: int, **extra: str) -> Outcome:
    """The program under torchrun, on a port that the system chooses."""
    program = write(folder, source)
    launcher = [sys.executable, "-m", "torch.distributed.run"]
    # Not --standalone: it asks for the machine's name, which need not be known.
    where = ["--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    arguments = [*where, f"--nproc-per-node={ranks}", str(program)]
    return result(start([*launcher, *arguments], folder, **extra))
