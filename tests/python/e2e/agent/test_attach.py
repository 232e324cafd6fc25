"""Programs that run without us, and are attached to: the agent comes in late, and leaves again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shapetrace.events.model import Tensor
from tests.support.debug_adapter import Adapter, installed_debugpy
from tests.support.debug_client import DebugSession, RequestFailed, Script
from tests.support.running import enter, running
from tests.support.session_server import HIDING_RULE, Heard, SessionServer

pytestmark = pytest.mark.e2e

TRAINING = """
import os, sys, threading, time, torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
    def forward(self, x):
        h = self.inner(x)
        x = h.relu()  # @inside
        return x + 1
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(2))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x * 2
net = Net()
def surroundings():
    import threading, torch
    return repr((
        torch._C._len_torch_function_stack(), torch.nn.Module.__call__.__qualname__,
        torch.nn.Module.__call__.__code__.co_filename.endswith("nn/modules/module.py"),
        os._exit.__module__, type(os._exit).__name__, [type(it).__name__ for it in sys.meta_path],
        threading.Thread._bootstrap_inner.__code__.co_filename.endswith("threading.py"),
        [path for path in sys.path if "python_backend" in path], sorted(os.environ),
        torch.set_default_device.__module__, torch.autograd._engine_run_backward.__module__,
    ))
print("before", surroundings())
print("ready", flush=True)
passes = 0
while not os.path.exists("stop"):
    batch = torch.ones(2, 3)
    loss = net(batch).sum()  # @loss
    loss.backward()
    passes += 1
    time.sleep(0.01)
print("after", surroundings())
"""

PLACES = {"ones(2, 3)", "relu()", "+", "*", "sum()", "backward()"}
"""What the program calls itself in each pass."""


def write(directory: Path, text: str = TRAINING) -> Script:
    return Script.write(text, directory)


def labels(heard: Heard) -> set[str]:
    """The ops that the program called itself."""
    return {op.label for op in heard.ops.values() if op.direct}


def is_complete(heard: Heard) -> bool:
    return labels(heard) >= PLACES


def same_surroundings(output: str) -> None:
    """The program found everything after we left as it was before we came."""
    lines = dict(line.split(" ", 1) for line in output.splitlines() if line[:6] in BOTH)
    assert lines["before"] == lines["after"]


BOTH = ("before", "after ")


def test_the_agent_comes_in_and_leaves_nothing_behind(tmp_path: Path) -> None:
    script = write(tmp_path)
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        with program.attached() as session:
            enter(session, server)
            heard = server.process()
            heard.wait_for(is_complete)
            enter(session, server)  # It is there already.
            server.send(heard, {"type": "finish"})
            heard.wait_for_end()
        (tmp_path / "stop").touch()
        assert program.wait_for_end() == 0
    assert heard.hellos == 1
    assert heard.bye == "the debugger has left"
    assert heard.coverage == ()
    paths = {(module.path, module.class_name) for module in heard.modules.values()}
    assert {("", "Net"), ("blocks.0", "Block"), ("blocks.1.inner", "Linear")} <= paths
    same_surroundings(program.output)


def test_leaving_in_the_middle_of_a_backward_pass(tmp_path: Path) -> None:
    """Torch has our mode off its stack meanwhile, and puts it back afterwards."""
    waits = """
def wait(gradient):
    if os.path.exists("wait"):
        print("in the backward pass", flush=True)
    while os.path.exists("wait"):
        time.sleep(0.01)
"""
    text = TRAINING.replace("net = Net()\n", f"net = Net(){waits}", 1)
    text = text.replace("    loss.backward()", "    loss.register_hook(wait); loss.backward()")
    # It ends only when the mode is gone.
    stop = 'while not os.path.exists("stop")'
    text = text.replace(stop, f"{stop} or torch._C._len_torch_function_stack()")
    script = write(tmp_path, text)
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        with program.attached() as session:
            enter(session, server)
            heard = server.process()
            heard.wait_for(is_complete)
            (tmp_path / "wait").touch()
            program.wait_for("in the backward pass")
            server.send(heard, {"type": "finish"})
            heard.wait_for_end()
        (tmp_path / "stop").touch()
        (tmp_path / "wait").unlink()
        assert program.wait_for_end() == 0
    same_surroundings(program.output)


def test_attaching_again(tmp_path: Path) -> None:
    script = write(tmp_path)
    with running(script) as program:
        program.wait_for("ready")
        for _ in range(2):
            with SessionServer() as server, program.attached() as session:
                enter(session, server)
                heard = server.process()
                heard.wait_for(is_complete)
                server.send(heard, {"type": "finish"})
                heard.wait_for_end()
        one, two = SessionServer(session="one"), SessionServer(session="two")
        with one as first, two as second, program.attached() as session:
            enter(session, first)
            first.process().wait_for(is_complete)
            # As when the window went away in which it was debugged before.
            enter(session, second)
            second.process().wait_for(is_complete)
            first.process().wait_for_end()
        (tmp_path / "stop").touch()
        program.wait_for("after")


def test_stopped_in_the_middle_of_a_forward(tmp_path: Path) -> None:
    """The rest of it is seen at once; what its calls were given when they began is not known."""
    script = write(tmp_path)
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        with program.attached() as session:
            session.break_at("inside")
            stop = session.stop()
            if session.evaluate("self is net.blocks[1]", stop.top) == "True":
                # The program was past the first one when the breakpoint was set.
                session.resume(stop.thread)
                stop = session.stop()
            enter(session, server)
            heard = server.process()
            heard.wait_for(lambda it: "recording" in it.states)
            session.clear_breakpoints()
            assert str(session.step("next", stop.thread)) != ""
            session.step("next", stop.thread)
            heard.wait_for(lambda it: labels(it) >= {"relu()", "+"})
            first, *_ = heard.ops.values()
            block = heard.modules[first.module or 0]
            net = heard.modules[block.parent or 0]
            assert (block.path, block.inputs, block.count) == ("blocks.0", (), None)
            assert (net.path, net.inputs, net.parent) == ("", (), None)
            session.resume(stop.thread)
            heard.wait_for(is_complete)
        (tmp_path / "stop").touch()
        program.wait_for("after")
    entered = [module for module in heard.modules.values() if module.path == "blocks.1"]
    assert all(isinstance(module.inputs[0], Tensor) for module in entered)
    assert {module.path for module in heard.modules.values()} >= {"blocks.1.inner"}


def test_at_a_stop_it_is_known_where_a_frame_stands(tmp_path: Path) -> None:
    script = write(tmp_path)
    ask = "__import__('sys').modules['shapetrace.agent.stop_query'].describe_stop({})"
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        with program.attached() as session:
            enter(session, server)
            heard = server.process()
            heard.wait_for(is_complete)
            session.break_at("inside")
            top = session.stop().top
            stop = heard.stop_of(session.evaluate(ask.format(top.number)))
            assert stop is not None
            block = heard.modules[stop.call or 0].path
            assert (stop.own.function, block[:7]) == ("Block.forward", "blocks.")
            assert [heard.modules[it].path for it in stop.own.reached] == [f"{block}.inner"]
            # Once we have left there is nobody to ask.
            server.send(heard, {"type": "finish"})
            heard.wait_for_end()
            assert session.evaluate(ask.format(top.number)) == "null"
            session.clear_breakpoints()
            session.resume()
        (tmp_path / "stop").touch()
        program.wait_for("after")


@pytest.mark.parametrize("is_changed", [False, True])
def test_only_what_was_there_when_the_program_began_is_its_source(
    tmp_path: Path, is_changed: bool
) -> None:
    script = write(tmp_path)
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        if is_changed:
            script.path.write_text(f"{script.path.read_text()}# changed\n")
        with program.attached() as session:
            enter(session, server)
            heard = server.process()
            heard.wait_for(is_complete)
        (tmp_path / "stop").touch()
        program.wait_for("after")
    if sys.platform == "linux":  # elsewhere it is not known when that was
        assert (heard.sources[str(script.path)] is None) == is_changed


def test_before_torch_is_imported(tmp_path: Path) -> None:
    script = write(tmp_path, "print('ready', flush=True); input()\n" + TRAINING)
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        with program.attached() as session:
            enter(session, server)
            heard = server.process()
            heard.wait_for(lambda it: it.states == ["waiting"])
            program.say("go on")
            heard.wait_for(is_complete)
        (tmp_path / "stop").touch()
        program.wait_for("after")


def test_a_program_that_forks_all_the_time(tmp_path: Path) -> None:
    """A child that comes while the agent is being imported does not wait for who imports it."""
    text = """
        import os, signal, torch, warnings
        # From Python 3.12 on, each fork beside the debugger's threads warns.
        warnings.simplefilter("ignore", DeprecationWarning)
        print("ready", flush=True)
        children = child = 0
        signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
        while not os.path.exists("stop"):
            child = os.fork()
            if child == 0:
                os._exit(1)
            children += 1
            signal.alarm(10)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status != 1:
                print("child", children, "ended with", status, flush=True)
        print("over", flush=True)
    """
    script = write(tmp_path, text)
    with running(script, follows_children=False) as program, SessionServer() as server:
        program.wait_for("ready")
        with program.attached() as session:
            enter(session, server)
            server.process().wait_for(lambda it: "recording" in it.states)
        (tmp_path / "stop").touch()
        program.wait_for("over")
    assert program.output.split() == ["ready", "over"]


def test_a_debugger_that_leaves(tmp_path: Path) -> None:
    """The program goes on, and what it does from then on is nobody's business."""
    script = write(tmp_path)
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        with program.attached() as session:
            enter(session, server)
            server.process().wait_for(is_complete)
        with program.attached() as session:
            before = int(session.evaluate("__import__('sys').modules['__main__'].passes"))
            session.break_at("loss")
            stop = session.stop()
            assert int(session.evaluate("passes", stop.top)) >= before
            session.clear_breakpoints()
            session.resume()
        (tmp_path / "stop").touch()
        assert program.wait_for_end() == 0


def test_a_program_on_another_machine(tmp_path: Path) -> None:
    """Its files are not those that we know; what is told is what the extension puts into words."""
    script = write(tmp_path, "print('ready', flush=True)\ninput()\nprint('over')\n")
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        elsewhere = pytest.raises(RequestFailed, match="RuntimeError: shapetrace: elsewhere")
        with program.attached() as session, elsewhere:
            enter(session, server, backend=tmp_path / "not" / "here")
        program.say("go on")
        program.wait_for("over")
    assert server.all == {}


def test_attaching_by_process_id(tmp_path: Path) -> None:
    script = write(tmp_path)
    with running(script, listening=False) as program, SessionServer() as server:
        program.wait_for("ready")
        if not can_trace(program.process.pid):
            # What cannot be tested here is that it works; that it is told is.
            return
        adapter = Adapter(installed_debugpy())
        session = DebugSession(adapter.connection, script)
        try:
            session.start(
                "attach",
                {"processId": program.process.pid, "rules": [HIDING_RULE], "justMyCode": True},
            )
            session.go()
            enter(session, server)
            server.process().wait_for(is_complete)
            session.disconnect(terminate=False)
        finally:
            adapter.close()
        (tmp_path / "stop").touch()
        program.wait_for("after")
        assert program.wait_for_end() == 0


def can_trace(pid: int) -> bool:
    """Whether this machine lets one process look into another, and has a debugger for it."""
    try:
        ran = subprocess.run(
            ["gdb", "--nx", "--batch", "--pid", str(pid), "-ex", "info threads"],
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"Operation not permitted" not in ran.stderr and ran.returncode == 0


def test_a_program_that_is_started_by_us_and_attached_to(tmp_path: Path) -> None:
    """The agent is there already: it does not come in twice."""
    script = write(tmp_path)
    with SessionServer() as server:
        environment = server.environment()
        program_environment = {**os.environ, **environment}
        assert json.loads(environment["SHAPETRACE_SESSION"])["session"] == server.session
        with running(script, environment=program_environment) as program:
            program.wait_for("ready")
            with program.attached() as session:
                enter(session, server)
                heard = server.process()
                heard.wait_for(is_complete)
            (tmp_path / "stop").touch()
            program.wait_for("after")
        heard.wait_for_end()
    assert heard.hellos == 1
    assert list(server.all) == [heard.hello.process.pid]
    assert sys.executable == heard.hello.process.executable
