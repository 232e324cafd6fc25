"""A debugger sees a function that is followed as it sees any other."""

from __future__ import annotations

import random
import re
from functools import partial
from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Drive, Watched, check_same, debug_with_helper
from tests.support.debug_client import Launch, Script

pytestmark = pytest.mark.e2e

PROGRAM = '''
import os
import contextlib

class Model:
    def __init__(self, size):
        self.size = size

    def __repr__(self):
        return "model"

    def forward(self, x, *rest, scale=2):
        """What it does."""
        y = x * scale  # @first
        if y: z = y; z += 1  # @oneline
        total = (  # @spread
            y +
            scale)
        for i in range(2):
            if i:
                continue  # @continued
            part = [j for j in (1, 2) if (k := j)]
        else:
            done = True
        try:
            {}["missing"]  # @caught
        except KeyError as error:
            kept = str(error)
        finally:
            last = 1  # @finally
        with contextlib.suppress(ValueError):
            int("no")
        while total > 3: total -= 5  # @while
        return self.helper(
            total,  # @argument
            scale)

    def helper(self, a, b): c = a + b; return c  # @short

    def pieces(self, n):
        for i in range(n):
            sent = yield i  # @yield
        return n

    def ends(self, c):
        if c:
            x = 1
        else:
            y = 2  # @last

def main():
    model = Model(3)
    model  # @begin
    print(model.forward(1))
    print(list(model.pieces(2)))
    model.ends(0)
    try:
        model.forward(None)
    except TypeError as error:
        print(error)

if os.environ.get("FOLLOW"):
    import listener
    listener.follow_all(Model)
main()
'''

LISTENER = """
from shapetrace.agent.hiding import hide_code, hide_skips
from shapetrace.instrument import Hooks, Interest, follow

class Listener:
    heard = 0
    def hooks(self):
        return Hooks(self.looked_at, self.returned, self.entered)
    def entered(self, call):
        return self
    def looked_at(self, state, name, value, line, assigned):
        Listener.heard += 1
    def returned(self, state, value, line):
        Listener.heard += 1

def follow_all(owner):
    hide_skips()  # as the agent does, whose listeners are in files of ours
    for told in (Listener.entered, Listener.looked_at, Listener.returned):
        hide_code(told.__code__)
    for name in ("forward", "helper", "pieces", "ends"):
        follow(getattr(owner, name), Interest(None, True), Listener())
"""


MARKS = re.findall(r"# @(?!begin)(\w+)", PROGRAM)


def compare(drive: Drive, directory: Path, how: Launch | None = None) -> None:
    script = Script.write(PROGRAM, directory)
    listener = Script.write(LISTENER, directory, "listener.py")
    check_same(*debug_with_helper(script, listener, drive, how, {"FOLLOW": "1"}))


def test_breakpoints_stop_on_their_lines_with_the_same_variables(tmp_path: Path) -> None:
    compare(partial(Watched.breakpoints, marks=MARKS), tmp_path)


@pytest.mark.parametrize("just_my_code", [True, False])
def test_only_what_the_program_raises_stops(just_my_code: bool, tmp_path: Path) -> None:
    compare(Watched.raised_exceptions, tmp_path, Launch(just_my_code=just_my_code))


@pytest.mark.parametrize("seed", range(3))
def test_steps_lead_from_line_to_line_as_ever(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    ways = [["next"], ["stepIn"], ["next", "stepIn", "stepIn", "stepOut"]][seed]
    hows = [chance.choice(ways) for _ in range(70)]
    compare(partial(Watched.steps, hows=hows, mark="first"), tmp_path)
