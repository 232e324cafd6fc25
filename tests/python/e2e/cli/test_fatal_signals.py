"""Whatever kills a program, it dies as it would, and what was recorded until then is there."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shapetrace.events import codec
from shapetrace.process.alternate_stack import is_possible
from tests.python.e2e.cli.programs import ROOT, shapetrace

pytestmark = pytest.mark.e2e

PROGRAM = """\
import ctypes, os, signal, sys, threading
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
    def forward(self, x):
        return self.fc(x).relu()
y = Net()(torch.ones(2, 3))
z = y + 1
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGTERM)
assert os.waitpid(child, 0)[1] == signal.SIGTERM
"""

DEATHS = {
    "a segmentation fault": ("ctypes.string_at(0)", -signal.SIGSEGV),
    "an abort": ("os.abort()", -signal.SIGABRT),
    "a request, while it hangs with the interpreter held": (
        "os.system(f'(sleep 1; kill -TERM {os.getpid()}) &') or ctypes.PyDLL(None).sleep(600)",
        -signal.SIGTERM,
    ),
    "leaving at once": ("os._exit(3)", 3),
}

OVERFLOW = """\
import resource
sys.setrecursionlimit(10**9)
if sys.version_info >= (3, 12):
    most = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 19, most))
Function = ctypes.PYFUNCTYPE(None)
function = Function(lambda: function())
function()
"""
"""Of the stack: a call by way of C that makes itself, and keeps the interpreter.

Python 3.12 and later allow only so many, so there the stack is made small.
"""

if is_possible():
    DEATHS["an overflow of the stack"] = (OVERFLOW, -signal.SIGSEGV)

TOOLS = {
    "TracingMode": ("with TracingMode():", "addmm(f32[4], f32[2,3], f32[3,4]) -> f32[2,4]"),
    "Tracer": ("with Tracer('net').trace():", "relu()"),
    "TensorOpsTracer": (
        "TensorOpsTracer()._start_tensor_ops_tracing()\nif True:",
        "linear(f32[2,3], f32[4,3], f32[4]) -> f32[2,4]",
    ),
}
"""A block in which each records, and what it prints."""


@pytest.mark.parametrize("death", DEATHS)
def test_what_was_recorded_is_written(death: str, tmp_path: Path) -> None:
    statement, code = DEATHS[death]
    (tmp_path / "script.py").write_text(f"{PROGRAM}{statement}\n")
    ran = shapetrace("run", "-o", "run.json", "--passes", "all", "script.py", cwd=tmp_path)
    assert ran.code == code
    assert "f32[2,4]" in ran.stdout
    assert ran.stdout.count("shapetrace") == 0
    trace = codec.load(tmp_path / "run.json")
    assert [op.label for op in trace.ops if op.line in (9, 11)] == ["linear()", "relu()", "+"]
    assert ("is ended by SIG" in ran.stderr) == (code < 0)


STUCK = """\
def hold():
    os.system(f"(sleep 1; kill -SEGV {os.getpid()}) &")
    ctypes.PyDLL(None).sleep(600)
threading.Thread(target=hold, daemon=True).start()
ctypes.CDLL(None).pause()
"""
"""A fault while the interpreter is held for ever, as where it comes in the midst of taking it."""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="for one processor",
)
def test_a_process_that_cannot_enter_python_ends(tmp_path: Path) -> None:
    handler = "signal.signal(signal.SIGALRM, lambda *_: None)\n"  # It is to end all the same.
    (tmp_path / "script.py").write_text(f"{PROGRAM}{handler}{STUCK}")
    ran = shapetrace("run", "-o", "run.json", "--passes", "all", "script.py", cwd=tmp_path)
    assert ran.code == -signal.SIGALRM


def test_calls_are_printed_as_they_come(tmp_path: Path) -> None:
    """SIGKILL leaves what was printed before."""
    (tmp_path / "script.py").write_text(f"{PROGRAM}os.kill(os.getpid(), signal.SIGKILL)\n")
    ran = shapetrace("run", "--live", "script.py", cwd=tmp_path)
    assert ran.code == -signal.SIGKILL
    for line in (
        "ones(2, 3) -> f32[2,3] ",
        "│ │ linear(f32[2,3], f32[4,3], f32[4]) -> f32[2,4] ",
        "│ └ fc (Linear) -> f32[2,4]",
        "│ relu(f32[2,4]) -> f32[2,4] ",
        "└ Net -> f32[2,4]",
    ):
        assert ran.stdout.count(f"\n{line}") == 1


@pytest.mark.parametrize(
    ("tool", "death"),
    [
        *(("TracingMode", death) for death in DEATHS),
        *(("Tracer", death) for death in ("an abort", "leaving at once")),
        *(("TensorOpsTracer", death) for death in ("a segmentation fault", "leaving at once")),
    ],
)
def test_the_replaced_tools_print_it_too(tool: str, death: str, tmp_path: Path) -> None:
    block, printed = TOOLS[tool]
    statement, code = DEATHS[death]
    body = "".join(f"    {line}\n" for line in f"{PROGRAM}{statement}".splitlines())
    (tmp_path / "script.py").write_text(f"from shapetrace import {tool}\n{block}\n{body}")
    ran = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python_backend"), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == code
    assert ran.stdout.count(printed) == 1
    assert ran.stdout.count("is ended by SIG") == (code < 0)
    assert ran.stderr == ""


def test_nothing_is_left_when_the_block_has_ended(tmp_path: Path) -> None:
    """The program's death is its own again: nothing more is printed."""
    (tmp_path / "script.py").write_text(
        "from shapetrace import TracingMode\nwith TracingMode(quiet=True) as tracing:\n"
        "    import ctypes, sys, torch\n    torch.ones(2)\ntracing.quiet = False\n" + OVERFLOW
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python_backend")}
    command = [sys.executable, "script.py"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGSEGV, "", "")
