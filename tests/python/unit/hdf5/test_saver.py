"""``H5PYSaverCallback`` as a callback: positions, options, what it says, what it leaves behind."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from shapetrace._errors import CaptureFileError, ShapetraceError
from shapetrace.hdf5.reading import read_names, read_values
from shapetrace.hdf5.saver import H5PYSaverCallback
from tests.python.unit.hdf5.forking import forked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


def test_stacked_values_of_the_readme(path: Path) -> None:
    # N = 4 iterations, gathered each G = 2, on W = 2 ranks, with B = 3 and C = 5.
    saver = H5PYSaverCallback(dataset_file=path)
    for first in (1, 3):
        values = [torch.full((4, 3, 5), float(first))]
        saver("forward.x", values, [first, first + 1] * 2, [0, 0, 1, 1])
        saver.after_gather()
    assert repr(saver.datasets["forward.x"]) == (
        '<HDF5 dataset "forward.x": shape (2, 4, 3, 5), type "<f4">'
    )
    with h5py.File(path) as file:
        assert file["forward.x_iterations"][:].tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
        assert file["forward.x_ranks"][:].tolist() == [[0, 0, 1, 1]] * 2
    assert read_values(path, "forward.x")[1].iterations == (3, 4, 3, 4)


def test_a_mean_over_a_gather_stands_for_all_of_its_iterations(path: Path) -> None:
    with H5PYSaverCallback(path) as saver:
        saver("x", [torch.ones(5)], [1, 2, 3, 4], [0, 0, 1, 1])
        saver("x", [torch.ones(5)], [5, 6], [0, 1])
    with h5py.File(path) as file:
        assert file["x"].shape == (2, 5)
        assert file["x_iterations"][:].tolist() == [[1, 2, 3, 4], [5, 6, -1, -1]]
    assert [item.ranks for item in read_values(path, "x")] == [(0, 0, 1, 1), (0, 1)]


def test_one_value_for_each_iteration_of_each_rank(path: Path) -> None:
    with H5PYSaverCallback(path, iteration_dtype=np.uint16) as saver:
        saver("x", [torch.ones(5)] * 4, [1, 2, 1, 2], [0, 0, 1, 1])
    with h5py.File(path) as file:
        assert file["x"].shape == (4, 5)
        assert file["x_iterations"][:].tolist() == [1, 2, 1, 2]
        assert file["x_iterations"].dtype == np.uint16
        assert file["x_ranks"][:].tolist() == [0, 0, 1, 1]


def test_a_value_for_one_iteration_and_later_for_several(path: Path) -> None:
    with H5PYSaverCallback(path, iteration_dtype="uint8") as saver:
        saver("x", [torch.ones(1, 5)], [1], [0])
        saver("x", [torch.ones(3, 5)], [2, 3, 4], [0, 0, 0])
    with h5py.File(path) as file:
        assert file["x_iterations"][:].tolist() == [[1, 255, 255], [2, 3, 4]]
    assert [item.iterations for item in read_values(path, "x")] == [(1,), (2, 3, 4)]


def test_other_numbers_of_values_and_iterations(path: Path) -> None:
    with H5PYSaverCallback(path) as saver:
        saver("x", [torch.ones(1), torch.ones(1)], [1, 2, 3, 4])
        saver("x", [], [5])
        saver("x", [torch.ones(1)], [])
    assert [item.iterations for item in read_values(path, "x")] == [(1, 2, 3, 4)] * 2 + [()]


def test_lists_are_emptied(path: Path) -> None:
    saver = H5PYSaverCallback(path)
    lists: list[list[Any]] = [[torch.ones(1)], [1], [0]]
    saver("x", *lists)
    assert lists == [[], [], []]


@pytest.mark.parametrize("is_told", [True, False], ids=["told of gathers", "told of nothing"])
def test_what_has_been_handed_over_is_in_the_file(path: Path, is_told: bool) -> None:
    saver = H5PYSaverCallback(path)
    for iteration in range(5):
        for name in ("a", "b"):
            saver(name, [torch.tensor(iteration)], [iteration])
        if is_told:
            saver.after_gather()
        with h5py.File(path) as file:
            assert len(file["a"]) == len(file["b"]) == iteration + 1


def test_the_values_of_a_gather_appear_together(path: Path) -> None:
    saver = H5PYSaverCallback(path)
    for name in ("a", "b"):
        saver(name, [torch.tensor(0)], [0])
    saver.after_gather()
    saver("a", [torch.tensor(1)], [1])
    with h5py.File(path) as file:
        assert len(file["a"]) == 1
    # A name comes again, so the gather before must be over.
    saver("a", [torch.tensor(2)], [2])
    with h5py.File(path) as file:
        assert len(file["a"]) == 2
    saver.close()
    with h5py.File(path) as file:
        assert len(file["a"]) == 3


def test_a_closed_saver_can_be_looked_at_and_goes_on_with_its_file(path: Path) -> None:
    with H5PYSaverCallback(path) as saver:
        saver("a", [torch.tensor(0)], [0])
    assert saver.datasets["a"][:].tolist() == [0]
    with h5py.File(path, "r+"):
        pass
    saver("a", [torch.tensor(1)], [1])
    saver.close()
    assert list(saver.datasets) == ["a"]
    assert saver.datasets["a"][:].tolist() == [0, 1]
    assert os.listdir(path.parent) == ["run.h5"]
    saver.close()


def test_names_of_every_kind(path: Path) -> None:
    names = ["", ".", "..", "a/b", "a", "a_iterations", "a_ranks", "%", "ä\0", "x" * 300, "\ud800"]
    with H5PYSaverCallback(path) as saver:
        for number, name in enumerate(names):
            saver(name, [number], [0])
    assert saver.problems == []
    assert read_names(path) == sorted(names)
    assert [read_values(path, name)[0].value for name in names] == list(range(len(names)))
    assert sorted(saver.datasets) == sorted(names)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip"},
        {"compression": "gzip", "compression_opts": 9, "shuffle": True},
        {"compression": "lzf"},
        {"compression": 3},
        {"shuffle": True},
    ],
    ids=str,
)
def test_compression(path: Path, options: dict[str, Any]) -> None:
    values = [torch.zeros(size, 100, 100) for size in (5, 5, 7)] + [torch.zeros(2).bfloat16()]
    with H5PYSaverCallback(path, **options) as saver:
        for iteration, value in enumerate(values):
            saver("x", [value], [iteration])
            saver("text", ["x"], [iteration])
    assert saver.problems == []
    if "compression" in options:
        assert path.stat().st_size < 200_000
    assert all(torch.equal(a, b.value) for a, b in zip(values, read_values(path, "x"), strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "zip"}, "compression='zip', compression_opts=None is not possible: "),
        ({"compression": "gzip", "compression_opts": 10}, "compression_opts=10 is not possible: "),
        ({"iteration_dtype": "float32"}, "iteration_dtype='float32' is no type of integers"),
        ({"int_dtype": float}, "is no type of integers; try int_dtype='int64'"),
        ({"float_dtype": "int8"}, "float_dtype='int8' is no type of floating point numbers"),
        ({"float_dtype": "float"}, None),
        ({"float_dtype": "nothing"}, "float_dtype='nothing' is no type that NumPy knows"),
    ],
)
def test_options_are_tried_at_once(
    path: Path, options: dict[str, Any], message: str | None
) -> None:
    if message is None:
        H5PYSaverCallback(path, **options)
        return
    with pytest.raises(CaptureFileError) as caught:
        H5PYSaverCallback(path, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{}, {"existing_ok": True}, {"existing_ok": False}, {"shards": True}], ids=str
)
def test_an_existing_file_is_refused_at_once(path: Path, options: dict[str, Any]) -> None:
    path.write_text("precious")
    with pytest.raises(ShapetraceError) as caught:
        H5PYSaverCallback(path, **options)
    assert str(caught.value) == (
        f"{path} exists already; choose another name, or have it replaced by overwrite=True"
    )
    assert path.read_text() == "precious"


def test_an_existing_file_is_replaced_if_asked_for_and_not_before_there_is_something(
    path: Path,
) -> None:
    path.write_text("precious")
    saver = H5PYSaverCallback(path, overwrite=True)
    assert path.read_text() == "precious"
    saver("x", [1], [0])
    saver.close()
    assert read_names(path) == ["x"]


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    for given, message in [
        (tmp_path, "it is a folder; name a file in it"),
        (tmp_path / "no" / "run.h5", "its folder does not exist; make it first"),
    ]:
        with pytest.raises(CaptureFileError, match=message):
            H5PYSaverCallback(given)


def test_without_h5py_it_is_said_what_to_install(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(CaptureFileError, match="`pip install h5py`"):
        H5PYSaverCallback(path)


def test_a_file_that_somebody_else_makes_meanwhile_is_left_alone(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = H5PYSaverCallback(path), H5PYSaverCallback(path)
    one("x", [1], [0])
    other("x", [2], [0])
    other.after_gather()
    one.after_gather()
    assert other.path == str(path.with_name("run-2.h5"))
    assert other.problems == [
        f"{path} was made by another program meanwhile; saving to run-2.h5 instead"
    ]
    assert [read_values(each.path, "x")[0].value for each in (one, other)] == [1, 2]
    assert "run-2.h5" in capsys.readouterr().err


def test_a_file_that_is_removed_meanwhile(path: Path) -> None:
    saver = H5PYSaverCallback(path)
    for iteration in range(3):
        saver("x", [iteration], [iteration])
        saver.after_gather()
        if not iteration:
            path.unlink()
    saver.close()
    assert [item.value for item in read_values(path, "x")] == [2]
    assert len(saver.problems) == 1
    assert "was removed or replaced meanwhile" in saver.problems[0]


def test_a_pickled_saver_begins_afresh(path: Path) -> None:
    saver = H5PYSaverCallback(path, compression="gzip")
    other = pickle.loads(pickle.dumps(saver))
    other("x", [1], [0])
    other.close()
    assert read_names(path) == ["x"]


def test_a_forked_child_leaves_its_parents_file_alone(path: Path) -> None:
    saver = H5PYSaverCallback(path)
    saver("x", [1], [0])
    saver.after_gather()
    saver("x", [2], [1])
    child = forked()
    if not child:
        try:
            saver("x", [3], [1])
            saver.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    saver("x", [4], [2])
    saver.close()
    assert [item.value for item in read_values(path, "x")] == [1, 2, 4]
    assert [item.value for item in read_values(path.with_name("run-2.h5"), "x")] == [3]
    assert sorted(os.listdir(path.parent)) == ["run-2.h5", "run.h5"]


@pytest.mark.parametrize("limit", [0, 20_000, 50_000, 100_000, 300_000])
def test_a_full_disk_costs_the_values_of_that_time_only(
    path: Path,
    limit: int,
    largest_file: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def gather(iteration: int) -> None:
        saver("small", [iteration], [iteration])
        saver("large", [torch.full((100, 100), float(iteration))], [iteration])
        saver.after_gather()

    saver = H5PYSaverCallback(path)
    gather(0)
    before = path.read_bytes()
    largest_file(limit)
    for iteration in range(1, 20):
        gather(iteration)
    kept = len(h5py.File(path)["small"][:])
    if limit < 50_000:
        assert path.read_bytes() == before
    assert len(saver.problems) == 1
    assert "file too large; " in saver.problems[0]
    assert saver.problems[0].endswith("and saving is tried again at the next gather")
    assert capsys.readouterr().err.count("\n") == 1
    largest_file(10**9)
    gather(20)
    saver.close()
    missing = f"{2 * (20 - kept)} values (iterations {kept}–19)"
    assert saver.problems == [f"{path}: {missing} are missing in it (file too large)"]
    assert "saving again" in capsys.readouterr().err
    with h5py.File(path) as file:
        assert file["small"][:].tolist() == [*range(kept), 20]
        assert file["large"][:, 5, 5].tolist() == [*range(kept), 20]
        assert file.attrs["shapetrace_problems"] == saver.problems[0]
    assert os.listdir(path.parent) == ["run.h5"]


def test_a_disk_that_is_full_from_the_beginning(
    path: Path, largest_file: Callable[[int], None]
) -> None:
    saver = H5PYSaverCallback(path)
    largest_file(100)
    saver("x", [1], [0])
    saver.after_gather()
    assert not path.exists()
    largest_file(10**9)
    saver("x", [2], [1])
    saver.close()
    assert [item.value for item in read_values(path, "x")] == [2]
    assert saver.problems == [f"{path}: 1 value (iteration 0) is missing in it (file too large)"]


def test_a_folder_that_disappears_does_not_end_the_training(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    saver = H5PYSaverCallback(folder / "run.h5")
    folder.rmdir()
    saver("x", [1], [0])
    saver.after_gather()
    assert "no such file or directory" in saver.problems[0]


def test_it_is_one_line_when_stderr_is_gone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with H5PYSaverCallback(path) as saver:
        saver("x", [object()], [0])
    assert len(saver.problems) == 1


def test_nothing_is_left_alone_when_nothing_was_saved(path: Path) -> None:
    with H5PYSaverCallback(path) as saver:
        saver.after_gather()
    assert dict(saver.datasets) == {}
    assert not path.exists()


def test_an_interrupt_is_passed_on_and_leaves_the_last_gather(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = H5PYSaverCallback(path)
    saver("x", [0], [0])
    saver.after_gather()

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shapetrace.hdf5.transactions.write_at", interrupted)
    with pytest.raises(KeyboardInterrupt):
        saver("x", [torch.ones(1000, 100)], [1])
    monkeypatch.undo()
    saver("x", [2], [2])
    saver.close()
    assert [item.value for item in read_values(path, "x")] == [0, 2]
