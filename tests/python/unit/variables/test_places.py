"""On which line a change is told where exceptions, jumps and scopes make that hard to say."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest

from shapetrace.variables import calls, logs
from tests.python.unit.variables.programs import Program, text

Load = Callable[..., Program]

SPOILING = """
    def spoil(x):
        x.append(1)
        raise ValueError
"""


def outcomes(it: Program) -> list[tuple[str, str]]:
    return [(each.outcome, "" if each.value is None else text(each.value)) for each in it.ended]


def test_what_a_line_changed_before_it_raised_is_told_at_that_line(program: Load) -> None:
    it = program(
        SPOILING
        + """
    @var_tracker("x", handler=told)
    def caught(x):
        try:
            y = 1
            spoil(x)  # in_try
        except ValueError:
            y = 2
            y = len(x)

    @var_tracker("x", handler=told)
    def passed_on(x):
        try:
            y = 1
            spoil(x)  # before_finally
        finally:
            y = 2
            y = len(x)

    @var_tracker("x", handler=told)
    def left(x):
        with torch.no_grad():
            y = 1
            spoil(x)  # last
    """
    )
    it.module.caught([])
    for function in (it.module.passed_on, it.module.left):
        with pytest.raises(ValueError, match=r"^$"):
            function([])
    assert it.history() == [
        "in_try x [] -> [1] items",
        "before_finally x [] -> [1] items",
        "last x [] -> [1] items",
    ]
    assert [each.outcome for each in it.ended] == ["returned", "raised", "raised"]


def test_what_a_finally_does_after_a_return_without_a_value_belongs_to_the_call(
    program: Load,
) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def changed(x):
            try:
                return
            finally:
                x.append(1)  # finally

        @var_tracker("x", handler=told)
        def raised(x):
            try:
                return
            finally:
                raise ValueError

        @var_tracker("x", handler=told)
        def dropped(x):
            for i in range(1):
                try:
                    return 5
                finally:
                    break
            try:
                x.append(2)  # later
            finally:
                x.append(3)  # at_last
            return 9
    """)
    it.module.changed([])
    assert type(it.events[-1]).__name__ == "CallEnded"
    with pytest.raises(ValueError, match=r"^$"):
        it.module.raised([])
    assert it.module.dropped([]) == 9
    assert type(it.events[-1]).__name__ == "CallEnded"
    assert it.history() == [
        "finally x [] -> [1] items",
        "later x [] -> [2] items",
        "at_last x [2] -> [2, 3] items",
    ]
    assert outcomes(it) == [("returned", "None"), ("raised", ""), ("returned", "9")]


def test_a_comprehensions_variable_is_not_the_functions_of_that_name(program: Load) -> None:
    it = program("""
        @var_tracker("x", "only", handler=told)
        def both():
            x = 7  # own
            many = [x for x in range(3)]
            many += {x for x in "ab"}
            many += [only for only in (5, 6)]  # only
            return x
    """)
    it.module.both()
    assert it.history() == [
        "own x nothing -> 7 new",
        "only only nothing -> 5 new",
        "only only 5 -> 6 values",
    ]


def test_a_variable_that_was_deleted_is_new_when_it_is_assigned(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def f(x):
            x = 5  # first
            del x
            x = 5  # again
    """)
    it.module.f(0)
    assert it.history() == ["first x 0 -> 5 values", "again x nothing -> 5 new"]


def test_what_is_taken_out_of_a_variable_is_told_where_that_happens(program: Load) -> None:
    it = program("""
        @var_tracker("s['mask']", "c.k", "y[0]", handler=told)
        def f(s, c, y):
            del s["mask"]  # del
            s["mask"] = 2  # set
            s.pop("mask")  # pop
            s["other"] = 1
            s.update(mask=3)  # update
            s.clear()  # clear
            s["mask"] = 4  # again
            s = {}
            c.k = 5  # attribute
            del c.k  # gone
            y.pop()  # last
            y.append(6)  # append
            del y
    """)
    it.module.f({"mask": 1}, types.SimpleNamespace(), [0])
    assert it.history() == [
        "del s['mask'] 1 -> removed kind",
        "set s['mask'] nothing -> 2 new",
        "pop s['mask'] 2 -> removed kind",
        "update s['mask'] nothing -> 3 new",
        "clear s['mask'] 3 -> removed kind",
        "again s['mask'] nothing -> 4 new",
        "attribute c.k nothing -> 5 new",
        "gone c.k 5 -> removed kind",
        "last y[0] 0 -> removed kind",
        "append y[0] nothing -> 6 new",
    ]


def test_a_global_is_not_said_to_be_never_assigned(program: Load) -> None:
    it = program("""
        @var_tracker("shared", handler=told)
        def f():
            global shared
            shared = 1
    """)
    it.module.f()
    assert it.notes == ["'shared' is global in f: only a function's own can be followed"]


def test_what_an_else_deletes_is_not_read_afterwards(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def f(x):
            try:
                y = 1
            except ValueError:
                y = 2
            else:
                del x
            y = len("text")
            return y
    """)
    assert it.module.f(0) == 4
    assert it.ended[0].outcome == "returned"


def test_a_call_at_the_recursion_limit_leaves_nothing_behind(
    program: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    it = program("""
        @var_tracker("n", handler=told)
        def endless(n):
            return endless(n + 1)

        def deeper(depth):
            return endless(0) if depth == 0 else deeper(depth - 1)
    """)
    for depth in range(12):  # so that the limit is met at various places
        with pytest.raises(RecursionError):
            it.module.deeper(depth)
    assert len(it.began) == len(it.ended)
    assert {each.outcome for each in it.ended} == {"raised"}
    assert calls.running == {}
    assert capsys.readouterr().err.count("something is missing of endless: RecursionError") == 1
    it.events.clear()
    with pytest.raises(RecursionError):
        it.module.endless(0)
    assert it.began[0].depth == 0


def test_a_call_whose_beginning_cannot_be_printed_is_not_said_to_have_raised(
    program: Load, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs.logger, "handlers", [])
    it = program("""
        import io

        class Odd(io.StringIO):
            broken = True

            @property
            def encoding(self):
                if self.broken:
                    raise RuntimeError("mine")

        odd = Odd()

        @var_tracker("x", file=odd)
        def f(x):
            odd.broken = False
            return x
    """)
    assert it.module.f(1) == 1
    assert it.module.odd.getvalue() == ""
    assert "something is missing of f: RuntimeError: mine" in capsys.readouterr().err
    assert calls.running == {}


def test_what_a_finally_does_does_not_end_the_call_nor_drop_what_it_returns(
    program: Load,
) -> None:
    it = program("""
        def fail():
            raise KeyError

        @var_tracker("x", handler=told)
        def handled(x):
            try:
                return 1
            finally:
                try:
                    fail()
                except KeyError:
                    x.append(1)

        @var_tracker("x", handler=told)
        def deleted(x):
            try:
                return 2
            finally:
                del x

        @var_tracker("x", handler=told)
        def nested(x):
            try:
                return 3
            finally:
                try:
                    x.append(1)
                finally:
                    x.append(2)
                x.append(3)

        @var_tracker("x", handler=told)
        def another(x):
            try:
                try:
                    return 0
                finally:
                    try:
                        return 4
                    finally:
                        x.append(1)
            finally:
                x.append(2)
    """)
    for function in (it.module.handled, it.module.deleted, it.module.nested, it.module.another):
        function([])
        assert type(it.events[-1]).__name__ == "CallEnded"
    assert outcomes(it) == [("returned", str(number)) for number in (1, 2, 3, 4)]
