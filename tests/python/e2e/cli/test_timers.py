"""A timer that a program has left running does not keep us from giving out what was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapetrace.events import codec
from tests.python.e2e.cli.programs import shapetrace

pytestmark = pytest.mark.e2e

PROGRAM = """\
import signal
import torch
from torch import nn

class Late(TimeoutError):
    pass

def handle(number, frame):
    raise Late

nn.Linear(3, 4)(torch.ones(2, 3))
signal.signal(signal.SIGALRM, handle)
{end}
"""

EVERY = "signal.setitimer(signal.ITIMER_REAL, 0.01)"
ENDS = {
    "its last line": EVERY,
    "leaving at once": f"import os\n{EVERY}\nos._exit(0)",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_trace_is_given_out(tmp_path: Path, end: str) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(end=ENDS[end]))
    result = shapetrace("run", "-o", "run.json", program.name, cwd=tmp_path)
    assert result.code == 0, result.stderr
    assert "ignored" not in result.stderr
    assert "lost" not in result.stderr
    assert codec.load(tmp_path / "run.json").modules
