"""A check of the package in an interpreter that has nothing but its standard library.

python check_interpreter.py <folder of the backend> <folder of the repository>
"""

from __future__ import annotations

import sys
from typing import Any

sys.path[:0] = sys.argv[1:3]

from shapetrace.instrument import Interest, follow  # noqa: E402
from tests.python.unit.instrument.listening import (  # noqa: E402
    Heard,
    function_of,
    outcome,
    traced,
)
from tests.python.unit.instrument.programs import Programs  # noqa: E402
from tests.python.unit.instrument.random_modules import check_module  # noqa: E402
from tests.python.unit.instrument.worlds import clean, run, world  # noqa: E402

EVERYTHING = Interest(None, returns=True)

TEXT = """
class Base:
    def f(self, x): return x

class C(Base):
    def f(self, a, *rest, b=2):
        '''What it does.'''
        x = a
        x += b
        y, *z = rest
        if (n := len(z)) > 1:
            maybe = n
        for i in range(2):
            if i:
                continue
            w = [j for j in (1, 2) if (k := j)]
        text = {p: q for p, q in zip(rest, rest)}
        total = sum(e for e in rest)
        try:
            raise ValueError
        except ValueError as error:
            kept = str(error)
        finally:
            with manager as v:
                del y
        match rest:
            case [one, *others]:
                pass
        return super().f(
            x +
            total)
"""

EXPECTED = """
self a rest b x x y z n maybe i i j k j k w p q p q p q text e e e total error kept v one others
"""


class Manager:
    def __enter__(self) -> int:
        return 1

    def __exit__(self, *exception: object) -> None: ...


def check_one() -> None:
    plain = function_of(TEXT, "C.f", manager=Manager())
    other = function_of(TEXT, "C.f", file=plain.__code__.co_filename, manager=Manager())
    heard = Heard()
    code = other.__code__
    instance = other.__globals__["C"]()
    with follow(other, EVERYTHING, heard) as following:
        assert other(instance, 1, 5, 6, 7) == 21
    assert other.__code__ is code
    assert following.error is None
    names = [name for name, _, _ in heard.assigned if name != "self"]
    assert sorted(names) == sorted(EXPECTED.split()[1:]), names
    assert heard.returns == [(21, 29)], heard.returns
    results: list[Any] = [
        traced(plain.__code__, lambda: plain(plain.__globals__["C"](), 1, 5, 6, 7))
    ]
    with follow(other, EVERYTHING, heard):
        results.append(traced(code, lambda: other(instance, 1, 5, 6, 7)))
    assert results[0] == results[1]


def check_random(kind: str, seed: int) -> None:
    given = world()
    try:
        function = function_of(Programs(seed, kind).text(), **given)
    except SyntaxError:
        return
    plain = outcome(lambda: run(function, kind))
    with follow(function, EVERYTHING, Heard()) as following:
        assert clean(repr(outcome(lambda: run(function, kind)))) == clean(repr(plain)), (kind, seed)
    assert following.error is None


if __name__ == "__main__":
    check_one()
    for number in range(60):
        for kind_ in ("plain", "generator", "async", "async generator"):
            check_random(kind_, number)
        # Python 3.12 gives the end of some modules, where ways meet, the line of another statement.
        check_module(number, lines=sys.version_info[:2] != (3, 12))
    print("fine", sys.version_info[:2], "torch" in sys.modules)
