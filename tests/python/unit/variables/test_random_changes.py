"""What is told of random functions, against somebody who compares all values after each line."""

from __future__ import annotations

import asyncio
import linecache
import opcode
import re
import sys
import traceback
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from shapetrace import var_tracker
from shapetrace.events.followed import FollowedEvent, FollowedValue, VariableChanged
from shapetrace.variables.describing import describe
from tests.python.unit.variables.random_functions import HELPERS, KINDS, NAMES, RandomFunction

Function = Callable[..., Any]


class Change(NamedTuple):
    """A variable has another value after a line."""

    line: int
    name: str
    before: str | None
    after: str


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_change_of_a_random_function_is_told_where_it_was_made(kind: str) -> None:
    changes = sum(check(seed, kind) for seed in range(150))
    assert changes > 300


def check(seed: int, kind: str) -> int:
    text = RandomFunction(seed, kind).text()
    name = f"<random {kind} {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    try:
        code = compile(text, name, "exec")
    except SyntaxError:
        return 0
    function, logged = made(code)
    watcher = Watcher(function.__code__)
    plain = watcher.outcome(lambda: outcome(function, kind, name))
    followed, logged_then = made(code)
    events: list[FollowedEvent] = []
    var_tracker(*NAMES, handler=events.append)(followed)
    assert (outcome(followed, kind, name), logged_then) == (plain, logged), text
    told = [each for each in events if isinstance(each, VariableChanged)]
    for each in NAMES:
        expected = [change for change in watcher.changes if change.name == each]
        problem = compare(expected, [event for event in told if event.name == each])
        assert problem is None, f"{problem}\n{text}"
    return len(watcher.changes)


def made(code: CodeType) -> tuple[Function, list[str]]:
    """The function, and what it logs."""
    logged: list[str] = []
    names: dict[str, Any] = {"log": lambda value: logged.append(clean(value)), "__name__": "made"}
    exec(HELPERS, names)
    exec(code, names)
    function: Function = names["f"]
    return function, logged


def clean(value: object) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", repr(value))


def outcome(function: Function, kind: str, file: str) -> object:
    """What a run brings, with the lines of its traceback if it raises."""
    found: list[str] = []

    async def in_loop() -> None:
        if kind == "async":
            found.append(clean(await function([1, 2], torch.zeros(2))))
            return
        async for each in function([1, 2], torch.zeros(2)):
            found.append(clean(each))

    try:
        if kind == "plain":
            found.append(clean(function([1, 2], torch.zeros(2))))
        elif kind == "generator":
            found += [clean(each) for each in function([1, 2], torch.zeros(2))]
        else:
            asyncio.run(in_loop())
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        found.append(f"{error!r} {[each.lineno for each in frames if each.filename == file]}")
    return found


class Watcher:
    """Compares the variables of a function before and after each of its lines."""

    def __init__(self, code: CodeType) -> None:
        self.changes: list[Change] = []
        self._code = code
        self._line = 0
        self._before: dict[str, tuple[object, str]] | None = None
        self._kept: list[object] = []

    def outcome(self, run: Callable[[], object]) -> object:
        """What a run brings, while it is watched."""
        former = sys.gettrace()
        sys.settrace(self._begin)
        try:
            return run()
        finally:
            sys.settrace(former)

    def _begin(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code is not self._code:
            return None
        if self._before is None:
            self._before, self._line = self._values(frame), frame.f_lineno
        return self._step

    def _step(self, frame: FrameType, event: str, argument: object) -> Any:
        operation = opcode.opname[self._code.co_code[frame.f_lasti]]
        # Python 3.13 is at the next instruction then.
        is_pause = event == "return" and operation in ("YIELD_VALUE", "SEND", "RESUME")
        # From 3.12 on each round of a comprehension tells of its line, and its variables are there.
        is_round = event == "line" and frame.f_lineno == self._line
        if event in ("line", "return") and not is_pause and not is_round:
            self._compare(frame)
            self._line = frame.f_lineno
        return self._step

    def _compare(self, frame: FrameType) -> None:
        before, now = self._before or {}, self._values(frame)
        for name, (content, text) in now.items():
            former = before.get(name)
            if former is None or former[0] != content:
                self.changes.append(Change(self._line, name, former and former[1], text))
        self._before = now

    def _values(self, frame: FrameType) -> dict[str, tuple[object, str]]:
        values = {name: value for name, value in frame.f_locals.items() if name in NAMES}
        return {
            name: (self._content(value), repr(describe(value).value))
            for name, value in values.items()
        }

    def _content(self, value: Any) -> object:
        kind = type(value).__name__
        if isinstance(value, torch.Tensor):
            return kind, str(value.dtype), value.shape, value.numpy().tobytes()
        if isinstance(value, np.ndarray):
            content = repr(value) if value.dtype.hasobject else value.tobytes()
            return kind, str(value.dtype), value.shape, content
        if isinstance(value, list | tuple):
            return kind, [self._content(each) for each in value]
        if isinstance(value, dict):
            return kind, [(repr(key), self._content(each)) for key, each in value.items()]
        if isinstance(value, set):
            return kind, sorted(map(repr, value))
        if value is None or isinstance(value, int | float | str | np.generic):
            return kind, repr(value)
        self._kept.append(value)
        return kind, id(value)


def compare(expected: list[Change], told: list[VariableChanged]) -> str | None:
    """What is wrong with what was told; a line may make a change in several steps."""
    at = 0
    for change in expected:
        steps = told[at:]
        if not steps or steps[0].line != change.line or text(steps[0].before) != change.before:
            return f"{change} was told as {steps[:1]}"
        while at < len(told) and told[at].line == change.line:
            at += 1
            if text(told[at - 1].after) == change.after:
                break
        else:
            return f"{change} was told as {steps[:2]}"
    return f"nothing was changed at {told[at]}" if at < len(told) else None


def text(value: FollowedValue | None) -> str | None:
    return None if value is None else repr(value.value)
