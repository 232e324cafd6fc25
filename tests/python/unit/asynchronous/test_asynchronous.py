"""Telling exceptions that the program had raised while our code ran from faults of ours."""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import h5py
import numpy
import pytest

import shapetrace
from shapetrace._asynchronous import clean, clean_all, is_asynchronous
from shapetrace._exception_table import catching_everywhere
from tests.support.interrupting import SIGNAL, Interrupter, exceptions, signals

OURS = shapetrace.__file__.replace("__init__", "probe")
"""Code with this name is taken for ours."""

SWALLOWING = '''
def swallow(work):
    """What comes out of work, or what a clause of ours makes of it."""
    try:
        for _ in range(3):
            work()
        return "went well"
    except BaseException as error:
        asynchronous = is_asynchronous(error)
        clean(error)
        return asynchronous, error


def pass_on(work):
    try:
        before = 1
        try:
            return work(), before
        except AttributeError as error:
            if is_asynchronous(error):
                raise
            return "swallowed"
    except BaseException as error:
        clean(error)
        raise


def nothing():
    pass
'''


def ours() -> dict[str, Any]:
    """Functions that look as if they were ours."""
    names: dict[str, Any] = {"is_asynchronous": is_asynchronous, "clean": clean}
    exec(compile(SWALLOWING, OURS, "exec"), names)
    return names


class Late(Exception):
    """What the program raises."""


class Detailed(Exception):
    """Cannot be made from nothing."""

    def __init__(self, what: str) -> None:
        super().__init__(what)


class Worded(OSError):
    """Says something although it is called without arguments."""

    def __init__(self) -> None:
        super().__init__("timed out")


KINDS: list[type[BaseException]] = [
    *(Late, Worded, KeyboardInterrupt, SystemExit, TimeoutError, AttributeError, RecursionError),
    *(MemoryError, AssertionError, ValueError, KeyError, StopAsyncIteration, OSError, Exception),
    *(type("Stop", (StopIteration,), {}), type("Deep", (RecursionError,), {})),
]


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    before = signal.getsignal(SIGNAL)
    yield
    signal.signal(SIGNAL, before)


def outcomes(effects: Iterator[Any], work: Callable[[], Any], start: int = 1) -> list[Any]:
    """What a clause of ours makes of an interrupt at each instruction within its try statement."""
    swallow = ours()["swallow"]
    interrupter = Interrupter(effects, lambda code: code.co_filename == OURS)
    interrupter.run(lambda: swallow(work))
    found = []
    # The first and the last few instructions lie outside of the try statement.
    for at in range(start, interrupter.count - 4):
        try:
            came = interrupter.run(lambda: swallow(work), at)
        except BaseException as error:
            came = f"outside: {error!r}"
        found.append(came)
    return found


def plain(signum: int, frame: object) -> None:
    raise Late("plain")


class Handler:
    """Handles signals as objects do."""

    def method(self, signum: int, frame: object) -> None:
        raise Late("method")

    def __call__(self, signum: int, frame: object) -> None:
        raise Late("call")


def wrapped(*args: object) -> None:
    plain(*args)  # type: ignore[arg-type]


def forgetting(signum: int, frame: object) -> None:
    del signum, frame
    raise Late("forgetting")


def leaving(signum: int, frame: object) -> None:
    signal.signal(SIGNAL, signal.SIG_IGN)
    signal.signal(SIGNAL, leaving)
    raise Late("leaving")


def extra(name: str, signum: int, frame: object) -> None:
    raise Late(name)


def deep(signum: int, frame: object) -> None:
    def further(depth: int) -> None:
        if depth:
            further(depth - 1)
        raise RecursionError("maximum recursion depth exceeded")

    further(5)


def chained(signum: int, frame: object) -> None:
    try:
        {}["x"]  # type: ignore[index]
    except KeyError as error:
        raise AttributeError("chained") from error


HANDLERS: list[Any] = [
    *(plain, Handler().method, Handler(), wrapped, forgetting, leaving, deep, chained),
    functools.partial(extra, "partial"),
    functools.partial(Handler().method),
    lambda s, f: (_ for _ in ()).throw(Late("generator")),
    lambda: None,  # takes no arguments: Python raises a TypeError in its place
]


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda each: getattr(each, "__name__", "object"))
def test_what_a_handler_raises_is_the_programs(handler: Any) -> None:
    signal.signal(SIGNAL, handler)
    for came in outcomes(signals(), ours()["nothing"], start=4):
        if came != "went well":
            assert came[0] is True, came
    interrupted = [each for each in outcomes(signals(), ours()["nothing"]) if each != "went well"]
    assert len(interrupted) > 10


@pytest.mark.parametrize("kind", [*KINDS, Detailed], ids=lambda kind: kind.__name__)
def test_what_is_set_from_outside_is_the_programs(kind: type[BaseException]) -> None:
    came = list(outcomes(exceptions(kind), ours()["nothing"], 4))
    assert len(came) > 10
    for each in came:
        if each != "went well" and not str(each).startswith("outside"):
            assert each[0] is True, each
            assert type(each[1]) is (TypeError if kind is Detailed else kind)


def raised(work: Callable[[], Any]) -> bool:
    came: tuple[bool, BaseException] = ours()["swallow"](work)
    return came[0]


class Odd:
    """Fails when it is asked for anything."""

    @property
    def shape(self) -> None:
        raise Late("no shape")

    def __len__(self) -> int:
        raise TimeoutError

    @property
    def told(self) -> None:
        self.fail(sys._getframe())

    def fail(self, frame: object) -> None:
        raise Late("told its caller")


class Pair(tuple[Any, ...]):
    """Is not made as other tuples are."""

    def __new__(cls, first: Any, second: Any) -> Pair:
        return super().__new__(cls, (first, second))


NOTHING: dict[str, int] = {}

FAULTS: list[Callable[[], Any]] = [
    *(lambda: int("x"), lambda: NOTHING["x"], lambda: [][1], lambda: next(iter(()))),
    *(lambda: None.x, lambda: 1 / 0, lambda: os.listdir("/nowhere/at/all"), lambda: len(3)),  # type: ignore[attr-defined, arg-type]
    *(lambda: Odd().shape, lambda: len(Odd()), lambda: Odd().told, lambda: Pair([1, 2])),  # type: ignore[call-arg]
    *(lambda: b"\xff".decode("utf-8"), lambda: plain()),  # type: ignore[call-arg]
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_not(fault: Callable[[], Any]) -> None:
    assert not raised(fault)


def test_code_in_c_that_we_call_ourselves_has_faults() -> None:
    names = ours()
    source = "def fault(kind):\n    {}\n"
    for body in ("int('x')", "next(iter(()))", "next(iter(()), *[1, 2, 3])", "assert not kind"):
        exec(compile(source.format(body), OURS, "exec"), names)
        assert not raised(lambda: names["fault"](1))


def test_what_cython_names_in_tracebacks_is_no_frame_that_was_interrupted() -> None:
    def of_numpy() -> None:
        numpy.random.default_rng(0).normal(size=-1)

    def of_h5py() -> None:
        h5py.File("/nowhere/at/all.h5", "r")

    def of_h5py_on_bad_content() -> None:
        h5py.File(io.BytesIO(b"nothing that it knows"), "r")

    for fault in (of_numpy, of_h5py, of_h5py_on_bad_content):
        assert not raised(fault)


def test_too_deep_a_recursion_is_a_fault_of_ours() -> None:
    def endless() -> None:
        endless()

    assert not raised(endless)


def test_memory_that_is_used_up_is_the_programs() -> None:
    def use_up() -> None:
        raise MemoryError

    assert raised(use_up)


def test_a_trace_function_may_raise() -> None:
    def trace(frame: Any, event: str, argument: object) -> Any:
        if (
            frame.f_code.co_filename == OURS
            and event == "line"
            and frame.f_code.co_name == "nothing"
        ):
            raise Late("traced")
        return trace

    names = ours()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        came = names["swallow"](names["nothing"])
    finally:
        sys.settrace(before)
    assert came[0] is True


def frames_of(error: BaseException) -> list[str]:
    return [each.filename for each in traceback.extract_tb(error.__traceback__)]


def test_a_function_that_catches_everywhere_is_in_no_traceback() -> None:
    signal.signal(SIGNAL, plain)
    names = ours()
    pass_on = catching_everywhere(names["pass_on"])
    interrupter = Interrupter(signals())

    def program() -> Any:
        return pass_on(len_of_nothing)

    def len_of_nothing() -> int:
        return len([])

    assert interrupter.run(program) == (0, 1)
    for at in range(1, interrupter.count + 1):
        with pytest.raises(Late) as caught:
            interrupter.run(program, at)
        assert OURS not in frames_of(caught.value), interrupter.place


HANDLED = """
def handled(late):
    try:
        int("x")
    except ValueError:
        late()
"""


def test_what_was_about_to_be_swallowed_is_not_in_the_context() -> None:
    names = ours()
    exec(compile(HANDLED, OURS, "exec"), names)

    def late() -> None:
        raise Late

    before = KeyError("before")
    try:
        raise before
    except KeyError:
        with pytest.raises(Late) as caught:
            names["pass_on"](lambda: names["handled"](late))
    clean_all(caught.value)
    assert caught.value.__context__ is before
    assert OURS not in frames_of(caught.value)
