"""Random functions that assign, change and raise, each statement on a line of its own."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c")
KINDS = ("plain", "generator", "async", "async generator")

HELPERS = """
import asyncio
import numpy as np
import torch

def change(value):
    if isinstance(value, list): value.append(len(value))
    elif isinstance(value, dict): value[len(value)] = 1
    elif isinstance(value, set): value.add(len(value) + 100)
    elif isinstance(value, np.ndarray): value.flat[0] += 1
    elif isinstance(value, torch.Tensor): value.add_(1)
    return 1

def spoil(value):
    change(value)
    raise ValueError("spoilt")

def same(value):
    return value

class Manager:
    def __init__(self, value):
        self.value = value
    def __enter__(self):
        change(self.value)
        return self.value
    def __exit__(self, kind, *error):
        if kind is None: change(self.value)
    async def __aenter__(self):
        await asyncio.sleep(0)
        return self.__enter__()
    async def __aexit__(self, *error):
        await asyncio.sleep(0)
        self.__exit__(*error)

def items(value):
    for number in range(3):
        change(value)
        yield number

async def async_items(value):
    for number in items(value):
        await asyncio.sleep(0)
        yield number
"""

_VALUES = (
    *("1", "2", "None", "'text'", "float('nan')", "[1, 2]", "{{'k': 1}}", "{{1, 2}}", "(1, [2])"),
    *("np.zeros(3)", "np.ones((2, 2), 'uint8')", "np.array([1, 2], dtype=object)"),
    *("torch.zeros(3)", "torch.ones(2, 2)", "torch.ones(3).bool()", "{w}", "same({w})"),
    *("[{w}, 1]", "({w}, {v})", "{{'z': {w}}}", "[q for q in range(2)]", "(lambda q: q)({w})"),
)
_STATEMENTS = (
    *("change({v})", "spoil({v})", "log({v})", "{v} += 1", "{v} += [1]", "{v}[0] = 7"),
    *("{v}[0] += 1", "{v}, {w} = {w}, {v}", "{v}: object = {x}", "*{v}, z = [1, 2, 3]"),
    *("log(({v} := {x}))", "log([{v} for {v} in range(3)])", "log([change({v}) for q in (1, 2)])"),
    *("{v} = {v} if change({w}) else 1", "{v} = list(log(q) for q in items({w}))"),
    *("assert change({v})", "raise ValueError(change({v}))", "raise KeyError"),
    *("{v} = {x}",) * 5,
)


class RandomFunction:
    """The text of one function."""

    def __init__(self, seed: int, kind: str) -> None:
        self._random = random.Random(seed)
        self._kind = kind
        self._lines: list[str] = []
        self._loops = 0
        self._managers = 0
        self._left = 40

    def text(self) -> str:
        """The function, called ``f``."""
        is_async = self._kind.startswith("async")
        self._emit(0, f"{'async ' if is_async else ''}def f(a, b, c=None):")
        if "generator" in self._kind:
            self._emit(1, "yield 0")
        self._block(1, 5)
        self._emit(1, "a = 77")
        return "\n".join([*self._lines, ""])

    def _emit(self, depth: int, pattern: str) -> None:
        value, other = self._random.sample(NAMES, 2)
        expression = self._random.choice(_VALUES).format(v=value, w=other)
        text = pattern.format(v=value, w=other, x=expression)
        self._lines.append("    " * depth + text)

    def _block(self, depth: int, most: int = 3) -> None:
        for _ in range(self._random.randint(1, most)):
            self._left -= 1
            if self._left < 0:
                self._emit(depth, "pass")
            elif depth > 4 or self._random.random() < 0.6:
                self._emit(depth, self._random.choice((*_STATEMENTS, *self._others())))
            else:
                self._random.choice((self._if, self._loop, self._try, self._try, self._more))(depth)

    def _others(self) -> list[str]:
        found = []
        if not self._managers:
            found.append("return" if self._kind == "async generator" else "return change({v})")
            found += ["return", *(["break", "continue"] if self._loops else [])]
        if "generator" in self._kind:
            found.append("yield {v}")
        if self._kind == "generator":
            found.append("yield from items({v})")
        if self._kind.startswith("async"):
            found.append("await asyncio.sleep(0)")
        return found

    def _often(self, depth: int, head: str) -> None:
        if self._random.random() < 0.4:
            self._emit(depth, head)
            self._block(depth + 1)

    def _if(self, depth: int) -> None:
        self._emit(depth, "if change({v}) and same({w}) is not None:")
        self._block(depth + 1)
        self._often(depth, "elif change({v}):")
        self._often(depth, "else:")

    def _loop(self, depth: int) -> None:
        heads = ["for {v} in items({w}):", "for q in items({v}):", "for {v} in [1, 1]:"]
        if self._kind.startswith("async"):
            heads.append("async for q in async_items({w}):")
        if self._random.random() < 0.3:
            self._emit(depth, "n = 0")
            heads = ["while (n := n + 1) < 3 and change({v}):"]
        self._emit(depth, self._random.choice(heads))
        self._loops += 1
        self._block(depth + 1)
        self._loops -= 1
        self._often(depth, "else:")

    def _try(self, depth: int) -> None:
        self._emit(depth, "try:")
        self._block(depth + 1)
        before = len(self._lines)
        heads = ("except Exception:", "except Exception as error:")
        self._often(depth, self._random.choice(heads))
        has_handler = len(self._lines) > before
        if has_handler:
            self._often(depth, "else:")
        if not has_handler or self._random.random() < 0.4:
            loops, self._loops = self._loops, 0
            self._emit(depth, "finally:")
            self._block(depth + 1)
            self._loops = loops

    def _more(self, depth: int) -> None:
        which = self._random.randrange(4)
        if which == 0:
            head = "with Manager({v}) as q:"
            is_async = self._kind.startswith("async") and self._random.random() < 0.5
            self._emit(depth, f"async {head}" if is_async else head)
            self._managers += 1
            self._block(depth + 1)
            self._managers -= 1
        elif which == 1:
            self._emit(depth, "match {v}:")
            self._emit(depth + 1, "case [{w}, *_] if change({v}):")
            self._block(depth + 2)
            self._emit(depth + 1, "case {{'k': {w}}}:")
            self._block(depth + 2)
        elif which == 2:
            name = self._random.choice(NAMES)
            self._emit(depth, "def inner():")
            self._emit(depth + 1, f"nonlocal {name}")
            self._emit(depth + 1, self._random.choice((f"{name} = {{x}}", f"change({name})")))
            self._emit(depth, "inner()")
        else:
            self._emit(depth, "class Inner:")
            self._emit(depth + 1, "{v} = change({w})")
