"""What random functions use, and running them."""

from __future__ import annotations

import contextlib
import re
from typing import Any


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


def clean(text: str) -> str:
    """A text without what is another each time."""
    return re.sub(r"0x[0-9a-f]+|<(function|class|code|module)[^>]*>", "", text)
