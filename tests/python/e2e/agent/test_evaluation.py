"""What the user calls and changes at a stop works as without us and is not recorded."""

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

def helper(x):
    return x - 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        scale = 2
        y = x * scale
        z = self.fc(y)  # @module
        return (y + z).sum()  # @return

net = Net()
for i in range(3):
    out = net(torch.ones(2, 4) * i)  # @call
    out.backward()
print(out)
"""

CALLS = [
    "11: empty((4, 4))",
    "11: empty(4)",
    "11: kaiming_uniform_(a=2.23606797749979)",
    "11: uniform_(a=-0.5, b=0.5)",
    "21: ones(2, 4)",
    "21: *",
    "15: *",
    "16: linear()",
    "17: +",
    "17: sum()",
    "22: backward()",
]


@pytest.mark.parametrize("mark", ["module", "call"])
def test_expressions_are_not_recorded(mark: str, tmp_path: Path) -> None:
    """Inside of a forward, and where no module call is running."""

    def drive(watched: Watched) -> None:
        session = watched.session
        session.break_at(mark)
        session.go()
        stop = watched.stop()
        session.clear_breakpoints()
        for context in ("watch", "repl", "hover", "clipboard"):
            for expression in (
                "net(torch.ones(3, 4)).shape",
                "net.forward(torch.ones(3, 4)).shape",
                "net.fc(torch.ones(7, 4)).shape, helper(torch.ones(5)).shape",
                "[helper(torch.ones(i)).shape for i in range(3)]",
                "repr(net)",
                "repr(torch.ones(3) * 2)",
            ):
                watched.see(session.evaluate(expression, stop.top, context))
        watched.see(session.evaluate("made = torch.ones(9) + 9", stop.top))
        watched.see(session.evaluate("for each in made: each * 2", stop.top))
        watched.see(session.variables(stop.top).keys())
        watched.see(session.variables(stop.top, "Globals").keys())
        for each in session.children(session.scope(stop.top, "Locals")):
            session.children(each["variablesReference"] or session.scope(stop.top, "Locals"))
        session.resume(stop.thread)
        watched.end()

    heard, script = same_as_without_us(MODEL, drive, tmp_path)
    assert heard.calls(script.path) == CALLS
    assert heard.files() == {str(script.path)}
    assert heard.module_counts() == {"": 3, "fc": 3}
    assert heard.statuses[-1]["passes"] == 3
    assert {variable.name for variable in heard.variables.values()} == {"x", "y", "z", "out"}


def test_values_that_the_user_changes(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        session = watched.session
        session.break_at("module")
        session.go()
        stop = watched.stop()
        session.clear_breakpoints()
        session.set_variable(stop.top, "y", "torch.ones(5, 4)")
        watched.see(session.evaluate("repr(y)", stop.top))
        watched.see(session.set_variable(stop.top, "scale", "5"))
        watched.see(session.evaluate("y = y + 1", stop.top))
        watched.see(session.evaluate("new = 3", stop.top))
        following = watched.step("next", stop.thread)
        assert following is not None
        watched.see(session.variables(following.top).keys())
        watched.see(session.evaluate("repr(y), repr(z)", following.top))
        watched.see(session.evaluate("new, scale, y.shape", following.top, "watch"))
        session.resume(stop.thread)
        watched.end()

    heard, script = same_as_without_us(MODEL, drive, tmp_path)
    seen = [op.inputs[0].shape for op in heard.ops.values() if op.line == script.marks["return"]]
    assert (5, 4) in seen


def test_expressions_while_the_program_runs(tmp_path: Path) -> None:
    script = Script.write(
        """
        import threading
        import torch
        from torch import nn
        net = nn.Linear(4, 4)
        net(torch.ones(2, 4))
        print("running", flush=True)
        over = threading.Event()
        over.wait()
        """,
        tmp_path,
    )
    main = "__import__('sys').modules['__main__']"
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.go()
        session.wait_for_output("running")
        made = f"{main}.net({main}.torch.ones(7, 4)).shape"
        assert session.evaluate(made) == "torch.Size([7, 4])"
        session.evaluate(f"{main}.over.set()")
        session.end()
        heard = server.process()
        heard.wait_for_end()
    assert heard.module_counts() == {"": 1}
    assert all(7 not in (tensor.shape or ()) for op in heard.ops.values() for tensor in op.inputs)


def test_a_traced_pass_is_not_ended_by_expressions(tmp_path: Path) -> None:
    """The model may be called at a stop: the program's own first pass is still to come."""
    script = Script.write(MODEL, tmp_path)
    with SessionServer() as server:
        with launch(script, server.launch(mode="forwardPass")) as session:
            session.break_at("call")
            session.go()
            stop = session.stop()
            for _ in range(3):
                session.evaluate("net(torch.ones(3, 4)).shape", stop.top, "watch")
            session.clear_breakpoints()
            session.resume(stop.thread)
            assert session.end().exit_code == 0
        heard = server.process()
        heard.wait_for_end()
    assert heard.module_counts() == {"": 1, "fc": 1}
    assert heard.calls(script.path) == CALLS
