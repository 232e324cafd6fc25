"""``shapetrace show run.h5``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from shapetrace.cli.main import main
from shapetrace.hdf5.saver import H5PYSaverCallback


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with H5PYSaverCallback(tmp_path / "run.h5") as saver:
        for step in range(4):
            saver("forward", [torch.arange(8.0).reshape(2, 4) * step], [step])
    return tmp_path / "run.h5"


def test_what_is_in_a_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--width", "70", str(path)]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    heading, empty, *lines = shown.out.splitlines()
    assert heading.startswith("run.h5: 1 name, 4 values, iterations 0–3, ")
    assert empty == ""
    assert lines == [
        "forward  f32[2,4]  ×4                                   iterations 0–3",
        "  █▃▃▃▃▂▃▂▁▃▂▂▁▂▁▂  0 … 21, mean 5.25",
    ]


def test_it_is_known_by_its_content(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.rename(path.with_name("run.json"))
    assert main(["show", str(path.with_name("run.json"))]) == 0
    assert "forward  f32[2,4]" in capsys.readouterr().out


def test_files_of_single_ranks_by_the_name_that_they_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with H5PYSaverCallback(tmp_path / "run.h5", shards=True) as saver:
        saver("x", [1], [0])
    (tmp_path / "run.h5").unlink()
    assert main(["show", str(tmp_path / "run.h5")]) == 0
    assert "x  int" in capsys.readouterr().out


def test_there_is_one_view(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--view", "table", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        f"shapetrace: {path} contains captured values; there is no view 'table' of these\n"
    )


def test_without_h5py(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert main(["show", str(path)]) == 2
    assert capsys.readouterr().err == (
        "shapetrace: HDF5 files need h5py, which is not installed here; `pip install h5py`\n"
    )


def test_a_file_that_is_cut_off(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(path.read_bytes()[:100])
    assert main(["show", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("shapetrace: cannot read run.h5: ")
    assert error.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path / "no.h5")]) == 2
    error = capsys.readouterr().err
    assert "there is no file" in error
    assert "name a file that `shapetrace capture -o FILE`" in error
