"""Runs the table of programs in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.python.e2e.cli.programs import ROOT, environment

PROGRAMS = Path(__file__).with_name("programs.py")


class Outcome(NamedTuple):
    stdout: str
    stderr: str


def lines_of(folder: Path, *command: str) -> tuple[dict[str, Any], Outcome]:
    """What a command with the table as its program writes, by kind."""
    written = folder / "lines.json"
    done = subprocess.run(
        [sys.executable, *command, str(written)],
        cwd=folder,
        env=environment({"PYTHONPATH": os.pathsep.join([str(ROOT / "python_backend"), str(ROOT)])}),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, written.read_text().splitlines())
    return {line["kind"]: line for line in lines}, Outcome(done.stdout, done.stderr)
