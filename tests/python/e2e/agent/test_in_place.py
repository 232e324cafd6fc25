"""At a stop an expression is evaluated and recorded, as if the program had it there."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shapetrace.events.stop import Stop
from tests.support.debug_client import DebugSession, Place, Script, launch
from tests.support.running import enter, running
from tests.support.session_server import Heard, SessionServer

pytestmark = pytest.mark.e2e

MODULE = "__import__('sys').modules['shapetrace.agent.in_place']"


class Evaluating:
    """A debugged program in which expressions are evaluated."""

    def __init__(self, session: DebugSession, server: SessionServer, script: Script) -> None:
        self.session = session
        self.server = server
        self.script = script
        self._numbers = itertools.count(1)

    @property
    def heard(self) -> Heard:
        return self.server.process()

    def run(self, place: Place, text: str) -> str:
        """What the user is told of an expression that is evaluated in a frame."""
        number = next(self._numbers)
        self.session.evaluate(f"{MODULE}.run({number}, {place.number}, {text!r})", place)
        came = self.outcome(number)
        assert came is not None
        if came["kind"] == "cancelled":
            return "cancelled"
        return f"{came['kind']}: {came['value']}, {came['calls']} calls"

    def begin(self, place: Place, text: str) -> int:
        """The number of an evaluation that is not waited for."""
        number = next(self._numbers)
        expression = f"{MODULE}.run({number}, {place.number}, {text!r})"
        arguments = {"expression": expression, "context": "repl", "frameId": place.number}
        self.session.connection.send("evaluate", arguments)
        return number

    def outcome(self, number: int) -> dict[str, Any] | None:
        """What came of an evaluation; None while that is not known."""
        came: dict[str, Any] | None = json.loads(
            self.session.evaluate(f"{MODULE}.outcome({number})")
        )
        return came

    def wait_for_outcome(self, number: int) -> None:
        deadline = time.monotonic() + 30
        while self.outcome(number) is None:
            assert time.monotonic() < deadline

    def here(self, place: Place) -> Stop | None:
        """What the server is told of a frame."""
        module = "__import__('sys').modules['shapetrace.agent.stop_query']"
        return self.heard.stop_of(self.session.evaluate(f"{module}.describe_stop({place.number})"))

    def wait_for_calls(self, number: int) -> list[str]:
        """The calls in the program's file, once there are so many."""
        self.heard.wait_for(lambda it: len(it.calls(self.script.path)) >= number)
        return self.heard.calls(self.script.path)


@contextmanager
def stopped(text: str, directory: Path, *marks: str, **details: Any) -> Iterator[Evaluating]:
    """Debug a program that stops at lines."""
    script = Script.write(text, directory)
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.break_at(*marks, **details)
        session.go()
        yield Evaluating(session, server, script)


NET = """
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)
            self.dropout = nn.Dropout(0.5)

        def forward(self, x):
            h = self.fc(x)
            h = self.dropout(h)  # @inside
            return h.relu()

    net = Net()
    x = torch.ones(3, 4)
    loss = net(x).sum()  # @loss
    print("drew", torch.rand(1).item())  # @end
"""


def test_nothing_had_been_recorded_of_the_model_yet(tmp_path: Path) -> None:
    """Neither is anything else than that the program runs it later, with the same chances."""
    drew = run(NET, tmp_path).stdout
    with stopped(NET, tmp_path, "loss") as program:
        stop = program.session.stop()
        before = program.wait_for_calls(5)
        answer = program.run(stop.top, "net(x)")
        assert answer == "value: f32[3,2] · requires grad, 3 calls"
        after = program.wait_for_calls(len(before) + 3)
        assert after[len(before) :] == ["13: linear()", "14: dropout()", "15: relu()"]
        assert {each.file for each in program.heard.modules.values() if not each.path} == {
            "<evaluated at program.py:19>"
        }
        program.session.resume(stop.thread)
        ended = program.session.end()
        program.heard.wait_for_end()
        assert ended.stdout == drew
        assert program.heard.coverage == ()
        assert program.heard.module_counts() == {"": 2, "fc": 2, "dropout": 2}
        assert program.heard.statuses[-1]["passes"] == 1


def run(text: str, directory: Path) -> Any:
    """The end of a program that nobody watches or stops."""
    with launch(Script.write(text, directory)) as session:
        session.go()
        return session.end()


def test_within_a_forward_that_stands_still(tmp_path: Path) -> None:
    with stopped(NET, tmp_path, "inside") as program:
        stop = program.session.stop()
        inner, outer = stop.frames
        here = [program.here(place) for place in stop.frames]
        assert program.run(inner, "self.dropout(h)").startswith("value: f32[3,2]")
        assert program.run(outer, "net.fc(x)").startswith("value: f32[3,2]")
        # A breakpoint in what is evaluated is passed by: the debugger is at work already.
        assert program.run(outer, "net(x)").startswith("value: f32[3,2]")
        assert [program.here(place) for place in stop.frames] == here
        program.heard.wait_for(lambda it: len(it.modules) >= 7)
        modules = sorted(program.heard.modules.values(), key=lambda each: each.id)
        places = [f"{Path(each.file or '').name}:{each.line} {each.path}" for each in modules]
        assert places == [
            "program.py:19 ",
            "program.py:13 fc",
            "<evaluated at program.py:14>:1 dropout",
            "<evaluated at program.py:19>:1 ",
            "<evaluated at program.py:19>:1 ",
            "program.py:13 fc",
            "program.py:14 dropout",
        ]
        assert modules[2].parent == modules[0].id
        assert program.run(inner, "missing(h)") == (
            "error: NameError: name 'missing' is not defined, 0 calls"
        )
        wrong = program.run(inner, "self.fc(h.relu())")
        assert wrong.startswith("error: RuntimeError: mat1 and mat2 shapes cannot be multiplied")
        assert wrong.endswith("2 calls")
        program.session.resume(stop.thread)
        program.session.end()


SLOW = """
    import threading
    import time
    import torch

    def slow(x):
        for _ in range(100):
            x = x + 1
            print("slow", flush=True)
            while not go.wait(0.05):
                pass
        return x

    go = threading.Event()
    x = torch.ones(2)
    print("begun", flush=True)  # @stop
    x = x * 3
    print("ended", x.tolist(), flush=True)
"""


def test_cancelled_and_gone_on_while_it_runs(tmp_path: Path) -> None:
    with stopped(SLOW, tmp_path, "stop") as program:
        session = program.session
        stop = session.stop()
        number = program.begin(stop.top, "slow(x)")
        session.wait_for_output("slow")
        program.server.send(program.heard, {"type": "cancel", "evaluation": 99})
        assert program.outcome(number) is None
        program.server.send(program.heard, {"type": "cancel", "evaluation": number})
        program.wait_for_outcome(number)
        assert program.outcome(number) == {"kind": "cancelled"}
        assert program.run(stop.top, "x + 1") == "value: f32[2], 1 calls"
        number = program.begin(stop.top, "slow(x)")
        # What was to go on does so once the expression is over; until then nothing is answered.
        session.connection.send("continue", {"threadId": stop.thread})
        program.server.send(program.heard, {"type": "cancel", "evaluation": number})
        ended = session.end()
        assert ended.stdout.endswith("ended [3.0, 3.0]\n")


def test_where_an_error_has_ended_the_frames(tmp_path: Path) -> None:
    text = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)

            def forward(self, x):
                return self.fc(x).relu()

        net = Net()
        net(torch.ones(4, 3))
    """
    script = Script.write(text, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.break_on_exceptions("uncaught")
        session.go()
        program = Evaluating(session, server, script)
        stop = session.stop()
        assert program.run(stop.top, "self.fc(x.T)") == "value: f32[3,2] · requires grad, 2 calls"
        (root,) = [each for each in program.heard.modules.values() if not each.path]
        program.heard.wait_for(
            lambda it: [m.parent for m in it.modules.values() if m.outputs] == [root.id]
        )


AT_REST = """
    import pathlib
    import threading
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x).relu()

    net = Net()

    def work():
        for _ in range(40):
            net(torch.ones(1, 2))
        print("waiting", flush=True)
        while not pathlib.Path("go").exists():
            pass
        x = torch.ones(1, 2)
        breakpoint()
        net(x)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""


def test_another_thread_at_rest(tmp_path: Path) -> None:
    with stopped(AT_REST, tmp_path) as program:
        program.heard.wait_for(lambda it: "settled" in it.states)
        (tmp_path / "go").touch()
        stop = program.session.stop()
        answer = program.run(stop.top, "net(torch.ones(5, 2)).sum(0)")
        assert answer == "value: f32[2] · requires grad, 4 calls"
        program.heard.wait_for(lambda it: it.states[-1] == "recording")
        ops = program.heard.ops.values()
        assert [op.label for op in ops if op.inputs and op.inputs[0].shape == (5, 2)] == [
            *("linear()", "relu()", "sum(0)")
        ]
        program.session.resume(stop.thread)
        program.session.end()


def test_a_traced_pass_is_not_the_one_that_was_evaluated(tmp_path: Path) -> None:
    script = Script.write(NET, tmp_path)
    with SessionServer() as server, launch(script, server.launch("forwardPass")) as session:
        session.break_at("loss")
        session.go()
        program = Evaluating(session, server, script)
        stop = session.stop()
        assert program.run(stop.top, "net(x), net(x)").endswith("6 calls")
        session.resume(stop.thread)
        ended = session.end()
        program.heard.wait_for_end()
        assert "drew" in ended.stdout
        assert program.heard.module_counts()[""] == 3


def test_a_process_that_was_attached_to(tmp_path: Path) -> None:
    text = """
        import os
        import torch
        from torch import nn

        net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        print("ready", flush=True)
        while not os.path.exists("stop"):
            x = torch.ones(1, 2)  # @inside
    """
    script = Script.write(text, tmp_path)
    with running(script) as process, SessionServer() as server:
        process.wait_for("ready")
        with process.attached() as session:
            enter(session, server)
            server.process().wait_for(lambda it: it.ops)
            session.break_at("inside")
            stop = session.stop()
            program = Evaluating(session, server, script)
            answer = program.run(stop.top, "net(x)")
            assert answer == "value: f32[1,2] · requires grad, 2 calls"
            program.heard.wait_for(lambda it: {"0", "1"} <= {m.path for m in it.modules.values()})
            session.clear_breakpoints()
            session.resume(stop.thread)
        # What it writes ends with the debug adapter that it has started, which is there no longer.
        (tmp_path / "stop").touch()
        assert process.wait_for_end() == 0
