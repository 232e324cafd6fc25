"""A breakpoint stops once for each time that its line runs, and as often as without us."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Watched, same_as_without_us
from tests.support.debug_client import Script, launch
from tests.support.session_server import SessionServer

pytestmark = pytest.mark.e2e

MODEL = """
import torch
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        scale = 2
        y = x * scale  # @op
        z = self.fc(y)  # @module
        total = (
            y + z  # @inner
        ).sum() * 1  # @outer
        return total  # @return

net = Net()
for i in range(6):
    out = net(torch.ones(2, 4) * i)
    out.backward()
print(out, net.fc.weight.grad.sum())  # @last
"""


def stop_everywhere(watched: Watched) -> None:
    watched.session.go()
    for _ in watched.stops():
        pass


def test_each_line_stops_once(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        watched.session.break_at("op", "module", "inner", "outer", "return")
        stop_everywhere(watched)
        assert sum("forward @op" in each for each in watched.seen) == 6

    same_as_without_us(MODEL, drive, tmp_path)


def test_conditions_hit_counts_and_log_points(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        session = watched.session
        session.break_at("op", condition="x.sum() > 10")
        session.break_at("module", hits="2")
        session.break_at("inner", log="y is {y.shape} {(y * 2).sum()} {self.fc(y).shape}")
        session.break_at("return", condition="self.fc(x).shape[0] == 2 and int(x[0, 0]) == 4")
        session.break_at("outer", condition="no_such_name")
        session.break_at("last")
        stop_everywhere(watched)
        assert watched.session.output("stdout").count("y is ") == 6

    heard, script = same_as_without_us(MODEL, drive, tmp_path)
    # What conditions and log points call is none of the program's doing.
    assert heard.calls(script.path) == [
        "8: empty((4, 4))",
        "8: empty(4)",
        "8: kaiming_uniform_(a=2.23606797749979)",
        "8: uniform_(a=-0.5, b=0.5)",
        "21: ones(2, 4)",
        "21: *",
        "12: *",
        "13: linear()",
        "15: +",
        "16: sum()",
        "14: *",
        "22: backward()",
        "23: grad",
        "23: sum()",
    ]
    assert heard.files() == {str(script.path)}
    assert heard.module_counts() == {"": 6, "fc": 6}
    assert heard.statuses[-1]["passes"] == 6


def test_function_breakpoints(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        watched.session.break_at_functions("forward", "__torch_function__", "<shapetrace call>")
        stop_everywhere(watched)

    same_as_without_us(MODEL, drive, tmp_path)


def test_breakpoints_set_and_taken_away_while_the_program_runs(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        session = watched.session
        session.break_at("op")
        session.go()
        for _ in range(2):
            session.resume(watched.stop().thread)
        stop = watched.stop()
        session.clear_breakpoints()
        session.break_at("inner")
        session.resume(stop.thread)
        stop = watched.stop()
        session.clear_breakpoints()
        session.resume(stop.thread)
        watched.end()

    same_as_without_us(MODEL, drive, tmp_path)


def test_pause(tmp_path: Path) -> None:
    """A pause stops in the program or in torch, never in a file of ours."""
    script = Script.write(
        """
        import torch
        from torch import nn
        net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))
        print("running", flush=True)
        going_on = True
        while going_on:
            net(torch.ones(2, 4))
        print("over")
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.go()
        session.wait_for_output("running")
        for _ in range(5):
            stop = session.pause()
            files = {place.file for place in stop.frames}
            assert files == {str(script.path)}, stop
            assert not any("shapetrace" in place.function for place in stop.frames), stop
            session.resume(stop.thread)
        stop = session.pause()
        session.evaluate("going_on = False", stop.frames[-1])
        session.resume(stop.thread)
        assert session.end().stdout == "running\nover\n"
        server.process().wait_for_end()
