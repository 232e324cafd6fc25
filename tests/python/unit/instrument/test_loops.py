"""A debugger that steps through a loop stops at each line as often as without us."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from shapetrace.instrument import Interest, follow
from tests.python.unit.instrument.listening import Heard, function_of

LOOPS = [
    "n = 0\n    while n < k:\n        m = n\n        n += 1",
    "n = 0\n    while n < k: n += 1",
    "n = 0\n    while n < k:\n        while n < 1:\n            n += 1\n        n += 1",
    "n = [1, 2]\n    while n.pop() and n:\n        m = 1\n    else:\n        m = 2",
    "n = 0\n    while (\n        n\n        < k\n    ):\n        n += 1",
    "n = 0\n    while True:\n        n += 1\n        if n > k:\n            break",
    "n = 0\n    while n < k:\n        n += 1\n        if n == 1: continue\n        m = n",
    "n = 0\n    while (n := n + 1) < k:\n        @(\n            id\n        )\n        def g(): 1",
    "n = 0\n    while n < k:\n        if n:\n            m = 1\n        n += 1",
    "n = 0\n    while n < k:\n        for i in range(1):\n            n += 1",
    "for i in range(k):\n        n = i\n    else:\n        n = 1",
]


def lines(function: Any) -> list[int]:
    """The lines that are stopped at, again and again where it is the same one."""
    seen: list[int] = []

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != function.__code__.co_filename:
            return None
        if event == "line":
            seen.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(2)
    finally:
        sys.settrace(before)
    return seen


@pytest.mark.parametrize("body", LOOPS)
def test_no_line_of_a_loop_is_stopped_at_twice(body: str) -> None:
    function = function_of(f"def f(k):\n    {body}\n    return n\n")
    plain = lines(function)
    with follow(function, Interest(None, True), Heard()):
        assert lines(function) == plain
    assert lines(function) == plain
