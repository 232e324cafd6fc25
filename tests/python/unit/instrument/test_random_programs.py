"""Random functions, with somebody who listens and without, and an independent reference."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.instrument import Interest, follow
from tests.python.unit.instrument.listening import Heard, function_of, outcome, stored, traced
from tests.python.unit.instrument.programs import Programs
from tests.python.unit.instrument.worlds import clean, run, world
from tests.support.examples import examples

ARGUMENTS = 5


class Texts(Heard):
    """Keeps texts, as values change."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str, int]] = []

    def looked_at(self, state: Any, name: str, value: object, line: int, assigned: bool) -> None:
        if assigned:
            self.told.append((name, clean(repr(value)), line))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "generator", "async", "async generator"])
@examples(150)
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

    def result() -> str:
        given_["logged"].clear()
        return clean(repr((outcome(lambda: run(function, kind)), given_["logged"])))

    plain = result()
    _, lines = traced(code, lambda: run(function, kind))
    heard = Texts()
    with follow(function, Interest(None, returns=True), heard) as following:
        assert result() == plain, text
        told = heard.told[ARGUMENTS:]
        assert traced(code, lambda: run(function, kind))[1] == lines, text
    assert following.error is None
    assert function.__code__ is code
    if sys.version_info < (3, 12):
        # Later versions store more than one variable by one instruction.
        stores = [(name, clean(value), line) for name, value, line in stored(code, result)]
        assert told == stores, text
