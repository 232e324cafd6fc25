"""Programs that use the package themselves, in a debug session that follows the same functions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Drive, Watched, same_as_without_us
from tests.support.debug_client import Launch
from tests.support.session_server import BACKEND, HIDING_RULE, Heard

pytestmark = pytest.mark.e2e

PROGRAM = """
import sys
import h5py
import torch
from torch import nn
from shapetrace import H5PYSaverCallback, ModelTracer, Variable

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 4)

    def forward(self, x):
        scores = self.up(x) + 1
        scores = scores * 2
        return scores

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x, name="batch"):
        for layer in self.layers:
            x = layer(x)
        return x

def halved(name, value, iteration):
    print(name, iteration)  # @saved
    if "--fail" in sys.argv and iteration == 2:
        raise KeyError(name)
    return value / 2

def told(name, values, iterations, ranks):
    print(name, len(values), iterations, ranks)  # @gathered

def tell(name, item):
    value = item[()].tolist() if isinstance(item, h5py.Dataset) else ""
    print(name, sorted((key, str(each)) for key, each in item.attrs.items()), value)

torch.manual_seed(0)
net = Net()
saver = H5PYSaverCallback("run.h5", overwrite=True)
paths = ["layers.*.forward.scores", "layers.1.up", "forward", "forward.name", "forward.mask"]
with ModelTracer(net, [
    Variable(paths, post_gather_callbacks=[told, saver]),
    Variable(["layers.*"], pre_save_callbacks=[halved]),
]) as tracer:
    for _ in range(3):
        net(torch.randn(2, 4)).sum().backward()  # @begin
    net.eval()
    net(torch.zeros(2, 4), name="test")
saver.close()
print(tracer.problems)
print({name: (entry.iterations, entry.values) for name, entry in tracer.results.items()})
with h5py.File("run.h5") as file:
    file.visititems(tell)
sys.exit(3)
"""
HANDLES = """
from shapetrace import var_tracker

def handle(event):
    print(type(event).__name__)  # @handled

@var_tracker("scores", handler=handle)
def double(x):
    scores = x * 2
    scores = scores + 1
    if not x:
        raise ValueError
    return scores

double(3)  # @begin
try:
    double(0)
except ValueError:
    print("over")
"""
CAPTURES = ("layers.*.forward.scores", "layers.1.up", "forward.name")


def run(drive: Drive, directory: Path, *arguments: str, program: str = PROGRAM) -> Heard:
    """Debug a program, with the editor asking for values of the same functions."""
    # As where it is installed: the program finds the package, and the debugger does not show it.
    path = {"PYTHONPATH": str(BACKEND)}
    how = Launch(environment=path, rules=[HIDING_RULE], arguments=arguments)
    heard, _ = same_as_without_us(
        program, drive, directory, how, captures=CAPTURES, watches=("scores",)
    )
    return heard


def test_the_file_and_all_that_is_printed_are_the_same(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        watched.run()
        (ended,) = watched.seen
        assert "exit_code=3" in ended
        assert "layers.0.forward.scores_iterations" in ended

    heard = run(drive, tmp_path)
    assert [value.iteration for value in heard.values("layers.1.up")] == [1, 2, 3, 1]
    assert heard.captured.problems == {}


@pytest.mark.parametrize(
    ("mark", "program"), [("saved", PROGRAM), ("gathered", PROGRAM), ("handled", HANDLES)]
)
def test_breakpoints_in_its_callbacks_stop(mark: str, program: str, tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        watched.session.break_at(mark)
        watched.session.go()
        for number, _ in enumerate(watched.stops()):
            if number == 4:
                watched.session.clear_breakpoints()
        assert f"@{mark} < " in watched.seen[0]

    run(drive, tmp_path, program=program)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["next", "stepIn", "stepOut"])
@pytest.mark.parametrize(("mark", "program"), [("saved", PROGRAM), ("handled", HANDLES)])
def test_steps_out_of_its_callbacks(mark: str, program: str, how: str, tmp_path: Path) -> None:
    run(partial(Watched.steps, hows=[how] * 6, mark=mark), tmp_path, program=program)


def test_exceptions_in_its_callbacks_stop(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        watched.raised_exceptions()
        assert "KeyError" in watched.seen

    run(drive, tmp_path, "--fail")
