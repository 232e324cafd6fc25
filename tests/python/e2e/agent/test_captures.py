"""Values that are captured in a debug session, and that the session is as it would be without."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Watched, same_as_without_us
from tests.python.e2e.agent.test_stepping import PASSES
from tests.support.debug_client import Launch, Script, launch
from tests.support.running import enter, running
from tests.support.session_server import Heard, SessionServer

pytestmark = pytest.mark.e2e

TRAINING = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 4)
        torch.nn.init.eye_(self.up.weight)
        torch.nn.init.zeros_(self.up.bias)

    def forward(self, x):
        scores = self.up(x) + 1
        scores = scores * 2  # @again
        return scores

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x, name="batch"):
        for layer in self.layers:
            x = layer(x)
        return x

net = Net()
scale = nn.Dropout(0.0)
originals = [Block.forward.__code__, Net.forward.__code__]
for step in range(3):
    net(scale(torch.ones(2, 4)))
net.eval()
net(torch.zeros(2, 4), name="test")
print("over")
"""
PATHS = ("layers.*.forward.scores", "layers.1.up", "forward.name", "forward.mask", "a..b")


def ranges(heard: Heard, name: str) -> list[tuple[str, int, float | None, float | None]]:
    found: list[tuple[str, int, float | None, float | None]] = []
    for value in heard.values(name):
        told = value.statistics
        low, high = (None, None) if told is None else (told.low, told.high)
        found.append((value.mode, value.iteration, low, high))
    return found


def test_values_are_told_with_their_iterations(tmp_path: Path) -> None:
    heard, _ = same_as_without_us(TRAINING, Watched.run, tmp_path, captures=PATHS)
    steps = [("train", number) for number in (1, 2, 3)]
    assert ranges(heard, "layers.0.forward.scores") == [
        (*step, low, low) for step in steps for low in (2.0, 4.0)
    ] + [("eval", 1, 1.0, 1.0), ("eval", 1, 2.0, 2.0)]
    assert ranges(heard, "layers.1.up") == [
        *((*step, 4.0, 4.0) for step in steps),
        ("eval", 1, 2.0, 2.0),
    ]
    assert [(value.iteration, value.text) for value in heard.values("forward.name")] == [
        (1, "'batch'"),
        (1, "'test'"),
    ]
    (first, *_) = heard.values("layers.0.forward.scores")
    assert (first.kind, first.dtype, first.shape) == ("Tensor", "float32", (2, 4))
    assert heard.captured.requests == PATHS
    assert set(heard.captured.problems) == {"forward.mask", "a..b"}
    assert "has no 'mask'" in heard.captured.problems["forward.mask"]
    assert "character 3" in heard.captured.problems["a..b"]
    assert {kept.about.model for kept in heard.captured.names.values()} == {"Net"}


def test_the_recording_is_the_same(tmp_path: Path) -> None:
    """Neither our own computing is in it, nor does any call stand elsewhere."""

    def told(captures: tuple[str, ...]) -> tuple[list[str], dict[str, int], list[str]]:
        heard, _ = same_as_without_us(TRAINING, Watched.run, tmp_path, captures=captures)
        names = [f"{it.line} {it.name} {it.tensor}" for it in heard.variables.values()]
        places = [f"{it.path} {it.file} {it.line} {it.column}" for it in heard.modules.values()]
        return heard.calls(), heard.module_counts(), [*sorted(names), *sorted(places)]

    assert told(PATHS) == told(())


def test_one_forward_pass_is_captured_whole(tmp_path: Path) -> None:
    script = Script.write(TRAINING, tmp_path)
    with SessionServer(captures=PATHS) as server:
        with launch(script, server.launch("forwardPass")) as session:
            session.go()
            session.end()
        heard = server.process()
        heard.wait_for_end()
    assert [each[:2] for each in ranges(heard, "layers.1.up")] == [("train", 1)]
    assert "forward.mask" in heard.captured.problems


@pytest.mark.parametrize("just_my_code", [True, False])
def test_steps_end_where_they_would(just_my_code: bool, tmp_path: Path) -> None:
    number = 40 if just_my_code else 12
    routes = [["stepIn"] * number, ["next"] * number]
    drive = partial(Watched.routes, routes=routes, mark="first_op")
    captures = ("**.forward", "**.forward.y", "forward.parts.*", "forward.z")
    launched = Launch(just_my_code=just_my_code)
    heard, _ = same_as_without_us(PASSES, drive, tmp_path, launched, captures=captures)
    assert heard.values("forward.z"), heard.captured


def test_a_breakpoint_in_a_function_that_is_captured(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        session = watched.session
        session.break_at("again")
        session.go()
        for _ in range(8):
            stop = watched.stop()
            frame = stop.frames[0]
            watched.see(session.evaluate("scores.sum().item()", frame))
            watched.see([name for name in session.variables(frame) if "special" not in name])
            session.resume(stop.thread)
        watched.end()

    same_as_without_us(TRAINING, drive, tmp_path, captures=PATHS)


IN_PLACE = "__import__('sys').modules['shapetrace.agent.in_place']"


def test_what_is_evaluated_at_a_stop_is_no_iteration(tmp_path: Path) -> None:
    """Neither before the model is first called, nor within a call of it."""
    text = TRAINING.replace("scale = nn.Dropout(0.0)", "scale = nn.Dropout(0.0)  # @made")
    script = Script.write(text, tmp_path)
    with SessionServer(captures=PATHS) as server:
        with launch(script, server.launch()) as session:
            session.break_at("made", "again")
            session.go()
            told = []
            for number, expression in enumerate(("net(torch.ones(2, 4))", "self.up(x)", "self(x)")):
                stop = session.stop()
                session.evaluate(
                    f"{IN_PLACE}.run({number}, {stop.top.number}, {expression!r})", stop.top
                )
                told.append(session.evaluate(f"{IN_PLACE}.outcome({number})"))
                session.resume(stop.thread)
            session.clear_breakpoints()
            session.stop()
            session.resume()
            session.end()
        heard = server.process()
        heard.wait_for_end()
    assert all('"kind": "value"' in each for each in told), told
    steps = [("train", number) for number in (1, 2, 3)]
    assert ranges(heard, "layers.1.up")[:3] == [(*step, 4.0, 4.0) for step in steps]
    assert len(heard.values("layers.0.forward.scores")) == 8


GAN = """
import time
import torch
from torch import nn

class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        hidden = self.fc(x)
        return hidden

class Judge(Half):
    def forward(self, x):
        verdict = self.fc(x).sum()
        return verdict

generator, judge = Half(), Judge()
for step in range(2):
    judge(generator(torch.ones(3, 2)))
"""


def test_a_path_that_only_a_later_model_has_is_no_mistake(tmp_path: Path) -> None:
    captures = ("forward.hidden", "forward.verdict", "forward.x", "forward.none")
    heard, _ = same_as_without_us(GAN, Watched.run, tmp_path, captures=captures)
    assert set(heard.captured.problems) == {"forward.none"}
    names = {(it.about.model, it.about.name) for it in heard.captured.names.values()}
    assert names == {
        ("Half", "forward.hidden"),
        ("Judge", "forward.verdict"),
        ("Half", "forward.x"),
        ("Judge", "forward.x"),
    }
    assert len(heard.values("forward.verdict")) == 2


LASTING = TRAINING.replace(
    'print("over")',
    """print("ready", flush=True)
import os, time
while not os.path.exists("stop"):
    net(torch.ones(2, 4))
    time.sleep(0.01)
assert originals == [Block.forward.__code__, Net.forward.__code__]
assert "forward" not in vars(net) and type(net).__call__ is nn.Module.__call__
assert nn.Module.__call__.__code__.co_filename.endswith("nn/modules/module.py")
print("as before", flush=True)""",
)


def test_a_program_that_runs_already(tmp_path: Path) -> None:
    script = Script.write(LASTING, tmp_path)
    with running(script) as program, SessionServer(captures=PATHS) as server:
        program.wait_for("ready")
        with program.attached() as session:
            enter(session, server)
            heard = server.process()
            heard.wait_for(lambda it: len(it.values("layers.1.up")) > 3)
            server.send(heard, {"type": "finish"})
            heard.wait_for_end()
        (tmp_path / "stop").touch()
        assert program.wait_for_end() == 0
    assert "as before" in program.output
    assert {value.mode for value in heard.values("layers.1.up")} == {"eval"}


def test_another_server_is_told_what_is_kept(tmp_path: Path) -> None:
    script = Script.write(LASTING, tmp_path)
    with SessionServer(captures=PATHS) as server, launch(script, server.launch()) as session:
        session.go()
        session.wait_for_output("ready")
        heard = server.process()
        heard.wait_for(lambda it: it.values("layers.1.up"))
        port, token = server.port, server.token
        server.stop()
        with SessionServer(port, token, captures=PATHS) as other:
            heard = other.process()
            heard.wait_for(lambda it: it.values("layers.1.up"))
            heard.wait_for(lambda it: "forward.mask" in it.captured.problems)
            assert heard.captured.requests == PATHS
            (tmp_path / "stop").touch()
            session.end()
            heard.wait_for_end()
    # The first of all is among them, and none is there twice.
    numbers = [value.ordinal for value in heard.values("forward.name")]
    assert numbers == list(range(1, len(numbers) + 1))


FORKED = TRAINING.replace(
    'print("over")',
    """
import os
child = os.fork()
if child == 0:
    net(torch.ones(3, 4))
    os._exit(0)
os.waitpid(child, 0)
net(torch.ones(5, 4))
print("over")
""",
)


def test_a_forked_child_captures_by_itself(tmp_path: Path) -> None:
    script = Script.write(FORKED, tmp_path)
    with SessionServer(captures=PATHS) as server:
        with launch(script, server.launch()) as session:
            session.go()
            assert session.end().stdout.endswith("over\n")
        parent, child = server.processes(2)
        parent.wait_for_end()
        child.wait_for_end()
    assert [value.shape for value in child.values("layers.1.up")] == [(3, 4)]
    shapes = [value.shape for value in parent.values("layers.1.up")]
    assert shapes == [(2, 4)] * 4 + [(5, 4)]
