"""Trace Forward Pass: one pass is recorded, and then the program is ended or goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shapetrace.transport.session_address import AfterPass
from tests.support.debug_client import Ended, Script, Stop, launch
from tests.support.session_server import BACKEND, Heard, SessionServer

pytestmark = pytest.mark.e2e

TRAINING = """
import atexit, contextlib, sys, threading, time
import torch
from torch import nn

atexit.register(print, "at exit")

class Scale(nn.Module):
    def forward(self, x):
        return x / 255

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(x).relu()

class Descent:
    def step(self):
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= 0.1 * parameter.grad

    def zero_grad(self):
        net.zero_grad()

transform, net, loss_of = Scale(), Net(), nn.CrossEntropyLoss()
optimizer = Descent()
data = [(torch.ones(2, 4) * i, torch.zeros(2, dtype=torch.long)) for i in range(5)]

def train():
    for number, (x, y) in enumerate(data):
        x = transform(x)
        out = net(x)
        loss = loss_of(out, y)  # @loss
        loss.backward()
        optimizer.step()  # @step
        optimizer.zero_grad()
        print("trained", number, flush=True)

@contextlib.contextmanager
def opened():
    try:
        yield
    finally:
        print("closed", flush=True)

"""

WITH_TORCHS_OPTIMIZER = TRAINING.replace(
    "Descent()\n", "torch.optim.SGD(net.parameters(), lr=0.1)\n"
)
"""With the first step torch imports TorchDynamo, which takes as long as torch itself."""

ENDINGS = {
    "plainly": ("with opened(): train()\nprint('over')", "trained 0\nclosed\nat exit\n", 0),
    "where it catches exceptions": (
        "try:\n    train()\nexcept Exception:\n    print('caught')\nprint('over')",
        "trained 0\nat exit\n",
        0,
    ),
    "where it swallows all": (
        "try:\n    train()\nexcept:\n    print('swallowed')\nwhile True: time.sleep(0.05)",
        "trained 0\nswallowed\nat exit\n",
        0,
    ),
    "in a thread": (
        "t = threading.Thread(target=train); t.start(); t.join(); print('over')",
        "trained 0\nover\nat exit\n",
        0,
    ),
    "with its own exit code": (
        "try:\n    train()\nfinally:\n    sys.exit(5)",
        "trained 0\nat exit\n",
        5,
    ),
    "while it does other things": (
        "net(torch.ones(2, 4)); print('once', flush=True)\nwhile True: time.sleep(0.05)",
        "once\nat exit\n",
        0,
    ),
    "by itself": (
        "net(torch.ones(2, 4)); print('once')",
        "once\nat exit\n",
        0,
    ),
}


def trace(
    text: str, directory: Path, after_pass: AfterPass = "stop"
) -> tuple[Ended, Heard, Script]:
    script = Script.write(text, directory)
    with SessionServer() as server:
        with launch(script, server.launch("forwardPass", after_pass)) as session:
            if "sys.exit" not in text:  # where the debugger would stop by itself
                session.break_on_exceptions("uncaught")
            session.go()
            ended = session.end()
        heard = server.process()
        heard.wait_for_end()
    return ended, heard, script


@pytest.mark.parametrize("how", list(ENDINGS))
def test_the_program_is_ended(how: str, tmp_path: Path) -> None:
    rest, stdout, code = ENDINGS[how]
    began = time.monotonic()
    ended, heard, _ = trace(TRAINING + rest + "\n", tmp_path)
    assert (ended.stdout, ended.exit_code, ended.stderr) == (stdout, code, "")
    assert heard.states[-1] == "complete"
    assert set(heard.module_counts()) == {"", "fc"}
    assert heard.module_counts()["fc"] == 1
    assert time.monotonic() - began < 60


def test_the_whole_step_is_recorded_once(tmp_path: Path) -> None:
    _, heard, script = trace(WITH_TORCHS_OPTIMIZER + "train()\n", tmp_path)
    lines = {op.line for op in heard.ops.values()}
    assert {script.marks["loss"], script.marks["loss"] + 1} <= lines
    assert [module.class_name for _, module in sorted(heard.modules.items())] == [
        "Scale",
        "Net",
        "Linear",
        "CrossEntropyLoss",
    ]
    assert heard.module_counts() == {"": 3, "fc": 1}
    assert heard.statuses[-1]["passes"] == 1


def test_the_program_goes_on(tmp_path: Path) -> None:
    ended, heard, _ = trace(WITH_TORCHS_OPTIMIZER + "train()\n", tmp_path, "continue")
    assert ended.stdout == "".join(f"trained {i}\n" for i in range(5)) + "at exit\n"
    assert ended.exit_code == 0
    assert heard.statuses[-1]["passes"] == 1
    assert heard.states[-1] == "complete"


def test_a_forward_that_raises(tmp_path: Path) -> None:
    script = Script.write(TRAINING + "net(torch.ones(2, 5))  # @raises\n", tmp_path)
    with SessionServer() as server:
        with launch(script, server.launch("forwardPass")) as session:
            session.break_on_exceptions("uncaught")
            session.go()
            stop = session.stop()
            assert stop.reason == "exception"
            assert stop.top.function == "forward"
            session.resume(stop.thread)
            ended = session.end()
        heard = server.process()
        heard.wait_for_end()
    assert ended.exit_code == 1
    assert "mat1 and mat2 shapes cannot be multiplied" in ended.stderr
    assert str(BACKEND) not in ended.stderr
    failed = [op for op in heard.ops.values() if op.error is not None]
    assert [op.label for op in failed] == ["linear()"]
    assert heard.states[-1] == "complete"


def test_stopped_by_the_user_in_the_middle_of_a_forward(tmp_path: Path) -> None:
    text = TRAINING.replace(
        "return self.fc(x).relu()", "y = self.fc(x)\n        return y  # @inside"
    )
    script = Script.write(text + "train()\n", tmp_path)
    with SessionServer() as server:
        with launch(script, server.launch("forwardPass")) as session:
            session.break_at("inside")
            session.go()
            stop: Stop = session.stop()
            assert stop.top.function == "forward"
            heard = server.process()
            heard.wait_for(lambda it: any(op.label == "linear()" for op in it.ops.values()))
            session.disconnect()
        heard.wait_for_end()
    assert heard.bye is None or heard.bye


def test_the_clock_stands_still_at_a_stop(tmp_path: Path) -> None:
    """The user may look around for as long as he likes before the program is ended."""
    script = Script.write(TRAINING + "train()\n", tmp_path)
    with SessionServer() as server:
        with launch(script, server.launch("forwardPass")) as session:
            session.break_at("step")
            session.go()
            stop = session.stop()
            time.sleep(7)
            session.step("next", stop.thread)
            session.clear_breakpoints()
            session.resume(stop.thread)
            ended = session.end()
        server.process().wait_for_end()
    assert ended.stdout == "trained 0\nat exit\n"
