"""Generated functions have very many variables: each is looked at once, and none is missed."""

from __future__ import annotations

import cProfile
import pstats
from typing import Any

import pytest

from shapetrace.recorder import variables
from tests.python.unit.recorder.test_variables import variables_of
from tests.support.recorder import Traced

TWICE_AND_A_LITTLE = 2.3
"""How much more may be done for twice as many lines, whose jumps and names take longer numbers."""

SAME = "def same(t):\n    return t\n"
STEP = "def step(t):\n    return t * 2\n"
WALK = "def walk(count, t):\n    return t if count == 0 else walk(count - 1, t * 2)\n"


def straight(count: int, statement: str) -> str:
    """The lines of a function, each of which gives a new variable a value."""
    return "".join(f"    t{number + 1} = {statement.format(number)}\n" for number in range(count))


def module(body: str) -> str:
    """A module whose forward has these lines."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"class Layer(nn.Module):\n    def forward(self, t0):\n{lines}layer = Layer()\n"


def calls_in(traced: Traced, text: str) -> int:
    """How many calls Python makes while a program is traced, its own among them."""
    profile = cProfile.Profile()
    with profile:
        traced(text + "x = torch.ones(3)\ndef main():\n    for _ in range(2):\n        layer(x)\n")
    counted: Any = pstats.Stats(profile)
    return int(counted.total_calls)


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["t{0} * 2", "step(t{0})"])
def test_twice_as_many_variables_of_a_forward_are_twice_as_much_work(
    statement: str, traced: Traced
) -> None:
    _, some, many = (
        calls_in(traced, STEP + module(straight(count, statement) + "    return t0\n"))
        for count in (1, 200, 400)
    )
    assert many < TWICE_AND_A_LITTLE * some


def test_twice_as_deep_a_recursion_in_a_module_call_is_twice_as_many_looks(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def count_and_look(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return look(*args)

    look = variables._look_at
    monkeypatch.setattr(variables, "_look_at", count_and_look)

    def looks_of(depth: int) -> int:
        nonlocal looks
        looks = 0
        calls_in(traced, WALK + module(f"    return walk({depth}, t0)\n"))
        return looks

    some, many = looks_of(60), looks_of(120)
    assert 60 < many < TWICE_AND_A_LITTLE * some


def test_what_recorded_calls_tell_is_not_looked_at_in_a_function_that_may_run_again(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []

    def count_and_note(state: Any, activation: Any, name: str, *args: Any, **kwargs: Any) -> None:
        notes.append(name)
        note(state, activation, name, *args, **kwargs)

    note = variables._note
    monkeypatch.setattr(variables, "_note", count_and_note)

    def notes_of(count: int) -> int:
        notes.clear()
        body = straight(count, "t{0} * 2")
        traced(
            f"def function(t0):\n{body}    return t0\n"
            "def main():\n    for _ in range(3):\n        function(torch.ones(3))\n"
        )
        return len(notes)

    some, many = notes_of(200), notes_of(400)
    assert 400 < many < TWICE_AND_A_LITTLE * some


def test_a_variable_is_looked_at_again_when_another_call_gives_it_its_value(
    traced: Traced,
) -> None:
    # What torch.sum gives is told by its call, what the builtin one gives by none of its additions.
    text = (
        "import builtins\n"
        "def function(rows):\n"
        "    given = sum(rows)\n"
        "    torch.ones(1)\n"
        f"{straight(40, 'None')}"
        "    return given\n"
        "def main():\n"
        "    global sum\n"
        "    for sum in (torch.sum, builtins.sum):\n"
        "        function(torch.ones(2, 5))\n"
    )
    found = variables_of(traced(text))
    assert "4: given f32[]\n" in found
    assert "4: given f32[5]\n" in found


@pytest.mark.parametrize("is_module", [False, True])
def test_all_of_many_variables_are_known_with_each_of_their_shapes(
    is_module: bool, traced: Traced
) -> None:
    body = straight(60, "same(t{0})") + "    torch.ones(1)\n    return t0\n"
    function = module(body) if is_module else f"def layer(t0):\n{body}"
    ending = "def main():\n    for size in (2, 3, 2, 4):\n        layer(torch.ones(size))\n"
    trace = traced(SAME + function + ending)
    found = variables_of(trace)
    missing = [
        (number, size)
        for number in range(61)
        for size in (2, 3, 4)
        if f" t{number} f32[{size}]\n" not in found
    ]
    assert missing == []
