"""When our panes come in, and when they go: with torch, at a stop, by a setting, as we leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.python.e2e.agent.differential import debug
from tests.python.e2e.agent.looking import below, stopped
from tests.support.debug_client import DebugSession, Launch, Script, launch
from tests.support.running import enter, running
from tests.support.session_server import SessionServer

pytestmark = pytest.mark.e2e

HOLDING = """
import dataclasses, os, time
import torch

@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    note: str = "a note"

def work():
    y = torch.ones(2, 4)
    batch, state, pair = Batch(y), {y: 1}, (y, [y])
    return len(pair)  # @stop

print("ready", flush=True)
while not os.path.exists("stop"):
    work()
    time.sleep(0.01)
"""


def look(session: DebugSession) -> list[str]:
    """What is shown at the stop: texts, and the names of what is below them."""
    session.break_at("stop")
    top = session.stop().top
    session.clear_breakpoints()
    variables = session.variables(top)
    seen = [variables[name] for name in ("y", "batch", "state", "pair")]
    for each in session.children(session.scope(top, "Locals")):
        below = session.children(each["variablesReference"])
        seen += [f"{each['name']}: {child['name']}" for child in below]
    session.resume()
    return seen


SHOWN = [
    "f32[2,4]",
    "Batch(x: f32[2,4], note: 'a note')",
    "{f32[2,4]: 1}",
    "(f32[2,4], [f32[2,4]])",
]


def test_they_leave_with_us(tmp_path: Path) -> None:
    """The debugger stays, and shows everything as if we had not been there."""
    script = Script.write(HOLDING, tmp_path)
    with running(script) as program, SessionServer() as server:
        program.wait_for("ready")
        with program.attached() as session:
            before = look(session)
            assert before[0].startswith("tensor([[1., 1., 1., 1.]")
            enter(session, server)
            heard = server.process()
            heard.wait_for(lambda it: it.ops)
            during = look(session)
            assert during[:4] == SHOWN
            assert {"y: statistics", "batch: raw view", "state: f32[2,4]"} <= set(during)
            server.send(heard, {"type": "finish"})
            heard.wait_for_end()
            assert look(session) == before
            enter(session, server)
            again = server.processes(1)[0]
            again.wait_for(lambda it: it.hellos > 1 and it.ops)
            assert look(session) == during
        (tmp_path / "stop").touch()
        assert program.wait_for_end() == 0


def test_a_setting_keeps_them_out(tmp_path: Path) -> None:
    """The program is recorded all the same."""
    script = Script.write(HOLDING, tmp_path)

    def shown(how: Launch) -> list[str]:
        with launch(script, how) as session:
            session.break_at("stop")
            session.go()
            return look(session)

    with SessionServer() as server:
        ours = server.launch()
        environment = {**ours.environment, **server.environment(shows_variables=False)}
        without = shown(Launch())
        assert shown(Launch(environment=environment, rules=ours.rules)) == without
        server.process().wait_for(lambda it: it.ops)


def test_a_stop_before_torch_is_there(tmp_path: Path) -> None:
    """Lists and objects that were looked at then are looked at again later."""
    script = Script.write(
        """
        class Holder:
            pass

        early, held = [1], Holder()
        print("here")  # @early
        import torch
        early.append(torch.ones(2))
        held.x = torch.ones(3)
        print("there")  # @late
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.break_at("early", "late")
        session.go()
        first = session.variables(session.stop().top)
        assert first["early"] == "[1]"
        assert first["held"].startswith("<__main__.Holder object at ")
        session.resume()
        then = session.variables(session.stop().top)
        assert (then["early"], then["held"]) == ("[1, f32[2]]", "Holder(x: f32[3])")


OTHERS = """
from _pydevd_bundle.pydevd_extension_api import StrPresentationProvider

class Theirs(StrPresentationProvider):
    def can_provide(self, kind, name):
        return name == "Table"

    def get_str(self, value):
        return "a table of theirs"
"""


def test_what_another_plugin_shows_stays_as_it_is(tmp_path: Path) -> None:
    plugins = tmp_path / "others" / "pydevd_plugins"
    for folder in (plugins, plugins / "extensions"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(
            "import pkgutil\n__path__ = pkgutil.extend_path(__path__, __name__)\n"
        )
    (plugins / "extensions" / "pydevd_plugin_theirs.py").write_text(OTHERS)
    script = Script.write(
        """
        import torch
        class Table:
            def __init__(self):
                self.x = torch.ones(2)
        table, tables = Table(), [Table()]
        print()  # @stop
        """,
        tmp_path,
    )
    with SessionServer() as server:
        ours = server.launch()
        path = f"{ours.environment['PYTHONPATH']}:{plugins.parent}"
        how = Launch(environment={**ours.environment, "PYTHONPATH": path}, rules=ours.rules)
        with launch(script, how) as session:
            variables = session.variables(stopped(session).top)
    assert variables["table"] == "a table of theirs"
    assert variables["tables"] == "[Table(x: f32[2])]"


def test_a_program_without_torch_is_shown_as_without_us(tmp_path: Path) -> None:
    script = Script.write(
        """
        import collections, dataclasses, types
        @dataclasses.dataclass
        class Point:
            x: int = 1
        class Own:
            def __repr__(self):
                return "own text"
        values = [1, (2,), {"a": {3}}, Point(), Own(), collections.deque([1]), types, print]
        space, nothing, error = types.SimpleNamespace(a=1), None, ValueError("x")
        print()  # @stop
        """,
        tmp_path,
    )

    def drive(watched: Any) -> None:
        session = watched.session
        stop = stopped(session)
        variables = session.variables(stop.top)
        watched.see([variables[name] for name in ("values", "space", "nothing", "error")])
        for each in session.children(
            below(session, session.scope(stop.top, "Locals"))["values"]["variablesReference"]
        ):
            watched.see((each["name"], each["value"], each["type"], each.get("evaluateName")))

    with SessionServer() as server:
        assert debug(script, drive, Launch()) == debug(script, drive, Launch(), server)
