"""What is heard of a function: its calls, what its variables are assigned, what it returns."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import types
import weakref
from typing import Any

import pytest

from shapetrace.instrument import Hooks, Interest, follow
from shapetrace.instrument.hidden_twins import hidden_twin
from shapetrace.instrument.hooks import HookSite
from tests.python.unit.instrument.listening import Heard, function_of

EVERYTHING = Interest(None, returns=True)


def heard_of(text: str, *arguments: object, name: str = "f", **given: Any) -> Heard:
    function = function_of(text, name, **given)
    code = function.__code__
    heard = Heard()
    with follow(function, EVERYTHING, heard) as following:
        function(*arguments)
    assert following.error is None
    assert function.__code__ is code
    return heard


def test_arguments_assignments_and_what_is_returned_are_heard_with_their_lines() -> None:
    heard = heard_of(
        """
        def f(a, /, b, *rest, c=3, **named):
            x = a + b
            x += 1
            (y, *z), w = (1, 2), 3
            return x
        """,
        1,
        2,
    )
    assert heard.assigned == [
        ("a", 1, 2),
        ("b", 2, 2),
        ("rest", (), 2),
        ("c", 3, 2),
        ("named", {}, 2),
        ("x", 3, 3),
        ("x", 4, 4),
        ("y", 1, 5),
        ("z", [2], 5),
        ("w", 3, 5),
    ]
    assert heard.returns == [(4, 6)]
    assert [(first, line) for _, first, line in heard.calls] == [(1, 2)]


def test_a_variable_that_is_only_declared_is_none() -> None:
    heard = heard_of(
        """
        def f(a):
            x: int
            y: int
            a[0]: int = 4
            if a:
                y = 5
            return a
        """,
        [0],
    )
    assert [name for name, _, _ in heard.assigned] == ["a", "y"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in 4, 5: pass", [("i", 4, 2), ("i", 5, 2)]),
        ("while (n := len(a)) > 2: a.pop()", [("n", 3, 2), ("n", 2, 2)]),
        ("with m(7) as v, m(8) as w: pass", [("v", 7, 2), ("w", 8, 2)]),
        ("import os.path as p, sys", [("p", os.path, 2), ("sys", sys, 2)]),
        ("from os import sep as s", [("s", os.sep, 2)]),
        ("v: int = 3", [("v", 3, 2)]),
        ("if a: x = 1; y = 2", [("x", 1, 2), ("y", 2, 2)]),
        ("z = [i for i in (7,) if (j := i) > 1]", [("i", 7, 2), ("j", 7, 2), ("z", [7], 2)]),
        ("z = {i: j for i in (1,) for j in (2,)}", [("i", 1, 2), ("j", 2, 2), ("z", {1: 2}, 2)]),
        ("z = sum(i for i in (1, 2))", [("i", 1, 2), ("i", 2, 2), ("z", 3, 2)]),
        ("match a:\n  case [x, *y] if x: pass", [("x", 1, 3), ("y", [2, 3], 3)]),
        ("match {1: 2, 3: 4}:\n  case {1: x, **y}: pass", [("x", 2, 3), ("y", {3: 4}, 3)]),
        ("x = 1; del x; x = 2", [("x", 1, 2), ("x", 2, 2)]),
        ("x = (\n  1 +\n  1)", [("x", 2, 2)]),
        ("x = 1 + \\\n  1", [("x", 2, 2)]),
        ("ä = 'ö'", [("ä", "ö", 2)]),
    ],
)  # fmt: skip
def test_every_kind_of_store_is_heard_once_it_is_done(body: str, expected: list[Any]) -> None:
    class Manager:
        def __init__(self, value: object) -> None:
            self.value = value

        def __enter__(self) -> object:
            return self.value

        def __exit__(self, *exception: object) -> None: ...

    text = "def f(a):\n" + "\n".join("\t" + line for line in body.split("\n")) + "\n"
    heard = heard_of(text, [1, 2, 3], m=Manager)
    assert heard.assigned[1:] == expected
    assert heard.returns == [(None, heard.returns[0][1])]


def test_definitions_and_errors_are_heard() -> None:
    heard = heard_of(
        """
        def f(base):
            def g(): return 1
            class C(base): x = g()
            try:
                raise ValueError(1)
            except ValueError as error:
                pass
        """,
        object,
    )
    assert [(name, line) for name, _, line in heard.assigned[1:]] == [
        ("g", 3),
        ("C", 4),
        ("error", 7),
    ]


@pytest.mark.parametrize("statement", ["a.append(1)", "a += [1]", "a[0:0] = [1]", "del a[0]",
                                       "b = a.append(1)", "o.x = a.append(1)", "a.append(1) or b",
                                       "with m: a.append(1)", "[a.append(i) for i in (1, 2)]",
                                       "assert not a.append(1)"])  # fmt: skip
def test_what_may_have_changed_a_variable_has_it_looked_at(statement: str) -> None:
    seen: list[str] = []

    class Texts(Heard):
        def looked_at(
            self, state: Any, name: str, value: object, line: int, assigned: bool
        ) -> None:
            if name == "a":
                seen.append(repr(value))

    class Manager:
        x = 0

        def __enter__(self) -> None: ...
        def __exit__(self, *exception: object) -> None: ...

    function = function_of(f"def f(a, b, o):\n    {statement}\n", m=Manager())
    values = [5, 6]
    with follow(function, Interest(frozenset({"a"}), False), Texts()):
        function(values, 2, Manager())
    assert seen[0] == "[5, 6]"
    assert seen[-1] == repr(values) != "[5, 6]"


def test_a_variable_is_looked_at_only_where_it_has_a_value() -> None:
    text = """
        def f(c):
            if c:
                x = 1
            g()
            if c:
                del x
            g()
            try:
                raise ValueError
            except ValueError as e:
                g()
            g()
        """
    for given in (True, False):
        heard = heard_of(text, given, g=lambda: None)
        looked = [(name, line) for name, _, line, assigned in heard.events if not assigned]
        assert [line for name, line in looked if name == "x"] == [5] * given
        assert [line for name, line in looked if name == "e"] == [11, 12][1:]


def test_only_what_was_asked_for_is_heard() -> None:
    function = function_of("def f(a):\n    x = a\n    y = g(x)\n    return y\n", g=abs)
    heard = Heard()
    with follow(function, Interest(frozenset({"y"}), False), heard):
        function(1)
    assert heard.events == [("y", 1, 3, True)]
    assert heard.returns == []


def test_a_call_that_nobody_is_interested_in_is_left_alone() -> None:
    function = function_of("def f(a):\n    x = a\n    if a: f(a - 1)\n    return x\n")
    heard = Heard(lambda call: bool(call.first % 2))
    with follow(function, EVERYTHING, heard):
        function(3)
    assert heard.of("a") == [3, 1]
    assert heard.returns == [(1, 4), (3, 4)]


@pytest.mark.slow
def test_states_are_those_of_each_call_in_recursion_threads_and_generators() -> None:
    function = function_of("def f(n):\n    x = n\n    if n: f(n - 1)\n    y = n\n")
    heard = Heard()
    with follow(function, EVERYTHING, heard):
        function(2)
        assert [state for state, name in heard.states if name == "y"] == [3, 2, 1]
        threads = [threading.Thread(target=function, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(heard.returns) == 3 + 1 + 2 + 3 + 4
    function = function_of("def f(n):\n    for i in range(n):\n        yield i\n    return n\n")
    heard = Heard()
    with follow(function, Interest(None, returns=False), heard):
        first, second = function(2), function(2)
        assert [next(first), next(second), next(first), *first, *second] == [0, 0, 1, 1]
    told = zip(heard.states, heard.events, strict=False)
    assert [state for (state, name), event in told if name == "i" and event[3]] == [1, 2, 1, 2]


def test_asynchronous_functions_and_generators_are_heard() -> None:
    text = """
        async def f(n):
            await sleep(0)
            found = [i async for i in g(n)]
            async with manager as m:
                x = m
            return found
        """
    generator = function_of(
        "async def g(n):\n    for i in range(n):\n        yield i\n    return\n", "g"
    )

    class Manager:
        async def __aenter__(self) -> int:
            return 5

        async def __aexit__(self, *exception: object) -> None: ...

    function = function_of(text, sleep=asyncio.sleep, g=generator, manager=Manager())
    heard, inner = Heard(), Heard()

    async def main() -> Any:
        return await asyncio.gather(function(2), function(1))

    with follow(function, EVERYTHING, heard), follow(generator, EVERYTHING, inner):
        assert asyncio.run(main()) == [[0, 1], [0]]
    assert sorted(heard.returns) == [([0], 7), ([0, 1], 7)]
    assert heard.of("x") == [5, 5]
    assert sorted(heard.of("i")) == [0, 0, 1]  # type: ignore[type-var]
    assert inner.returns == [(None, 4), (None, 4)]


def test_methods_of_all_kinds_closures_super_and_private_names() -> None:
    text = """
        class A:
            def m(self, x):
                return x
        def make(k):
            class B(A):
                __secret = 1
                def m(self, x):
                    __y = super().m(x) + self.__secret + k
                    return __y
                @staticmethod
                def s(x):
                    return x
                @classmethod
                def c(cls):
                    y = __class__
                    return y
            return B
        """
    made = function_of(text, "make")(10)
    heard = Heard()
    with (
        follow(made.m, EVERYTHING, heard),
        follow(made.__dict__["s"].__func__, EVERYTHING, heard),
        follow(made.__dict__["c"].__func__, EVERYTHING, heard),
    ):
        instance = made()
        assert instance.m(1) == 12
        assert made.s(3) == 3
        assert made.c() is made
    assert heard.of("__y") == [12]
    assert [first for _, first, _ in heard.calls] == [instance, 3, made]


def test_cells_stay_shared_and_nonlocal_stores_are_heard() -> None:
    text = """
        def make():
            n = 0
            def count():
                nonlocal n
                n += 1
                return n
            def read(): return n
            return count, read
        """
    count, read = function_of(text, "make")()
    heard = Heard()
    with follow(count, EVERYTHING, heard):
        count()
        count()
    assert read() == 2
    assert heard.of("n") == [1, 2]


def test_a_function_within_the_function_is_heard() -> None:
    text = """
        def f(n):
            def helper(x):
                y = x * n
                return y
            class C:
                def m(self): return 1
            C().m()
            return helper(1) + helper(2)
        """
    function = function_of(text)
    heard, other = Heard(), Heard()
    with (
        follow(function, Interest(None, True, ("helper",)), heard),
        follow(function, Interest(frozenset(), True, ("C", "m")), other),
    ):
        assert function(3) == 9
    assert heard.of("y") == [3, 6]
    assert heard.returns == [(3, 5), (6, 5)]
    assert other.returns == [(1, 7)]


def test_what_finally_does_to_a_return_is_heard() -> None:
    def returns(text: str) -> list[Any]:
        function = function_of(text)
        heard = Heard()
        with follow(function, EVERYTHING, heard):
            try:
                function()
            except ValueError:
                pass
        return heard.returns

    assert returns("def f():\n  try: return 1\n  finally: x = 2\n") == [(1, 2)]
    assert returns("def f():\n  try: return 1\n  finally: return 2\n") == [(2, 3)]
    assert returns("def f():\n  try: return 1\n  finally: raise ValueError\n") == []
    assert returns("def f():\n  while True:\n    try: return 1\n    finally: break\n") in (
        [(None, 4)],
        [(None, 3)],
    )
    assert returns("def f():\n  raise ValueError\n") == []


def test_listeners_combine_and_the_last_gives_the_code_back() -> None:
    function = function_of("def f(a):\n    x = a\n    y = x\n    yield y\n    z = y\n")
    code = function.__code__
    first, second = Heard(), Heard()
    one = follow(function, Interest(frozenset({"x", "z"}), False), first)
    running = function(1)
    next(running)
    two = follow(function, Interest(frozenset({"y"}), True), second)
    list(function(2))
    one.stop()
    one.stop()
    assert list(running) == []
    assert function.__code__ is not code
    list(function(3))
    two.stop()
    assert function.__code__ is code
    assert first.assigned == [("x", 1, 2), ("x", 2, 2), ("z", 2, 5)]
    assert second.assigned == [("y", 2, 3), ("y", 3, 3)]
    assert [value for value, _ in second.returns] == [None, None]


def test_what_a_listener_raises_ends_the_following_and_not_the_function() -> None:
    for method in ("entered", "looked_at", "returned"):
        function = function_of("def f(a):\n    x = a\n    return x\n")
        code = function.__code__
        heard = Heard()
        error = RuntimeError(method)

        def fail(*values: object, error: Exception = error) -> None:
            raise error

        setattr(heard, method, fail)
        following = follow(function, EVERYTHING, heard)
        assert function(1) == 1
        assert following.error is error
        assert not following.is_active
        assert function.__code__ is code


def test_nothing_outlives_its_call() -> None:
    class Value: ...

    class Forgetful(Heard):
        def entered(self, call: Any) -> object:
            state = Value()
            alive.append(weakref.ref(state))
            return state

        def looked_at(self, *_: object) -> None: ...
        def returned(self, *_: object) -> None: ...

    alive: list[weakref.ref[Any]] = []

    def value() -> Value:
        made = Value()
        alive.append(weakref.ref(made))
        return made

    texts = [
        "def f(a):\n    x = a\n    return [i for i in [x]]\n",
        "def f(a):\n    x = a\n    raise ValueError\n",
        "def f(a):\n    x = value()\n    yield x\n    yield x\n",
        "def f(a):\n    x = (i for i in [a, a])\n    next(x)\n    return x\n",
        "def f(a):\n    try: return a\n    finally: raise ValueError\n",
    ]
    gc.disable()
    try:
        for text in texts:
            function = function_of(text, value=value)
            with follow(function, EVERYTHING, Forgetful()):
                try:
                    made = function(value())
                    if "yield" in text:
                        next(made)
                except ValueError:
                    made = None
                if text != texts[3]:
                    del made
                    assert [each() for each in alive] == [None] * len(alive), text
                alive.clear()
                made = None
    finally:
        gc.enable()


class HeardUnseen(Heard):
    """Heard as the agent's listeners hear: a debugger is kept out of their hooks."""

    def hooks(self) -> Hooks:
        return super().hooks().each(lambda hook: hook)


def hidden_hooks(function: types.FunctionType) -> dict[str, bool]:
    """The hooks in a function's code, and whether they have code of their own to hide."""
    found = {}
    for each in function.__code__.co_consts:
        site = getattr(each, "__self__", None)
        if isinstance(site, HookSite):
            code = each.__func__.__code__
            name = each.__name__ + "".join(f" {mark[0]}" for mark in site.marks)
            found[name] = code is not vars(HookSite)[each.__name__].__code__
            assert (code in HIDDEN) is found[name]
    return found


HIDDEN = {
    each.__code__ for each in vars(hidden_twin(HookSite)).values() if hasattr(each, "__code__")
}


def test_only_hooks_of_hidden_listeners_can_be_hidden() -> None:
    text = """
        def f(a):
            x = a + 1
            y = 3
            return y
        """
    function, seen, unseen = function_of(text), Heard(), HeardUnseen()
    with follow(function, Interest(frozenset("xy"), returns=True), unseen):
        alone = hidden_hooks(function)
        with follow(function, Interest(frozenset("x"), returns=True), seen):
            both = hidden_hooks(function)
            assert function(1) == 3
        assert hidden_hooks(function) == alone
        assert function(1) == 3
    assert alone == {"enter": True, "look_at_one x": True, "look_at_one y": True, "return_": True}
    assert both == {**alone, "enter": False, "look_at_one x": False, "return_": False}
    assert seen.events == [("x", 2, 3, True)]
    assert unseen.events == [("x", 2, 3, True), ("y", 3, 4, True)] * 2
