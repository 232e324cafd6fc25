"""What can be followed and what is refused, each with a message."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from shapetrace import auto_diff, var_tracker
from shapetrace._errors import CannotFollowError, NameSyntaxError
from shapetrace.variables.followed_names import parse_name
from shapetrace.variables.tracking import Request, track
from tests.python.unit.variables.programs import Program

Load = Callable[..., Program]


def plain(x: object) -> object:
    return x


@pytest.mark.parametrize(
    ("text", "root", "steps"),
    [
        ("video", "video", ()),
        (" größe ", "größe", ()),
        ("sample['video']", "sample", ((True, "video"),)),
        ('sample["a b"].c', "sample", ((True, "a b"), (False, "c"))),
        ("self.cache.k", "self", ((False, "cache"), (False, "k"))),
        ("outs[-1][0]", "outs", ((True, -1), (True, 0))),
        ("d[None]", "d", ((True, None),)),
    ],
)
def test_names_are_read(text: str, root: str, steps: object) -> None:
    name = parse_name(text)
    assert (name.text, name.root, name.steps) == (text.strip(), root, steps)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "an empty name"),
        ("a b", "'a b' is no name of a variable"),
        ("class", "'class' is no name"),
        ("1", "'1' has more in it than names"),
        ("f()", r"'f\(\)' has more in it"),
        ("a[i]", r"brackets of 'a\[i\]' is to be a number or a text"),
        ("a[1:2]", "brackets"),
        ("a + b", "has more in it"),
        (3, "a value of class int is no text"),
        ("a\0b", "is no name of a variable"),
    ],
)
def test_names_that_are_none_are_refused_at_once(name: Any, message: str) -> None:
    with pytest.raises(NameSyntaxError, match=message):
        var_tracker(name)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda x: x, "is a lambda"),
        (len, "len is built in"),
        ([].append, "append is built in"),
        (torch.add, "add is built in"),
        (Program, "Program is a class: decorate the methods"),
        (functools.partial(plain), "functools.partial"),
        (torch.nn.Linear(2, 2), "a value of class Linear"),
        (3, "a value of class int"),
        (eval("lambda: 0"), "is a lambda"),
        (types.FunctionType(compile("1", "<nowhere>", "exec"), {}), "is not there|source"),
    ],
)
def test_what_is_no_function_is_refused(value: Any, message: str) -> None:
    with pytest.raises(CannotFollowError, match=message):
        auto_diff(value)
    with pytest.raises(CannotFollowError, match=message):
        var_tracker("x")(value)


def test_a_decorator_without_names_says_what_to_write() -> None:
    decorator: Any = var_tracker
    number: Any = 3
    with pytest.raises(TypeError, match=r"write @var_tracker\(\"name\"\) above it"):
        decorator(plain)
    with pytest.raises(ValueError, match="tolerance is to be a number from 0 on, not -1"):
        var_tracker("x", tolerance=-1)
    with pytest.raises(TypeError, match="handler is to be a function, not int"):
        auto_diff(handler=number)


def test_functions_are_restored_exactly(program: Load) -> None:
    it = program("""
        def f(x):
            x = x + 1
            return x

        def make():
            def g(x):
                x = x + 1
                return x
            return g
    """)
    for function in (it.module.f, it.module.make()):
        code, names = function.__code__, dict(vars(function))
        request = Request((), (it.events.append,))
        first, second = track(function, request), track(function, request)
        with pytest.raises(TypeError):
            function(None)
        first.stop()
        function(1)
        assert function.__code__ is not code
        second.stop()
        second.stop()
        assert function.__code__ is code
        assert dict(vars(function)) == names
        count = len(it.events)
        assert count == 4
        function(1)
        assert len(it.events) == count
        it.events.clear()


@pytest.mark.slow
def test_a_function_in_a_function_is_let_go(program: Load) -> None:
    it = program("""
        import gc, weakref

        class Big: pass

        def make():
            big = Big()
            @auto_diff(handler=told)
            def inner():
                return big and 1
            inner()
            return weakref.ref(big)
    """)
    reference = it.module.make()
    it.module.gc.collect()
    assert reference() is None
