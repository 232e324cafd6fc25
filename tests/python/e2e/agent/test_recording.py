"""What the language server hears of a program, and that the program is none the worse for it."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest
import torch

from tests.python.e2e.agent.differential import Watched, same_as_without_us
from tests.support.debug_client import Launch, Script, launch
from tests.support.session_server import SessionServer

pytestmark = pytest.mark.e2e


def test_a_program_from_beginning_to_end(tmp_path: Path) -> None:
    heard, script = same_as_without_us(
        """
        import torch
        from torch import nn

        net = nn.Linear(3, 4)
        y = net(torch.ones(2, 3)) * 2  # @call
        print(y.shape)
        """,
        Watched.run,
        tmp_path,
    )
    process = heard.hello.process
    assert process.python == platform.python_version()
    assert process.executable == sys.executable
    assert heard.states == ["waiting", "recording", "complete"]
    assert heard.statuses[-1]["torch"] == torch.__version__
    assert (heard.statuses[-1]["passes"], heard.statuses[-1]["dropped"]) == (1, 0)
    assert heard.bye == "the program has ended"
    assert heard.run is not None
    assert heard.run.argv == (str(script.path),)
    assert heard.run.pid == process.pid
    assert list(heard.sources) == [str(script.path)]
    line = script.marks["call"]
    own = [op.label for op in heard.ops.values() if op.line == line and op.direct]
    assert own == ["ones(2, 3)", "*"]
    assert [module.line for module in heard.modules.values()] == [line]
    assert {variable.name for variable in heard.variables.values()} == {"y"}


def test_rows_arrive_while_the_program_runs(tmp_path: Path) -> None:
    script = Script.write(
        """
        import sys, threading, torch
        net = torch.nn.Linear(3, 4)
        net(torch.ones(2, 3))
        go_on = threading.Event()
        print("waiting", flush=True)
        go_on.wait()
        net(torch.ones(5, 3))
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.go()
        session.wait_for_output("waiting")
        heard = server.process()
        heard.wait_for(lambda it: it.modules)
        assert heard.gone is None
        assert len(heard.modules) == 1
        session.evaluate("__import__('sys').modules['__main__'].go_on.set()")
        session.end()
        heard.wait_for_end()
        assert len(heard.modules) == 2


def test_rows_arrive_while_the_program_is_stopped(tmp_path: Path) -> None:
    """The debugger holds the program's threads, and not the one that sends."""
    script = Script.write(
        """
        import torch
        net = torch.nn.Linear(3, 4)
        y = net(torch.ones(2, 3))
        z = y * 2  # @stop
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.break_at("stop")
        session.go()
        stop = session.stop()
        heard = server.process()
        heard.wait_for(lambda it: it.modules)
        assert not [op for op in heard.ops.values() if op.line == script.marks["stop"]]
        session.step("next", stop.thread)
        heard.wait_for(lambda it: any(op.line == script.marks["stop"] for op in it.ops.values()))
        session.end()


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit('a word')", 1),
        ("net(torch.ones(2, 5))", 1),
        ("warnings.warn('here', stacklevel=1)", 0),
        ("raise KeyboardInterrupt", None),
        ("sys.stdout.close()", None),
        ("del sys.modules['torch'], threading.Thread", None),
    ],
    ids=str,
)
def test_a_program_ends_as_without_us(ending: str, code: int | None, tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        watched.session.go()
        end = watched.session.end()
        watched.see(end)
        assert code in (None, end.exit_code)

    heard, _ = same_as_without_us(
        f"""
        import atexit, sys, threading, warnings
        import torch

        atexit.register(print, "at exit")
        net = torch.nn.Linear(3, 4)
        try:
            net(torch.ones(2, 3))
            print(torch.rand(1), file=sys.stderr) if False else None
            {ending}
        finally:
            print("finally", flush=True) if not sys.stdout.closed else None
        """,
        drive,
        tmp_path,
        Launch(python=(sys.executable,)),
    )
    assert heard.states[-1] == "complete"
    assert (2, 3) in heard.input_shapes()


@pytest.mark.parametrize(
    ("text", "states", "message"),
    [
        ("print('no torch')", ["waiting", "noForward"], "the program has not imported torch"),
        (
            "import torch; print(torch.ones(2) + 1)",
            ["waiting", "recording", "noForward"],
            "",
        ),
        ("raise SystemExit(2)", ["waiting", "noForward"], "the program has not imported torch"),
    ],
)
def test_no_forward_ran(text: str, states: list[str], message: str, tmp_path: Path) -> None:
    heard, _ = same_as_without_us(text, Watched.run, tmp_path)
    assert heard.states == states
    assert heard.statuses[-1]["message"] == message


def test_an_import_of_torch_that_fails(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('not today')")
    heard, _ = same_as_without_us("import torch", Watched.run, tmp_path)
    assert heard.states == ["waiting", "noForward"]


def test_random_numbers_and_results_are_the_same(tmp_path: Path) -> None:
    same_as_without_us(
        """
        import random, torch, warnings
        from torch import nn
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.TransformerEncoderLayer(8, 2))
        optimizer = torch.optim.Adam(net.parameters())
        for i in range(4):
            loss = net(torch.rand(2, 3, 8)).square().mean()
            loss.backward()
            optimizer.step()
            print(repr(loss.item()))
        print(torch.rand(3), random.random() < 2, net[0].weight.grad.sum().item())
        nn.functional.softmax(torch.ones(2, 2))
        """,
        Watched.run,
        tmp_path,
    )


def test_settled_and_awake_again(tmp_path: Path) -> None:
    script = Script.write(
        """
        import threading, torch
        net = torch.nn.Linear(3, 4)
        go_on = threading.Event()
        for i in range(40):
            net(torch.ones(2, 3))
        print("settled", flush=True)
        go_on.wait()
        net(torch.ones(9, 3))
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.go()
        heard = server.process()
        heard.wait_for(lambda it: it.states[-1] == "settled")
        assert server.send(heard, {"type": "wake"})
        heard.wait_for(lambda it: it.states[-1] == "recording")
        session.evaluate("__import__('sys').modules['__main__'].go_on.set()")
        session.end()
        heard.wait_for_end()
    assert heard.input_shapes() == {(2, 3), (9, 3)}


def test_awake_while_a_breakpoint_is_set_in_the_file(tmp_path: Path) -> None:
    script = Script.write(
        """
        import threading, torch
        net = torch.nn.Linear(3, 4)
        go_on = threading.Event()
        for i in range(20):
            net(torch.ones(2, 3))
        go_on.wait()
        for i in range(60):
            net(torch.ones(4, 3))
        print("here")  # @never
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.break_at("never", condition="False")
        session.go()
        heard = server.process()
        heard.wait_for(lambda it: it.states[-1] == "recording" and it.statuses[-1]["passes"] >= 16)
        session.evaluate("__import__('sys').modules['__main__'].go_on.set()")
        session.end()
        heard.wait_for_end()
    assert sum(heard.module_counts().values()) >= 16 + 60


def test_the_server_ends_the_recording(tmp_path: Path) -> None:
    script = Script.write(
        """
        import threading, torch
        net = torch.nn.Linear(3, 4)
        net(torch.ones(2, 3))
        go_on = threading.Event()
        print("waiting", flush=True)
        go_on.wait()
        net(torch.ones(5, 3))
        print("over")
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.go()
        heard = server.process()
        heard.wait_for(lambda it: it.modules)
        server.send(heard, {"type": "finish"})
        heard.wait_for(lambda it: it.states[-1] != "recording" or it.bye)
        session.evaluate("__import__('sys').modules['__main__'].go_on.set()")
        assert session.end().stdout == "waiting\nover\n"
        heard.wait_for_end()
    assert heard.input_shapes() == {(2, 3)}
