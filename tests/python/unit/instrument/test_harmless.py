"""A function that is followed is to everybody else what it was."""

from __future__ import annotations

import contextlib
import copy
import inspect
import pickle
import sys
import types
import warnings
from functools import partial
from typing import Any

import pytest

from shapetrace.instrument import Interest, follow
from tests.python.unit.instrument.listening import Heard, function_of, outcome, traced

EVERYTHING = Interest(None, returns=True)

HIDDEN = {"j"}
"""From Python 3.12 on a comprehension's variables are among the function's; nobody sees where."""

TEXT = '''
def around(function):
    return function

class C:
    @around
    def f(self, a, b: "int" = 2, *rest, c=3, **named):
        """What it does."""
        import warnings
        global shared
        x = (a +
             b)
        if x: y = 1; z = 2
        for i in range(2):
            if i: continue
            w = [j for j in (1, 2) if (k := j)]
        warnings.warn("here")
        shared = list(locals())
        try:
            {}["missing"]
        except KeyError as error:
            kept = error
        text = f"{x!r:>{b}}"
        return str(
            a.missing
            if named else
            len(text)), sorted(locals().keys())
'''


def followed(**given: Any) -> tuple[Any, Any]:
    plain = function_of(TEXT, "C.f", **given)
    other = function_of(TEXT, "C.f", file=plain.__code__.co_filename, **given)
    return plain, other


def test_results_errors_locals_and_lines_are_the_same() -> None:
    plain, other = followed()
    with follow(other, EVERYTHING, Heard()):
        given: list[dict[str, int]] = [{}, {"q": 1}]
        for arguments in given:
            results = []
            for function in (plain, other):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    action = partial(function, None, 1, **arguments)
                    result, events = traced(function.__code__, action)
                places = [(each.filename, each.lineno) for each in caught]
                results.append((result, events, places, function.__globals__["shared"]))
            assert results[0] == results[1]
            assert outcome(lambda: plain(1)) == outcome(lambda: other(1))


def test_nothing_of_the_function_is_another_but_its_code() -> None:
    plain, other = followed()
    before = {name: getattr(other, name) for name in dir(other) if name != "__code__"}
    source, signature = inspect.getsource(other), inspect.signature(other)
    with follow(other, EVERYTHING, Heard()):
        assert inspect.getsource(other) == source
        assert inspect.signature(other) == signature
        for name, value in before.items():
            if not callable(value):
                assert getattr(other, name) == value
        old, new = plain.__code__, other.__code__
        same = (
            "co_name co_qualname co_filename co_firstlineno co_cellvars co_freevars co_flags "
            "co_argcount co_posonlyargcount co_kwonlyargcount co_names"
        )
        for name in same.split():
            assert getattr(new, name) == getattr(old, name), name
        assert set(new.co_varnames) == set(old.co_varnames)
        assert [name for name in new.co_varnames if name not in HIDDEN] == [
            name for name in old.co_varnames if name not in HIDDEN
        ]
        assert set(old.co_positions()) - set(new.co_positions()) == set()
        assert {line for _, _, line in new.co_lines()} == {line for _, _, line in old.co_lines()}
        assert set(other.__globals__) - set(plain.__globals__) <= {"shared"}


def test_a_line_is_come_to_as_often_as_ever() -> None:
    """``traced`` takes a line that comes twice for one; a step of a debugger's ends at each."""
    plain, other = (
        function_of(
            """
            def f(x):
                with contextlib.suppress(ValueError):
                    int("no")
                declared: int
                declared = x
                while x < 3: x += 1
                return x
            """,
            contextlib=contextlib,
        )
        for _ in range(2)
    )

    def lines(function: Any) -> list[int]:
        found = []

        def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
            if frame.f_code is not function.__code__:
                return None
            if event == "line":
                found.append(frame.f_lineno)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            function(1)
        finally:
            sys.settrace(before)
        return found

    with follow(other, EVERYTHING, Heard()):
        assert lines(other) == lines(plain)


def test_calls_are_at_the_same_places_and_followed_by_the_same_stores() -> None:
    import dis

    plain, other = followed()

    def calls(code: types.CodeType) -> list[Any]:
        found = [
            (each.opname, each.positions)
            for each in dis.get_instructions(code)
            if each.opname.startswith(("CALL", "STORE_FAST"))
        ]
        return [each for each in found if each[0] == "STORE_FAST" or each in known]

    known: list[Any] = []
    known = [
        (each.opname, each.positions)
        for each in dis.get_instructions(plain.__code__)
        if each.opname.startswith("CALL")
    ]
    with follow(other, EVERYTHING, Heard()):
        heard = calls(other.__code__)
        assert [each for each in calls(plain.__code__) if each not in heard] == []


def test_the_hooks_can_be_pickled_and_copied_and_then_do_nothing() -> None:
    function = function_of(
        "def f(a):\n    x = [a]\n    for i in x: y = i\n    g()\n    return y\n", g=int
    )
    heard = Heard()
    with follow(function, EVERYTHING, heard):
        code = function.__code__
        for duplicate in (lambda c: pickle.loads(pickle.dumps(c)), copy.copy, copy.deepcopy):
            constants = tuple(
                each if isinstance(each, types.CodeType) else duplicate(each)
                for each in code.co_consts
            )
            copied = types.FunctionType(code.replace(co_consts=constants), function.__globals__)
            assert copied(3) == 3
        pickled = tuple(
            each if isinstance(each, types.CodeType) else pickle.loads(pickle.dumps(each))
            for each in code.co_consts
        )
        count = len(heard.events)
        quiet = types.FunctionType(code.replace(co_consts=pickled), function.__globals__)
        assert quiet(4) == 4
        assert len(heard.events) == count


def test_following_warns_of_nothing_and_shows_no_warning_anew() -> None:
    text = 'def f(a):\n    x = a is 1\n    return "\\d"\n'
    filters = [*warnings.filters]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = function_of(text)
    version = warnings._filters_mutated  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with follow(function, EVERYTHING, Heard()):
            assert function(1) == "\\d"
    assert warnings.filters == filters
    assert warnings._filters_mutated is version  # type: ignore[attr-defined]


def test_annotations_that_are_not_evaluated_stay_so() -> None:
    future = "from __future__ import annotations\n"
    text = f"{future}def f(a: missing) -> None:\n    x: gone = a\n    return x\n"
    function = function_of(text)
    heard = Heard()
    with follow(function, EVERYTHING, heard):
        assert function(1) == 1
    assert heard.of("x") == [1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        'def f():\n    """Nothing else."""\n',
        "def f(): return 1\n",
        "def f(): pass\n",
        "def f(x):\n\treturn x\n",
        "def f(x): y = x; return y\n",
        "def f(x, *, y=1): (yield x); return (yield y)\n",
        "def f(x):\n    'ä'; return (\n\n        x\n    )\n",
    ],
)
def test_short_functions_have_the_same_lines(text: str) -> None:
    plain = function_of(text)
    other = function_of(text, file=plain.__code__.co_filename)
    arguments = (5,) * other.__code__.co_argcount

    def run(function: Any) -> object:
        made = function(*arguments)
        return list(made) if inspect.isgenerator(made) else made

    with follow(other, EVERYTHING, Heard()):
        assert traced(plain.__code__, lambda: run(plain)) == traced(
            other.__code__, lambda: run(other)
        )
        assert other.__doc__ == plain.__doc__


def test_no_error_is_raised_in_the_frame_of_the_function_by_us() -> None:
    function = function_of("def f(c):\n    if c: x = 1\n    g()\n    del c\n    g()\n", g=int)
    raised = []

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "exception":
            raised.append(argument)
        return trace

    before = sys.gettrace()
    with follow(function, EVERYTHING, Heard()):
        sys.settrace(trace)
        function(0)
        sys.settrace(before)
    assert raised == []
