from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import pytest

from shapetrace.events.fingerprint import Fingerprint, agree, distance, tolerance_for

ORDINARY = Fingerprint("float32", 100, 0.1, 1.0, -2.5, 2.5, (0.1, -0.7, 1.2, 0.9), nan=1)
MANY = 4096


def like(base: Fingerprint = ORDINARY, **changes: Any) -> Fingerprint:
    return dataclasses.replace(base, **changes)


def test_the_same_is_equal_whatever_the_dtype() -> None:
    assert distance(ORDINARY, ORDINARY).verdict == "equal"
    assert distance(ORDINARY, like(dtype="bfloat16")).verdict == "equal"
    assert agree(ORDINARY, like())


@pytest.mark.parametrize("field", ["mean", "root_mean_square", "low", "high"])
def test_what_differs_is_named(field: str) -> None:
    apart = distance(ORDINARY, like(**{field: getattr(ORDINARY, field) + 0.01}))
    assert apart.verdict == "different"
    assert apart.where == field.replace("_", " ")
    assert apart.relative == pytest.approx(0.01, rel=2)
    assert apart.amount == pytest.approx(apart.relative / apart.tolerance)
    assert not agree(ORDINARY, like(**{field: getattr(ORDINARY, field) + 0.01}))


def test_rounding_is_close() -> None:
    assert distance(ORDINARY, like(mean=0.1 + 1e-6, samples=(0.1, -0.7, 1.2 + 1e-6, 0.9))) == (
        distance(like(mean=0.1 + 1e-6, samples=(0.1, -0.7, 1.2 + 1e-6, 0.9)), ORDINARY)
    )
    apart = distance(ORDINARY, like(samples=(0.1, -0.7, 1.2 + 1e-6, 0.9)))
    assert (apart.verdict, apart.where) == ("close", "samples")
    assert 0 < apart.amount < 1


def test_the_coarser_dtype_decides() -> None:
    moved = like(mean=0.11, samples=(0.11, -0.7, 1.2, 0.9))
    assert not agree(ORDINARY, moved)
    assert agree(ORDINARY, like(moved, dtype="bfloat16"))
    assert agree(like(dtype="bfloat16"), moved)
    assert not agree(ORDINARY, like(moved, dtype="bfloat16"), 1e-4)
    assert agree(ORDINARY, moved, tolerance_for("float32", "bfloat16"))


def test_other_samples_with_the_same_moments_are_another_order() -> None:
    apart = distance(ORDINARY, like(samples=(-0.7, 0.1, 0.9, 1.2)))
    assert (apart.verdict, apart.where) == ("rearranged", "samples")
    assert apart.amount > 1
    assert not agree(ORDINARY, like(samples=(-0.7, 0.1, 0.9, 1.2)))


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"count": 99}, "count"),
        ({"nan": 0}, "nan"),
        ({"nan": 0, "positive_infinity": 1}, "nan"),
        ({"positive_infinity": 1}, "infinite"),
        ({"negative_infinity": 1}, "infinite"),
    ],
)
def test_what_no_tolerance_helps_against(changes: dict[str, Any], where: str) -> None:
    apart = distance(ORDINARY, like(**changes), 1e9)
    assert (apart.verdict, apart.where, apart.amount) == ("different", where, math.inf)


def test_samples_that_are_no_numbers() -> None:
    base = like(samples=("nan", "inf", 1.0))
    assert distance(base, base).verdict == "equal"
    apart = distance(base, like(samples=(1.0, "inf", "nan")))
    assert (apart.verdict, apart.amount) == ("rearranged", math.inf)


def test_nothing_finite() -> None:
    base = Fingerprint("float32", 3, samples=("nan",), nan=3)
    assert distance(base, base).verdict == "equal"
    apart = distance(base, Fingerprint("float32", 3, 0.0, 0.0, 0.0, 0.0, (0.0,)))
    assert (apart.verdict, apart.where) == ("different", "nan")
    empty = Fingerprint("float32", 0)
    assert distance(empty, like(empty, dtype="float16")).verdict == "equal"


def test_what_was_not_looked_at_is_unknown() -> None:
    unseen = Fingerprint("float32", 100, note="no data on meta")
    assert distance(ORDINARY, unseen).verdict == "unknown"
    assert distance(unseen, ORDINARY).where == "note"
    assert agree(unseen, unseen)


def test_whole_numbers_are_exact() -> None:
    base = Fingerprint("int64", 4, 2.0, 2.5, 0.0, 4.0, (0, 4, 1, 3), checksum="0a")
    assert distance(base, base).verdict == "equal"
    assert distance(base, like(base, dtype="int32")).verdict == "equal"
    changed = like(base, samples=(0, 4, 2, 2), root_mean_square=2.4, checksum="0b")
    apart = distance(base, changed)
    assert (apart.verdict, apart.where, apart.amount) == ("different", "checksum", math.inf)
    assert apart.relative > 0
    # A number that moved by less than doubles can tell.
    assert not agree(base, like(base, checksum="0b"))
    moved = distance(base, like(base, samples=(4, 0, 3, 1)))
    assert moved.verdict == "rearranged"
    assert agree(base, changed, 0.5)


def test_a_huge_mask_does_not_hide_the_rest() -> None:
    lowest = -3.4e38
    base = like(low=lowest, root_mean_square=2e38, mean=-1e38, samples=(0.5, 1.5, lowest, -1.0))
    apart = distance(base, like(base, samples=(0.5, 1.6, lowest, -1.0)))
    assert (apart.verdict, apart.where) == ("rearranged", "samples")


def test_numbers_at_the_end_of_the_scale() -> None:
    base = like(low=-1.7e308, high=1.7e308, mean=0.0, root_mean_square=None)
    apart = distance(base, like(base, low=1.7e308))
    assert apart.verdict == "different"
    assert math.isfinite(apart.relative)


def test_numbers_near_zero_may_differ_by_what_larger_ones_are_rounded_by() -> None:
    near = like(samples=(1e-9, -0.7, 1.2, 0.9))
    assert agree(near, like(near, samples=(-3e-8, -0.7, 1.2, 0.9)))
    small = like(mean=1e-9, root_mean_square=1e-8, low=-3e-8, high=3e-8, samples=(1e-9, 2e-9))
    assert not agree(small, like(small, samples=(-3e-8, 2e-9)))


def test_the_tolerance_is_of_the_dtypes_and_grows_with_the_sums() -> None:
    finest_first = ["int64", "float64", "float32", "float16", "bfloat16", "float8_e5m2"]
    tolerances = [tolerance_for(dtype) for dtype in finest_first]
    assert tolerances == sorted(tolerances)
    assert tolerance_for("int64") == 0
    assert tolerance_for("float64", "bfloat16", "int8") == tolerance_for("bfloat16")
    assert tolerance_for("float32", terms=1) < tolerance_for("float32", terms=1 << 20) / 100
    assert tolerance_for("bfloat16", terms=1) > tolerance_for("bfloat16", terms=1 << 20) / 2
    assert tolerance_for("what torch may add") == tolerance_for("float32") == tolerance_for()


def test_differences_grow_with_what_is_changed() -> None:
    generator = random.Random(0)
    numbers = [generator.gauss(0, 1) for _ in range(MANY)]
    base = _of(numbers)
    amounts = [
        distance(base, _of([number * (1 + 10.0**-power) for number in numbers])).amount
        for power in range(7, 1, -1)
    ]
    assert amounts == sorted(amounts)
    assert amounts[0] < 1 < amounts[-1]


def _of(numbers: list[float]) -> Fingerprint:
    mean = math.fsum(numbers) / len(numbers)
    square = math.fsum(number * number for number in numbers) / len(numbers)
    samples = tuple(numbers[:: len(numbers) // 8])
    low, high = min(numbers), max(numbers)
    return Fingerprint("float32", len(numbers), mean, math.sqrt(square), low, high, samples)
