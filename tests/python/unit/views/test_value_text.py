from __future__ import annotations

from typing import Any

import pytest

from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.views.value_text import value_spans


def made(**changes: Any) -> Fingerprint:
    usual: dict[str, Any] = {"mean": 0.5, "root_mean_square": 1.0, "low": -2.0, "high": 3.0}
    return Fingerprint("float32", **{"count": 10, **usual, **changes})


def text(*outputs: tuple[Fingerprint, ...]) -> str:
    calls = [CallFingerprints(number + 1, number + 1, each) for number, each in enumerate(outputs)]
    return "".join(span for span, _ in value_spans(calls))


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([], ""),
        ([()], ""),
        ([(made(),)], "-2 … 3, mean 0.5, rms 1"),
        (
            [(made(),), (made(count=30, mean=1.0, high=1e7, root_mean_square=3.0),)],
            "-2 … 1.00e+07, mean 0.875, rms 2.646",
        ),
        (
            [(made(count=1300, nan=1200, negative_infinity=1),)],
            "-2 … 3, mean 0.5, rms 1, 1,200 NaN, 1 -inf",
        ),
        ([(made(positive_infinity=2),)], "-2 … 3, mean 0.5, rms 1, 2 inf"),
        ([(Fingerprint("float32", 3, nan=3),)], "3 NaN"),
        ([(Fingerprint("float32", 0),)], "empty"),
        ([(made(low=2.0, high=2.0),)], "always 2"),
        ([(made(count=1, low=2.0, high=2.0),)], "2"),
        ([(Fingerprint("float32", 3, note="no data on meta"),)], "no data on meta"),
        (
            [(made(), made(low=0.0))],
            "-2 … 3, mean 0.5, rms 1  |  0 … 3, mean 0.5, rms 1",
        ),
        ([(made(low=1.0, high=1.0),) * 5], "always 1  |  always 1  |  always 1  |  …"),
        ([(), (made(),)], "-2 … 3, mean 0.5, rms 1"),
        (
            [(made(low=-1e308, high=1e308, mean=1e308, root_mean_square=1e308),)] * 2,
            "-1.00e+308 … 1.00e+308, mean 1.00e+308, rms 1.00e+308",
        ),
        # Only a damaged file says so.
        ([(made(count=0),)], "-2 … 3"),
        ([(made(looked_at=0),)], "-2 … 3"),
        ([(made(), made()), (made(count=-10), made(nan=30))], "-2 … 3  |  -2 … 3, 30 NaN"),
        ([(made(nan=10),)], "-2 … 3, 10 NaN"),
        ([(made(count=10**400),)], "-2 … 3, mean 0.5, rms 1"),
    ],
)
def test_what_came_out_stands_on_a_line(outputs: list[Any], expected: str) -> None:
    assert text(*outputs) == expected


def test_what_is_no_number_stands_out() -> None:
    calls = [CallFingerprints(1, 1, (made(nan=1),)), CallFingerprints(2, 2, (made(),))]
    assert (("1 NaN", "error")) in value_spans(calls)
