"""A process that is killed while it writes leaves everything up to its last gather."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from shapetrace.hdf5.journal import journal_of, recover
from shapetrace.hdf5.reading import read_names, read_values
from shapetrace.hdf5.shards import join_shards
from tests.python.e2e.capture.writers import NAMES, PER_GATHER, start

pytestmark = pytest.mark.e2e

KILLS = 10


def killed(process: subprocess.Popen[bytes], chance: random.Random) -> int:
    """Kill a writer at some moment after its first gathers; how many it had told of."""
    assert process.stdout is not None
    gathers = 0
    for _ in range(chance.randrange(1, 6)):
        gathers = int(process.stdout.readline())
    # Somewhere within the next gather: not a condition to wait for, any moment will do.
    try:
        process.wait(chance.random() * 0.03)
    except subprocess.TimeoutExpired:
        process.kill()
    rest = process.stdout.read().split()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
    process.stdout.close()
    return int(rest[-1]) if rest else gathers


def assert_whole(path: Path, gathers: int) -> None:
    """Plain h5py opens the file, and finds whole gathers in it."""
    with h5py.File(path, "r") as file:
        rows = len(file["first"])
        assert rows >= gathers * PER_GATHER
        assert rows % PER_GATHER == 0
        for name in NAMES:
            expected = np.broadcast_to(np.arange(rows, dtype="f4")[:, None, None], file[name].shape)
            np.testing.assert_array_equal(file[name][:], expected)
            assert file[f"{name}_iterations"][:].tolist() == list(range(rows))
            assert file[f"{name}_ranks"][:].tolist() == [0] * rows
        assert file["text"].asstr()[:].tolist() == [f"iteration {i}" for i in range(rows)]
        assert file["nested/0"][:].tolist() == list(range(rows))
        assert file["ragged_shapes"][:, 0].tolist() == [i % 7 for i in range(rows)]


@pytest.mark.timeout(600)
def test_a_writer_that_is_killed_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(5)
    for number in range(KILLS):
        path = tmp_path / f"{number}.h5"
        gathers = killed(start(path), chance)
        # Whoever opens it finds all that had been said to be in it ...
        with h5py.File(path, "r") as file:
            assert len(file["first"]) >= gathers * PER_GATHER
            assert (file["first"][: gathers * PER_GATHER, 3, 3] == np.arange(gathers * 4)).all()
        # ... and whole gathers only, but for those microseconds in which one is put into place.
        recover(str(path))
        assert_whole(path, gathers)
        path.unlink()


def test_shards_of_killed_ranks_are_shown_as_one(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    chance = random.Random(1)
    ranks = [start(path, 10**9, "shards", RANK=str(rank), WORLD_SIZE="3") for rank in range(2)]
    gathers = [killed(rank, chance) for rank in ranks]
    for rank in range(2):
        recover(str(path.with_name(f"run.rank{rank}.h5")))
    assert "first" in read_names(path)
    join_shards(path)
    read = read_values(path, "first")
    for rank, count in enumerate(gathers):
        assert sum(item.ranks == (rank,) for item in read) >= count * PER_GATHER
    with h5py.File(path) as file:
        assert file.attrs["shapetrace_missing_ranks"].tolist() == [2]


def test_somebody_who_looks_on_disturbs_nobody(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = start(path, 30)
    assert writer.stdout is not None
    writer.stdout.readline()
    seen = 0
    while writer.poll() is None:
        try:
            with h5py.File(path, "r") as file:
                rows = len(file["third"])
                assert rows >= seen
                seen = rows
        except (OSError, KeyError, RuntimeError, ValueError):
            # Right while a commit was put into place.
            continue
        recover(str(path))
    assert writer.wait() == 0
    writer.communicate()
    assert_whole(path, 30)
    assert not os.path.exists(journal_of(str(path)))


def test_two_programs_that_save_to_one_name(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writers = [start(path, 8) for _ in range(2)]
    for writer in writers:
        writer.communicate()
        assert writer.returncode in (0, 1)
    # The later one was refused if it came late, or else has a file of its own.
    files = sorted(os.listdir(tmp_path))
    succeeded = sum(writer.returncode == 0 for writer in writers)
    assert files == ["run-2.h5", "run.h5"][2 - succeeded :]
    for name in files:
        assert_whole(tmp_path / name, 8)


def test_a_program_that_just_ends_leaves_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = start(path, 3)
    _, error = writer.communicate()
    assert (writer.returncode, error) == (0, b"")
    assert_whole(path, 3)
