"""Under a debugger: it stops where it would have, and the history is right."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Drive, Watched, check_same, debug_with_helper
from tests.support.debug_client import Launch, Script

pytestmark = pytest.mark.e2e

PROGRAM = """
import torch
from history import auto_diff, told, var_tracker

class Cache:
    def __init__(self):
        self.k = None

    @var_tracker("x", "self.k", "parts", handler=told)
    def update(self, x, scale=2):
        self.k = x  # @cached
        x = torch.ones(3) * scale  # @floats
        parts = [x, object()]  # @parts
        for i in range(2):
            x.add_(i)  # @added
        try:
            x = shape(x)  # @called
            {}["missing"]  # @caught
        except KeyError as error:
            parts[0] = None  # @removed
        return x.sum()  # @returned

@auto_diff(handler=told)
def shape(x):
    y = x.view(1, 3)  # @viewed
    return y

@var_tracker("n", handler=told)
def steps():
    n = 0  # @zero
    while n < 2:
        yield n  # @yielded
        n += 1  # @more

def main():
    cache = Cache()
    cache  # @begin
    cache.update(1)
    list(steps())
    try:
        cache.update(2, None)
    except TypeError as error:
        print(error)

main()
"""

HISTORY = """
import json, os

if os.environ.get("HISTORY"):
    from shapetrace import auto_diff, var_tracker
    from shapetrace.events.followed import to_json
    history = open(os.environ["HISTORY"], "w", buffering=1)
    def told(event):
        history.write(json.dumps(to_json(event)) + "\\n")
else:
    told = None
    def var_tracker(*names, handler=None):
        return lambda function: function
    def auto_diff(**options):
        return lambda function: function
"""

EXPECTED = [
    ("cached", "self.k", "kind"),
    ("floats", "x", "kind"),
    ("parts", "parts", "new"),
    ("added", "parts", "values"),
    ("added", "x", "values"),
    ("called", "x", "shape"),
    ("removed", "parts", "kind"),
    ("zero", "n", "new"),
    ("more", "n", "values"),
    ("more", "n", "values"),
    ("cached", "self.k", "values"),
]


MARKS = re.findall(r"# @(?!begin)(\w+)", PROGRAM)


def compare(drive: Drive, directory: Path, how: Launch | None = None) -> None:
    script = Script.write(PROGRAM, directory)
    helper = Script.write(HISTORY, directory, "history.py")
    history = directory / "history.jsonl"
    seen = debug_with_helper(script, helper, drive, how, {"HISTORY": str(history)})
    check_same(*map(_plain, seen))
    events = [json.loads(line) for line in history.read_text().splitlines()]
    names = {line: mark for mark, line in script.marks.items()}
    told = [
        (names[each["line"]], each["name"], " ".join(each["differs"]))
        for each in events
        if each["event"] == "changed"
    ]
    assert told == EXPECTED
    began = [each for each in events if each["event"] == "began"]
    assert [(each["function"], each["depth"]) for each in began] == [
        ("Cache.update", 0),
        ("shape", 1),
        ("steps", 0),
        ("Cache.update", 0),
    ]


def _plain(seen: list[str]) -> list[str]:
    """What was seen, without addresses."""
    return [re.sub(r"0x[0-9a-f]+", "0x0", line) for line in seen]


def test_breakpoints_stop_on_their_lines_and_the_history_is_right(tmp_path: Path) -> None:
    compare(partial(Watched.breakpoints, marks=MARKS), tmp_path)


@pytest.mark.parametrize("just_my_code", [True, False])
def test_only_what_the_program_raises_stops(just_my_code: bool, tmp_path: Path) -> None:
    compare(Watched.raised_exceptions, tmp_path, Launch(just_my_code=just_my_code))


@pytest.mark.parametrize("how", ["next", "stepIn"])
def test_steps_lead_from_line_to_line_as_ever(how: str, tmp_path: Path) -> None:
    compare(partial(Watched.steps, hows=[how] * 60, mark="cached"), tmp_path)
