"""Forks that have to wait for something that a thread beside the program's does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.session_server import BACKEND

PROGRAM = """
import os, sys, threading
from shapetrace.process import forks
def in_child(was_whole):
    os._exit(7 if was_whole else 8)
forks.MOST_SECONDS = float(sys.argv[1])
forks.watch_forks(in_child)
working, over = threading.Event(), threading.Event()
done = []
def work():
    with forks.undivided():
        working.set()
        over.wait(float(sys.argv[2]))
        done.append("worked")
thread = threading.Thread(target=work)
thread.start()
working.wait()
child = os.fork()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *done)
over.set()
thread.join()
child = os.fork()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *done)
"""


@pytest.mark.parametrize(
    ("patience", "takes", "told"),
    [(60, 0.2, ["7 worked", "7 worked"]), (0.1, 60, ["8", "7 worked"])],
    ids=["waits", "not forever"],
)
def test_a_fork_waits(patience: float, takes: float, told: list[str], tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    # From 3.12 on Python warns of a fork beside a thread, as the program has one here.
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(file), str(patience), str(takes)],
        env={**os.environ, "PYTHONPATH": str(BACKEND)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ran.stdout.splitlines(), ran.stderr) == (told, "")
