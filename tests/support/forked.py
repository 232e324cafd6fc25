"""Programs that may die, each in a fork of one process that has imported torch and Shapetrace.

To import these takes longer than most such programs run. What the beginning or the end of a Python
process has to do with belongs in a process of its own instead.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60


@dataclass(frozen=True)
class Outcome:
    """How a program ended, and what it printed."""

    code: int
    stdout: str
    stderr: str


def run_forked(source: str, folder: Path) -> Outcome:
    """Run a program as the ``program.py`` of a folder, which is the current one meanwhile."""
    (folder / "program.py").write_text(source, "utf-8")
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{json.dumps(str(folder))}\n")
    process.stdin.flush()
    code = int(process.stdout.readline())
    return Outcome(code, (folder / "stdout").read_text(), (folder / "stderr").read_text())


@functools.cache
def _process() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"},
    )
    atexit.register(process.communicate)
    return process


def _serve() -> None:
    import multiprocessing.shared_memory  # noqa: F401

    import numpy as np  # noqa: F401
    import torch  # noqa: F401

    import shapetrace
    import shapetrace.saving.tracer

    assert shapetrace.var_tracker is not None
    for line in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(_run(Path(json.loads(line))))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, flush=True)


def _run(folder: Path) -> int:
    os.chdir(folder)
    for name, number in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    signal.alarm(SECONDS)
    path = folder / "program.py"
    names = {"__name__": "__main__", "__file__": str(path)}
    try:
        exec(compile(path.read_text("utf-8"), str(path), "exec"), names)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    _serve()
