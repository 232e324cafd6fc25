"""When a process began."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from shapetrace.process.start_time import process_began_at
from tests.support.session_server import BACKEND

PROGRAM = """
from shapetrace.process.start_time import process_began_at
input()
print(process_began_at())
"""

TOLERANCE = 0.05
"""What clocks differ by: processes are counted in hundredths of a second."""


def test_it_is_known_on_linux_alone() -> None:
    assert (process_began_at() is not None) == (sys.platform == "linux")


def test_it_is_when_the_process_began_and_not_when_it_is_asked() -> None:
    before = time.time()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(BACKEND)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        started = time.time()
        answer, _ = program.communicate("go on\n", timeout=60)
    if sys.platform == "linux":
        assert before - TOLERANCE <= float(answer) <= started + TOLERANCE
