from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from shapetrace._errors import CaptureFileError
from shapetrace.hdf5.reading import read_names, read_values
from shapetrace.hdf5.saver import H5PYSaverCallback
from shapetrace.hdf5.shards import join_shards

Save = Callable[..., H5PYSaverCallback]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


@pytest.fixture
def save(path: Path, monkeypatch: pytest.MonkeyPatch) -> Save:
    """Save values as one rank of several."""

    def save(rank: int, world_size: int, values: dict[str, list[Any]], **options: Any) -> Any:
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(world_size))
        saver = H5PYSaverCallback(path, **{"shards": True, **options})
        for name, those in values.items():
            for iteration, value in enumerate(those):
                saver(name, [value], [iteration])
        saver.after_gather()
        saver.close()
        assert saver.problems == []
        return saver

    return save


def test_shards_are_shown_as_one(path: Path, save: Save) -> None:
    save(0, 2, {"x": [torch.full((3,), float(i)) for i in range(4)]})
    save(1, 2, {"x": [torch.full((3,), 10.0 + i) for i in range(2)]})
    assert sorted(os.listdir(path.parent)) == ["run.h5", "run.rank0.h5", "run.rank1.h5"]
    with h5py.File(path) as file:
        assert file["x"].is_virtual
        assert file["x"][:, 0].tolist() == [0, 1, 2, 3, 10, 11]
        assert file["x_iterations"][:].tolist() == [0, 1, 2, 3, 0, 1]
        assert file["x_ranks"][:].tolist() == [0, 0, 0, 0, 1, 1]


def test_the_files_can_be_moved_together(path: Path, save: Save, tmp_path: Path) -> None:
    save(0, 1, {"x": [torch.ones(3)]})
    folder = tmp_path / "50% elsewhere"
    folder.mkdir()
    for name in ("run.h5", "run.rank0.h5"):
        (tmp_path / name).rename(folder / name)
    with h5py.File(folder / "run.h5") as file:
        assert file["x"][:].tolist() == [[1, 1, 1]]


@pytest.mark.slow
def test_everything_that_a_shard_can_hold(path: Path, save: Save) -> None:
    values: dict[str, list[Any]] = {
        "ragged": [torch.ones(2, size).bfloat16() for size in (1, 2, 5)],
        "flat": [torch.ones(1, size, 64) for size in (512, *[1] * 20)],
        "types": [None, 1, "x", torch.ones(2), torch.ones(2, 2), 2**70, "nul\0"],
        "nested": [(torch.ones(2), {"k": [1, 2], "s": "ä"})] * 3,
        "a/b%c": [torch.tensor(1), torch.tensor(2)],
        "texts": [["a", "b"], ["c", "d", "e"]],
        "empty": [torch.ones(0, 3)] * 2,
        "float8": [torch.ones(3).to(torch.float8_e4m3fn)],
    }
    save(0, 3, values)
    save(1, 3, {**{name: those[::-1] for name, those in values.items()}, "only here": [1.5]})
    save(2, 3, {"ragged": [torch.ones(9, 2).bfloat16()], "types": [1.5]})
    assert read_names(path) == sorted([*values, "only here"])
    for name, those in values.items():
        read = read_values(path, name)
        expected = [*those, *those[::-1]]
        if name == "ragged":
            expected.append(torch.ones(9, 2).bfloat16())
        if name == "types":
            expected.append(1.5)
        assert [item.ranks for item in read][: len(those)] == [(0,)] * len(those)
        assert [repr(item.value) for item in read] == list(map(repr, expected)), name


def test_stacked_values_for_different_numbers_of_iterations(path: Path, monkeypatch: Any) -> None:
    for rank, size in ((0, 2), (1, 3)):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        with H5PYSaverCallback(path, shards=True) as saver:
            saver("x", [torch.ones(size, 4)], list(range(size)))
    with h5py.File(path) as file:
        assert file["x_iterations"][:].tolist() == [[0, 1, -1], [0, 1, 2]]
    assert [item.iterations for item in read_values(path, "x")] == [(0, 1), (0, 1, 2)]


def test_a_rank_that_has_left_nothing_is_named(path: Path, save: Save) -> None:
    save(0, 4, {"x": [1]})
    save(2, 4, {"x": [2]})
    joined = join_shards(path)
    assert (joined.ranks, joined.missing, joined.problems) == ((0, 2), (1, 3), ())


def test_a_shard_that_cannot_be_read_is_left_out(path: Path, save: Save) -> None:
    save(0, 2, {"x": [1]})
    path.with_name("run.rank1.h5").write_bytes(b"\x89HDF cut off")
    joined = join_shards(path)
    assert joined.ranks == (0,)
    assert len(joined.problems) == 1
    assert joined.problems[0].startswith("cannot read run.rank1.h5: ")


def test_shards_of_an_earlier_run_are_left_out(path: Path, save: Save) -> None:
    for rank in range(3):
        save(rank, 3, {"x": [rank]})
    save(0, 2, {"x": [10]}, overwrite=True)
    save(1, 2, {"x": [11]}, overwrite=True)
    assert [item.value for item in read_values(path, "x")] == [10, 11]
    assert join_shards(path).problems == ("run.rank2.h5 is of another run: left out",)


def test_ranks_that_save_what_was_not_gathered_have_files_of_their_own(
    path: Path, save: Save
) -> None:
    for rank in (0, 1):
        assert save(rank, 2, {"x": [rank]}, shards=False).path.endswith(f"run.rank{rank}.h5")
    assert [item.value for item in read_values(path, "x")] == [0, 1]


def test_what_was_gathered_goes_to_the_file_itself(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with H5PYSaverCallback(path) as saver:
        saver("x", [1, 2], [0, 0], [0, 1])
    assert os.listdir(path.parent) == ["run.h5"]


def test_shards_that_nobody_has_joined_are_joined_to_be_read(path: Path, save: Save) -> None:
    save(0, 2, {"x": [1]})
    path.unlink()
    assert read_names(path) == ["x"]
    # A rank goes on after that.
    save(1, 2, {"x": [2]})
    os.utime(path, (0, 0))
    assert [item.value for item in read_values(path, "x")] == [1, 2]


def test_a_file_that_was_not_joined_is_not_replaced(path: Path, save: Save) -> None:
    save(0, 2, {"x": [1]})
    path.write_bytes(b"precious")
    with pytest.raises(CaptureFileError, match="was not made of shards; move it first"):
        join_shards(path)
    assert path.read_bytes() == b"precious"


def test_nothing_to_join(path: Path) -> None:
    with pytest.raises(CaptureFileError, match=r"no run\.rank0\.h5 and no other rank's file"):
        join_shards(path)


def test_padding_of_joined_shards_is_known(path: Path, save: Save) -> None:
    save(0, 2, {"x": [torch.ones(2)]})
    save(1, 2, {"x": [torch.ones(3)]})
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"][:], [[1, 1, 0], [1, 1, 1]])
        assert file["x_shapes"][:].tolist() == [[2], [3]]
