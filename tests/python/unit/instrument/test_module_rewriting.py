"""Modules that run with hooks: what is heard, and that they are as they would have been."""

from __future__ import annotations

import inspect
import linecache
import sys
import textwrap
import traceback
import types
from typing import Any

import pytest

from shapetrace.instrument import Interest, follow
from shapetrace.instrument.module_rewriting import MODULE, FollowedModule, follow_module
from tests.python.unit.instrument.listening import Heard

FILE = "<module with hooks>"


def made(
    text: str, listeners: dict[str, Heard], names: frozenset[str] | None = None
) -> FollowedModule | None:
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    code = compile(text, FILE, "exec", dont_inherit=True)

    def choose(function: str, node: object, code: object) -> list[tuple[Interest, Heard]]:
        heard = listeners.get(function)
        return [] if heard is None else [(Interest(names, returns=True), heard)]

    return follow_module(text, code, "followed", choose)


def run(
    text: str, *functions: str, names: frozenset[str] | None = None
) -> tuple[dict[str, Heard], dict[str, Any]]:
    text = textwrap.dedent(text).lstrip("\n")
    listeners = {function: Heard() for function in functions}
    module = made(text, listeners, names)
    assert module is not None
    assert module.problems == ()
    assert len(module.followings) == len(functions)
    namespace: dict[str, Any] = {"__name__": "followed"}
    exec(module.code, namespace)
    assert [each.error for _, each in module.followings] == [None] * len(functions)
    return listeners, namespace


def test_what_a_module_assigns_is_heard() -> None:
    heard, namespace = run(
        """
        '''What it does.'''
        from __future__ import annotations
        x = [1]
        x += [2]
        x.append(3)
        for x in "ab":
            pass
        if (y := 2) and [z for z in (4, 5)]:
            x, y = 6, 7
        with open(__file__) if False else memoryview(b"") as v:
            pass
        def f(x): return x
        class C: x = 3
        """,
        MODULE,
    )
    assert heard[MODULE].assigned == [
        ("x", [1, 2, 3], 3),
        ("x", [1, 2, 3], 4),
        ("x", "a", 6),
        ("x", "b", 6),
        ("y", 2, 8),
        ("z", 4, 8),
        ("z", 5, 8),
        ("x", 6, 9),
        ("y", 7, 9),
        ("v", namespace["v"], 10),
        ("f", namespace["f"], 12),
        ("C", namespace["C"], 13),
    ]
    assert ("x", [1, 2, 3], 5, False) in heard[MODULE].events
    assert namespace["__doc__"] == "What it does."


def test_a_variable_of_a_module_may_go_at_any_time() -> None:
    heard, namespace = run(
        """
        def drop():
            global x
            del x
        x = 1
        drop()
        globals().update(x=2)
        x = len("abc")
        del x
        len("abc")
        """,
        MODULE,
        names=frozenset({"x"}),
    )
    assert heard[MODULE].assigned == [("x", 1, 4), ("x", 3, 7)]
    assert "x" not in namespace


def test_functions_are_followed_from_their_first_call_on() -> None:
    heard, _ = run(
        """
        def keep(function):
            return lambda *given: function(*given)
        class Outer:
            class Inner:
                @keep
                @staticmethod
                def m(x):
                    x = x + 1
                    return x
        def outer(x):
            def inner():
                nonlocal x
                x = 5
                y = x
                return y
            return inner()
        Outer.Inner.m(1)
        outer(2)
        outer(3)
        """,
        "Outer.Inner.m",
        "outer.<locals>.inner",
    )
    method, inner = heard["Outer.Inner.m"], heard["outer.<locals>.inner"]
    assert method.assigned == [("x", 1, 7), ("x", 2, 8)]
    assert method.returns == [(2, 9)]
    assert inner.of("y") == [5, 5]
    assert [call[0].__qualname__ for call in inner.calls] == ["outer.<locals>.inner"] * 2
    assert [call[0].__module__ for call in inner.calls] == ["followed"] * 2
    assert [call[2] for call in inner.calls] == [11, 11]


def test_a_function_that_was_made_with_hooks_can_be_followed_once_more() -> None:
    heard, namespace = run(
        """
        def f(x):
            y = x
            def inner(z):
                z += 1
                return z
            return inner(y)
        """,
        "f",
        "f.<locals>.inner",
    )
    function = namespace["f"]
    code = function.__code__
    also = Heard()
    with follow(function, Interest(frozenset({"y"}), returns=False), also):
        function(1)
    assert function.__code__ is code
    function(2)
    assert also.assigned == [("y", 1, 2)]
    assert heard["f"].of("y") == [1, 2]
    assert heard["f.<locals>.inner"].of("z") == [1, 2, 2, 3]


def test_a_function_whose_followings_have_stopped_is_followed_alone() -> None:
    text = "def f(x):\n    y = x\n    return y\n"
    heard = Heard()
    module = made(text, {"f": heard})
    assert module is not None
    namespace: dict[str, Any] = {"__name__": "followed"}
    exec(module.code, namespace)
    for _, following in module.followings:
        following.stop()
    also = Heard()
    with follow(namespace["f"], Interest(None, returns=False), also):
        namespace["f"](1)
    namespace["f"](2)
    assert heard.calls == []
    assert also.of("y") == [1]


def test_the_source_and_the_errors_are_as_they_are() -> None:
    _, namespace = run(
        """
        def f(x):
            '''Text.'''
            y = x
            return y / 0
        """,
        "f",
        MODULE,
    )
    function = namespace["f"]
    assert inspect.getsource(function) == linecache.getline(FILE, 1) + "".join(
        linecache.getlines(FILE)[1:4]
    )
    assert function.__doc__ == "Text."
    with pytest.raises(ZeroDivisionError) as raised:
        function(1)
    entry = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (entry.lineno, entry.colno, entry.end_colno) == (4, 11, 16)


def test_nothing_is_made_where_nobody_wants_to_hear() -> None:
    assert made("x = 1\n", {}) is None


def test_code_that_is_not_of_this_text_is_left_alone() -> None:
    code = compile("x = 2\n", FILE, "exec", dont_inherit=True)
    module = follow_module(
        "x = 1\n", code, "followed", lambda name, node, code: [(Interest(None, False), Heard())]
    )
    assert module is not None
    assert module.code is code
    assert module.problems[0][0] == MODULE
    assert "is not what runs" in module.problems[0][1]


def test_what_cannot_have_hooks_is_told_and_the_rest_has_them() -> None:
    most = 20 if sys.version_info < (3, 13) else 21  # blocks that Python compiles
    deep = "".join(f"{' ' * depth}for i in x:\n" for depth in range(most)) + " " * most + "y = 1\n"
    text = f"def f(x):\n{textwrap.indent(deep, ' ')}def g(x):\n    return x\n"
    heard = {"f": Heard(), "g": Heard()}
    module = made(text, heard)
    assert module is not None
    assert [name for name, _ in module.problems] == ["f"]
    assert "nested blocks" in module.problems[0][1]
    namespace: dict[str, Any] = {}
    exec(module.code, namespace)
    namespace["f"]([1])
    namespace["g"](2)
    assert heard["f"].calls == []
    assert heard["g"].of("x") == [2]


def test_a_module_with_hooks_has_the_names_that_it_would_have() -> None:
    text = textwrap.dedent(
        """
        "doc"
        import os.path as path
        from collections import *
        x: int = 1
        y: "str"
        try:
            raise ValueError(x)
        except ValueError as error:
            kept = error.args
        finally:
            z = 3
        match (1, 2):
            case (a, *b) if a:
                c = a
        for i in range(3):
            if i == 1:
                continue
            if i == 2:
                break
        else:
            never = 1
        while x < 3:
            x += 1
        del z
        def f(): pass
        """
    )
    plain: dict[str, Any] = {"__name__": "followed"}
    exec(compile(text, FILE, "exec", dont_inherit=True), plain)
    module = made(text, {MODULE: Heard()})
    assert module is not None
    assert module.problems == ()
    hooked: dict[str, Any] = {"__name__": "followed"}
    exec(module.code, hooked)
    assert list(plain) == list(hooked)
    same = {name: value for name, value in plain.items() if name not in ("f", "__builtins__")}
    if sys.version_info >= (3, 14):
        same.pop("__annotate__", None)
    assert {name: hooked[name] for name in same} == same
    assert isinstance(hooked["f"], types.FunctionType)
