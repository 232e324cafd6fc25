"""Random functions, with somebody who listens and without, and an independent reference."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapetrace.instrument import Interest, follow
from tests.python.unit.instrument.listening import Heard, function_of, outcome, stored, traced
from tests.python.unit.instrument.programs import Programs

EVERYTHING = Interest(None, returns=True)


class Error(Exception):
    pass


class Manager(contextlib.AbstractContextManager[Any], contextlib.AbstractAsyncContextManager[Any]):
    def __init__(self, value: object) -> None:
        self.value = value

    def __enter__(self) -> object:
        return self.value

    def __exit__(self, *exception: object) -> bool:
        return isinstance(exception[1], Error)

    async def __aenter__(self) -> object:
        return self.value

    async def __aexit__(self, *exception: object) -> bool:
        return isinstance(exception[1], Error)

    def __repr__(self) -> str:
        return "manager"


class Pause:
    def __await__(self) -> Any:
        return (yield 1)

    def __repr__(self) -> str:
        return "pause"


def call(*values: object) -> object:
    if not values[0]:
        raise Error("call")
    return values[0]


def append(values: object, value: object) -> object:
    if isinstance(values, list) and len(values) < 5:
        values.append(1)
    return values


def items(value: object) -> list[Any]:
    return value if isinstance(value, list) else [1, [2]]


def world() -> dict[str, Any]:
    logged: list[str] = []
    return {
        "Error": Error,
        "manager": Manager,
        "pause": Pause,
        "call": call,
        "append": append,
        "items": items,
        "log": lambda *values: logged.append(repr(values)),
        "logged": logged,
    }


def run(function: Any, kind: str) -> object:
    """Everything that the function makes, one after the other."""
    made = function([1, 2], rest=3)
    if kind == "plain":
        return made
    if kind != "async generator":
        return driven(made)
    found = []
    for _ in range(20):
        try:
            found.append(driven(made.__anext__()))
        except StopAsyncIteration:
            break
    driven(made.aclose())
    return found


def driven(made: Any) -> list[str]:
    """What comes out of a generator or coroutine."""
    found = []
    for _ in range(20):
        try:
            found.append(repr(made.send(None)))
        except StopIteration as stop:
            found.append(repr(stop.value))
            break
    made.close()
    return found


def clean(value: object) -> str:
    import re

    return re.sub(r"0x[0-9a-f]+|<(function|class|code|module)[^>]*>", "", repr(value))


@pytest.mark.parametrize("kind", ["plain", "generator", "async", "async generator"])
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(seed=st.integers(0, 10**9))
def test_a_random_function_is_heard_and_not_disturbed(kind: str, seed: int) -> None:
    check(kind, seed)


def check(kind: str, seed: int) -> None:
    text = Programs(seed, kind).text()
    given_ = world()
    try:
        function = function_of(text, **given_)
    except SyntaxError:
        return
    code = function.__code__
    plain = outcome(lambda: run(function, kind))
    plain_log = [*given_["logged"]]
    _, plain_events = traced(code, lambda: run(function, kind))
    reference = stored(code, lambda: run(function, kind))
    given_["logged"].clear()
    heard = Recent()
    with follow(function, EVERYTHING, heard) as following:
        assert clean(outcome(lambda: run(function, kind))) == clean(plain), text
        assert [clean(e) for e in given_["logged"]] == [clean(e) for e in plain_log], text
        arguments = [("a", [1, 2]), ("b", 2), ("rest", ()), ("d", 4)]
        told = [(name, clean(value), line) for name, value, line in heard.told]
        assert following.error is None
        expected = [(name, clean_text(value), line) for name, value, line in reference]
        assert told[len(arguments) + 1 :] == expected, text
        result, events = traced(code, lambda: run(function, kind))
        assert events == plain_events, text
    assert function.__code__ is code


def clean_text(value: str) -> str:
    import re

    return re.sub(r"0x[0-9a-f]+|<(function|class|code|module)[^>]*>", "", value)


class Recent(Heard):
    """Keeps texts, as values change."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, Any, int]] = []

    def looked_at(self, state: Any, name: str, value: object, line: int, assigned: bool) -> None:
        if assigned:
            self.told.append((name, Raw(repr(value)), line))


class Raw(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
