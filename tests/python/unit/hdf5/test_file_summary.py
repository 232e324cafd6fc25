from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from shapetrace._errors import CaptureFileError
from shapetrace.events.captured import CapturedName, Statistics
from shapetrace.events.model import DimensionRange
from shapetrace.hdf5.file_summary import read_summary
from shapetrace.hdf5.saver import H5PYSaverCallback
from shapetrace.views.shapes import value_text
from tests.support.torches import needs


def summary(path: Path, values: list[Any], **options: Any) -> CapturedName:
    with H5PYSaverCallback(path, overwrite=True) as saver:
        saver("x", list(values), list(range(3, 3 + len(values))))
    assert saver.problems == []
    (name,) = read_summary(path, **options).names
    return name


def figures(path: Path, values: list[Any], **options: Any) -> Statistics:
    name = summary(path, values, **options)
    statistics = name.parts[0].leaves[0].statistics
    assert statistics is not None
    return statistics


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.h5"


def test_names_counts_iterations_and_ranks(path: Path) -> None:
    with H5PYSaverCallback(path) as saver:
        saver("b", [torch.ones(4, 2)], [5, 6, 5, 6], [0, 0, 2, 2])
        saver("a", [1.5], [9], [1])
    read = read_summary(path)
    assert read.name == "x.h5"
    assert read.size == path.stat().st_size
    assert [(name.name, name.count, name.ranks) for name in read.names] == [
        ("a", 1, (1,)),
        ("b", 1, (0, 2)),
    ]
    assert (read.names[1].first_iteration, read.names[1].last_iteration) == (5, 6)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([torch.ones(2, 3)] * 2, "f32[2,3]"),
        ([torch.ones(2, size).bfloat16() for size in (1, 4)], "bf16[2,1..4]"),
        ([torch.ones(2).to(torch.float8_e4m3fn)], "f8e4m3fn[2]"),
        ([True, False], "bool"),
        (["x"], "str"),
        ([None], "None"),
        ([b"x"], "bytes"),
        ([[1, 2], [1, 2, 3]], "[int ×2..3]"),
        ([(torch.ones(2), {"k": 1.5})], "(f32[2], {k: float})"),
        ([np.ones(3)], "f64[3]"),
        ([torch.eye(2).to_sparse()], "sparse_coo(indices: i64[2,2], values: f32[2], size: i64[2])"),
    ],
)
def test_shapes(path: Path, values: list[Any], text: str) -> None:
    assert value_text(summary(path, values).parts[0].value) == text


def test_parts_of_one_name(path: Path) -> None:
    name = summary(path, [None, torch.ones(2), torch.ones(3), 1])
    assert [(value_text(part.value), part.count) for part in name.parts] == [
        ("f32[2..3]", 2),
        ("None", 1),
        ("int", 1),
    ]
    tensor = name.parts[0].value
    assert getattr(tensor, "shape", None) == (DimensionRange(2, 3),)


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2),
        *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
        *(torch.int64, torch.uint8, torch.int16),
    ],
    ids=str,
)
def test_figures_are_those_of_the_numbers(path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    values = [(torch.randn(50, 20) * 20).abs().to(dtype) for _ in range(6)]
    read = figures(path, values)
    expected = torch.stack(values).double()
    assert read.total == read.looked_at == expected.numel()
    assert read.low == expected.min().item()
    assert read.high == expected.max().item()
    assert read.mean == pytest.approx(expected.mean().item())
    assert read.histogram is not None
    counts, _ = np.histogram(expected.numpy(), 16)
    assert read.histogram.counts == tuple(counts)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e8m0fnu", "float8_e4m3fnuz"])
def test_every_float8_is_the_number_that_torch_takes_it_for(path: Path, name: str) -> None:
    needs(f"torch.{name}")
    every = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
    numbers = every.double()
    finite = numbers[numbers.isfinite()]
    read = figures(path, [every])
    assert read.not_numbers == numbers.isnan().sum()
    assert (read.low, read.high) == (finite.min().item(), finite.max().item())
    assert read.mean == pytest.approx(finite.mean().item())


def test_what_is_no_number(path: Path) -> None:
    read = figures(path, [torch.tensor([1.0, math.nan, math.inf, -math.inf, 2.0])])
    assert (read.total, read.not_numbers, read.infinite) == (5, 1, 2)
    assert (read.low, read.high, read.mean) == (1, 2, 1.5)
    read = figures(path, [torch.full((3,), math.nan)])
    assert (read.low, read.mean, read.histogram) == (None, None, None)
    read = figures(path, [torch.ones(0, 3)])
    assert (read.total, read.low) == (0, None)
    for value in ("text", None, b"x", np.array(["2020"], "M8[Y]")):
        assert summary(path, [value]).parts[0].leaves[0].statistics is None


def test_complex_numbers_by_their_magnitude(path: Path) -> None:
    halves = torch.tensor([[3, 4], [0, 0]], dtype=torch.float16)
    numbers = torch.tensor([3 + 4j, 0])
    for value in (numbers, numbers.to(torch.complex128), torch.view_as_complex(halves)):
        read = figures(path, [value])
        assert (read.low, read.high, read.is_magnitude) == (0, 5, True)


def test_extreme_numbers(path: Path) -> None:
    largest = torch.finfo(torch.float64).max
    read = figures(path, [torch.tensor([-largest, 0, largest], dtype=torch.float64)])
    assert read.histogram is not None
    assert read.histogram.counts == (1, *[0] * 7, 1, *[0] * 6, 1)
    read = figures(path, [2**63, 2**64 - 1])
    assert (read.low, read.high) == (2**63, 2**64 - 1)


def test_padding_is_not_counted(path: Path) -> None:
    for sizes in ((1, 3, 2), (2000, 1, 1, 1, 1)):
        values = [torch.full((size, 20), 5.0) for size in sizes]
        name = summary(path, values)
        those = [leaf.statistics for part in name.parts for leaf in part.leaves]
        assert sum(each.total for each in those if each) == sum(sizes) * 20
        assert {each.low for each in those if each} == {5.0}


def test_of_a_large_file_a_part_is_looked_at_all_over(path: Path) -> None:
    values = [torch.full((100, 100), float(step)) for step in range(200)]
    read = figures(path, values, byte_budget=1 << 20)
    assert read.total == 200 * 10_000
    assert 0.05 * read.total < read.looked_at < 0.25 * read.total
    assert read.low is not None
    assert read.high is not None
    assert read.low < 20
    assert read.high > 150


def test_small_names_leave_their_share_to_large_ones(path: Path) -> None:
    with H5PYSaverCallback(path) as saver:
        for step in range(20):
            saver("small", [step], [step])
            saver("large", [torch.ones(100, 100)], [step])
    names = read_summary(path, byte_budget=900_000).names
    for name in names:
        statistics = name.parts[0].leaves[0].statistics
        assert statistics is not None
        assert statistics.looked_at == statistics.total


def test_what_was_told_while_saving_is_told_again(path: Path) -> None:
    with H5PYSaverCallback(path) as saver:
        saver("x", [1, object()], [0, 1])
    assert read_summary(path).problems == tuple(saver.problems)


def test_files_that_are_none_of_ours(tmp_path: Path) -> None:
    import h5py

    for name, content, message in [
        ("none.h5", None, "cannot read none.h5: there is no such file"),
        ("text.h5", b"text", "cannot read text.h5: "),
        ("cut.h5", b"\x89HDF\r\n\x1a\n", "cannot read cut.h5: "),
    ]:
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(CaptureFileError, match=message):
            read_summary(tmp_path / name)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(CaptureFileError, match="but not one of captured values"):
        read_summary(tmp_path / "other.h5")
