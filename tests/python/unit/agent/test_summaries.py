"""What is told of captured values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from shapetrace.agent import summaries
from shapetrace.agent.summaries import Summary, summary_of
from shapetrace.transport.requested import BINS, Statistics
from tests.python.unit.panes.watching import unnoticed


def statistics(value: Any) -> Statistics:
    found = summary_of(value).statistics
    assert found is not None
    return found


def test_a_tensor() -> None:
    assert summary_of(torch.tensor([[0.0, 1.0], [2.0, 16.0]])) == Summary(
        kind="Tensor",
        dtype="float32",
        shape=(2, 2),
        statistics=Statistics(
            4, 4, 0.0, 16.0, 4.75, bins=(1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
        ),
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (torch.ones(3), (3, 1.0, 1.0, 1.0, 0, 0)),
        (torch.tensor([math.nan, 1.0, math.inf, -math.inf, 3.0]), (5, 1.0, 3.0, 2.0, 1, 2)),
        (torch.tensor([math.nan, math.inf]), (2, None, None, None, 1, 1)),
        (torch.ones(0, 3), (0, None, None, None, 0, 0)),
        (torch.tensor([True, False, True, True]), (4, 0, 1, 0.75, 0, 0)),
        (torch.tensor([1, 2, 6], dtype=torch.uint8), (3, 1, 6, 3.0, 0, 0)),
        (torch.tensor([2**63 - 1, -(2**63)]), (2, -(2**63), 2**63 - 1, -0.5, 0, 0)),
        (torch.tensor([1.0, 3.0], dtype=torch.bfloat16), (2, 1.0, 3.0, 2.0, 0, 0)),
        (torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn), (2, 1.0, 2.0, 1.5, 0, 0)),
        (torch.tensor([-1e308, 1e308], dtype=torch.float64), (2, -1e308, 1e308, 0.0, 0, 0)),
        (torch.full((3,), 1.7e308, dtype=torch.float64), (3, 1.7e308, 1.7e308, None, 0, 0)),
        (torch.tensor(2.5), (1, 2.5, 2.5, 2.5, 0, 0)),
        (torch.ones(1, 4).expand(1000, 4), (4000, 1.0, 1.0, 1.0, 0, 0)),
        (nn.Parameter(torch.tensor([1.0, 2.0])), (2, 1.0, 2.0, 1.5, 0, 0)),
        (3, (1, 3.0, 3.0, 3.0, 0, 0)),
        (True, (1, 1.0, 1.0, 1.0, 0, 0)),
        (math.inf, (1, None, None, None, 0, 1)),
    ],
    ids=str,
)
def test_the_range_and_the_mean(value: Any, told: tuple[Any, ...]) -> None:
    found = statistics(value)
    mean = None if found.mean is None else pytest.approx(told[3], rel=1e-6)
    assert (found.numbers, found.low, found.high, mean) == (*told[:3], told[3])
    assert (found.nans, found.infinities) == told[4:]
    assert found.seen == found.numbers
    finite = found.numbers - found.nans - found.infinities
    assert sum(found.bins) == (0 if found.low == found.high else finite)
    assert len(found.bins) in (0, BINS)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (12, "int", "12"),
        (0.5, "float", "0.5"),
        (None, "NoneType", "None"),
        ("a" * 500, "str", "'" + "a" * 60 + "'…"),
        ((torch.ones(2, 3), [torch.ones(1)]), "tuple", "(f32[2,3], [f32[1]])"),
        ({"ids": torch.ones(2, dtype=torch.long)}, "dict", "{ids: i64[2]}"),
        (nn.Linear(2, 3), "Linear", "Linear(2 → 3) 9 params"),
        (10**400, "int", "int"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_tensor(value: Any, kind: str, text: str) -> None:
    told = summary_of(value)
    assert (told.kind, told.shape, told.text) == (kind, None, text)


@pytest.mark.parametrize(
    ("make", "dtype", "shape"),
    [
        (lambda: torch.ones(2, dtype=torch.complex64), "complex64", (2,)),
        (lambda: torch.ones(2, 3, device="meta"), "float32", (2, 3)),
        (lambda: torch.ones(2, 3).to_sparse(), "float32", (2, 3)),
    ],
    ids=["complex", "meta", "sparse"],
)
def test_what_cannot_be_read_has_its_shape(
    make: Callable[[], Any], dtype: str, shape: tuple[int, ...]
) -> None:
    told = summary_of(make())
    assert (told.dtype, told.shape, told.statistics) == (dtype, shape, None)


def test_arrays() -> None:
    told = summary_of(numpy.array([[1.0, 2.0, 6.0]]))
    assert (told.kind, told.dtype, told.shape) == ("ndarray", "float64", (1, 3))
    assert statistics(numpy.array([1, 3])).mean == 2
    assert summary_of(numpy.array(["a"], dtype=object)).statistics is None
    may_be_gone = numpy.ndarray((2,), numpy.uint8, buffer=bytearray(2))
    assert summary_of(may_be_gone).statistics is None


def test_of_a_large_tensor_some_numbers_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "MOST_NUMBERS", 1000)
    monkeypatch.setattr(summaries, "MOST_COUNTED", 100)
    found = statistics(torch.arange(10_000.0).reshape(100, 100))
    assert found.numbers == 10_000
    assert 500 <= found.seen <= 1000
    assert found.low == 0.0
    assert found.high is not None
    assert found.high > 9000
    assert 50 <= sum(found.bins) <= 100


@pytest.mark.parametrize(
    "value",
    [torch.ones(3, requires_grad=True) * 2, torch.randn(70_000), torch.tensor([math.nan, 1.0])],
    ids=["graph", "large", "nan"],
)
def test_nothing_of_the_programs_notices(value: torch.Tensor) -> None:
    with unnoticed(value, is_opened=True):
        summary_of(value)
    with torch.autocast("cpu", dtype=torch.bfloat16), unnoticed(value, is_opened=True):
        summary_of(value)
