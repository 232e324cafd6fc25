"""The same numbers have the same statistics, whichever library they are in."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

from shapetrace.inspecting.statistics import (
    Statistics,
    comparable_array,
    histogram,
    histogram_of_tensor,
    spread,
)

NUMBERS: list[tuple[list[Any], str]] = [
    ([1.0, 2.0, 6.0], "float32"),
    ([math.nan, 1.0, math.inf, -math.inf, 3.0], "float64"),
    ([math.nan, math.inf], "float32"),
    ([-math.inf], "float16"),
    ([0.5, 60000.0, -60000.0], "float16"),
    ([-1e308, 1e308, 1e308], "float64"),
    ([0.0, 5e-324], "float64"),
    ([0.0, 1e-310, 2e-310], "float64"),
    ([True, False, True], "bool"),
    ([-128, 127], "int8"),
    ([0, 255], "uint8"),
    ([2**63 - 1, -(2**63)], "int64"),
    ([], "float32"),
]


def of_torch(numbers: list[Any], dtype: str) -> tuple[Statistics, list[int]]:
    tensor = torch.tensor(numbers, dtype=getattr(torch, dtype))
    found = Statistics()
    found.add_tensor(tensor, torch)
    return found, list(histogram_of_tensor(tensor, *edges(found), 4, torch))


def of_numpy(numbers: list[Any], dtype: str) -> tuple[Statistics, list[int]]:
    array = comparable_array(numpy.array(numbers, dtype=dtype))
    found = Statistics()
    with numpy.errstate(all="ignore"):
        found.add(array, numpy)
        low, high = edges(found)
        return found, histogram(array.astype("f8"), low, high, 4, numpy) if low < high else []


def edges(found: Statistics) -> tuple[float, float]:
    return (found.low, found.high) if found.finite else (0.0, 0.0)


@pytest.mark.parametrize(("numbers", "dtype"), NUMBERS, ids=str)
def test_torch_and_numpy_agree(numbers: list[Any], dtype: str) -> None:
    (one, bars), (other, other_bars) = of_torch(numbers, dtype), of_numpy(numbers, dtype)
    for name in Statistics.__slots__:
        assert getattr(one, name) == getattr(other, name), name
    assert bars == other_bars


@pytest.mark.parametrize(("numbers", "dtype"), NUMBERS, ids=str)
def test_they_are_what_python_makes_of_the_numbers(numbers: list[Any], dtype: str) -> None:
    found, bars = of_torch(numbers, dtype)
    finite = [each for each in numbers if math.isfinite(each)]
    assert (found.seen, found.finite) == (len(numbers), len(finite))
    assert found.nan == sum(each != each for each in numbers)
    assert found.infinite == sum(map(math.isinf, numbers))
    if finite:
        assert (found.low, found.high) == (min(finite), max(finite))
        assert found.mean == pytest.approx(math.fsum(finite) / len(finite), rel=1e-6)
    else:
        assert found.mean is None
    assert sum(bars) == (len(finite) if finite and min(finite) < max(finite) else 0)


@pytest.mark.parametrize(
    ("numbers", "whole"),
    [
        ([1.0, 3.0], (1.0, 3.0, 2.0)),
        ([1.0, math.inf], (1.0, math.inf, math.inf)),
        ([-math.inf, 1.0, math.nan], (-math.inf, 1.0, -math.inf)),
        ([math.inf, math.inf], (math.inf, math.inf, math.inf)),
    ],
)
def test_with_infinity_counted_in(numbers: list[float], whole: tuple[float, ...]) -> None:
    found, _ = of_torch(numbers, "float32")
    assert (found.lowest, found.highest, found.mean_of_all) == whole


def test_the_mean_of_both_infinities_is_no_number() -> None:
    assert math.isnan(of_torch([math.inf, -math.inf, 1.0], "float32")[0].mean_of_all)


def test_a_number_counts_once_where_there_are_many_parts() -> None:
    whole = torch.randn(300, 301, 3, dtype=torch.float64)
    whole[6, 7, 1] = math.nan
    tensor = whole.permute(2, 0, 1)[:, ::2]
    found = Statistics()
    found.add_tensor(tensor, torch)
    kept = tensor[~tensor.isnan()]
    assert (found.seen, found.nan) == (tensor.numel(), 1)
    assert (found.low, found.high) == (kept.min().item(), kept.max().item())
    assert found.total == pytest.approx(kept.sum().item())


@pytest.mark.parametrize("shape", [(), (7,), (1000,), (3, 1, 400), (10, 10, 10, 10), (0, 5)])
@pytest.mark.parametrize("most", [1, 10, 999, 10_000])
def test_some_of_each_dimension_are_left(shape: tuple[int, ...], most: int) -> None:
    left = spread(numpy.empty(shape), most)
    assert left.size <= most
    assert left.ndim == len(shape)
    assert (left.size == 0) == (0 in shape)
    if numpy.empty(shape).size <= most:
        assert left.shape == shape
