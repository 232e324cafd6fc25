"""A random module, with hooks and without, as a debugger sees it."""

from __future__ import annotations

import linecache
import re
import textwrap
from typing import Any

from shapetrace.instrument import Interest
from shapetrace.instrument.module_rewriting import MODULE, follow_module
from tests.python.unit.instrument.listening import Heard, traced
from tests.python.unit.instrument.programs import Programs
from tests.python.unit.instrument.worlds import clean, world

FILE = "<random module>"


def check_module(seed: int, *, lines: bool = True) -> None:
    """Fail where somebody could tell which of the two it is; by its lines too, if so wanted."""
    body = Programs(seed).text().partition("\n")[2].partition("\n")[2]
    text = "a, b, rest, d, named = 1, 2, (3,), 4, {}\n" + textwrap.dedent(body)
    text = re.sub(r"\breturn\b(.*)", r"raise StopIteration(\1)", text)
    try:
        code = compile(text, FILE, "exec", dont_inherit=True)
    except SyntaxError:
        return
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    heard = Heard()

    def choose(name: str, node: object, own: object) -> list[tuple[Interest, Heard]]:
        return [(Interest(None, returns=True), heard)] if name == MODULE else []

    followed = follow_module(text, code, "random", choose)
    assert followed is not None
    assert followed.problems == ()

    def result(code: Any) -> tuple[object, list[Any]]:
        namespace = {**world(), "__name__": "random"}
        returned, events = traced(code, lambda: exec(code, namespace))
        names = {name: value for name, value in namespace.items() if name in "abcdrestnamed"}
        logged = namespace["logged"]
        return clean(repr((returned, names, logged))), events

    plain, expected = result(code)
    hooked, seen = result(followed.code)
    assert hooked == plain, text
    assert not lines or seen == expected, text
    assert followed.followings[0][1].error is None
