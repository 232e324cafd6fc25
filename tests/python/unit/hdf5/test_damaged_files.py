"""A damaged file is refused in one line, and never written to."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from shapetrace._errors import CaptureFileError
from shapetrace.cli.main import main
from shapetrace.hdf5 import reader_process
from shapetrace.hdf5.file_summary import read_summary
from shapetrace.hdf5.journal import Left, journal_of, left_beside, recover
from shapetrace.hdf5.reader_process import summary_of
from shapetrace.hdf5.reading import read_names
from shapetrace.hdf5.saver import H5PYSaverCallback
from tests.python.unit.hdf5 import damaging
from tests.support.examples import some

ROOT = Path(__file__).parents[4]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.h5"
    with H5PYSaverCallback(path) as saver:
        for step in range(4):
            saver("x", [{"y": torch.ones(2), "t": (torch.tensor(1.0), "text", 3)}], [step])
    return path


def shown(path: Path, capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    code = main(["show", *options, str(path)])
    captured = capfd.readouterr()
    return code, captured.out, captured.err


def assert_refused(path: Path, capfd: pytest.CaptureFixture[str], reason: str = "") -> None:
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    code, out, error = shown(path, capfd)
    assert (code, out) == (2, "")
    assert error.startswith(f"shapetrace: cannot read {path.name}: ")
    assert reason in error
    assert error.count("\n") == 1
    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before


@pytest.mark.slow
def test_hundreds_of_damaged_files(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python_backend"), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
    }
    damaging.write_file(tmp_path / "good.h5")
    number = some(150)
    program = [sys.executable, "-m", damaging.__name__, str(tmp_path), "1", str(number)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    outcome = json.loads(done.stdout)
    found = outcome["found"]
    assert outcome["errors"] == []
    assert found["read"] > number // 10
    assert found["refused"] > number // 10
    assert found["read"] + found["refused"] + found.get("died", 0) == number
    assert outcome["beside"] == []


@pytest.mark.slow
def test_some_of_them_by_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.h5"
    good = damaging.write_file(path)
    chance = random.Random(2)
    codes = set()
    for _ in range(8):
        content = damaging.damaged(good, chance)
        path.write_bytes(content)
        code, out, error = shown(path, capfd)
        codes.add(code)
        assert (code, bool(out), error.count("\n")) in ((0, True, 0), (2, False, 1))
        assert path.read_bytes() == content
        assert os.listdir(tmp_path) == ["run.h5"]
    assert codes == {0, 2}


def test_a_file_that_crashes_hdf5(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    content = bytearray(path.read_bytes())
    # The kind of text that an attribute's is.
    content[content.index(b"shapetrace_column") + 25] = 26
    path.write_bytes(content)
    assert_refused(path, capfd, "it is damaged")


def test_a_damaged_file_with_nothing_to_recover(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(path.read_bytes()[:1000])
    code, out, error = shown(path, capfd, "--recover")
    assert (code, out) == (2, "")
    assert error.startswith("shapetrace: cannot read run.h5: ")
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_file_that_hdf5_reads_for_ever(
    path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_process, "_SECONDS", 1)
    content = bytearray(path.read_bytes())
    # How long the last text of a heap is: beyond its end.
    content[content.rindex(b"\4\0\0\0\0\0\0\0text")] = 191
    path.write_bytes(content)
    assert_refused(path, capfd, "it is damaged")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.abort()", "HDF5 crashes on it (SIGABRT); it is damaged"),
        ("raise SystemExit(3)", "the process that was to read it ended early; it is damaged"),
        (
            "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 9))\nwhile True: pass",
            "reading it comes to no end; it is damaged",
        ),
        ("import time; time.sleep(1000)", "reading it comes to no end; it is damaged"),
    ],
)
def test_the_process_that_reads_ends_without_an_answer(
    path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    monkeypatch.setattr(reader_process, "_PROGRAM", program)
    monkeypatch.setattr(reader_process, "_QUIET_SECONDS", 1 if "sleep" in program else 60)
    with pytest.raises(CaptureFileError) as caught:
        summary_of(str(path))
    assert str(caught.value) == f"cannot read run.h5: {reason}"


@pytest.mark.slow
def test_another_process_tells_what_this_one_would(path: Path) -> None:
    summary = read_summary(path)
    assert summary_of(str(path)) == summary
    content = path.read_bytes()
    assert summary_of(str(path), content) == read_summary(path, content=io.BytesIO(content))


def test_sizes_that_nothing_was_written_for(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with h5py.File(path, "r+") as file:
        file["x_iterations"].resize(1 << 40, 0)
        file["x_ranks"].resize(1 << 31, 0)
    assert_refused(path, capfd, "a size is too large")


def test_a_value_that_is_larger_than_what_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with H5PYSaverCallback(path) as saver:
        saver("x", [torch.arange(3 << 20).reshape(3, 1024, 1024)], [0])
        saver("x", [torch.arange(1 << 20).reshape(1, 1024, 1024)], [1])
    (name,) = read_summary(path, byte_budget=1 << 21).names
    statistics = name.parts[0].leaves[0].statistics
    assert statistics is not None
    assert statistics.total == 4 << 20
    assert 0 < statistics.looked_at <= (1 << 19)


def test_a_file_that_leads_to_others_is_not_followed(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    whole = path.read_bytes()

    def link(file: h5py.File) -> None:
        file["other"] = h5py.ExternalLink("pipe", "/x")

    def keep_elsewhere(file: h5py.File) -> None:
        attributes = dict(file["x_ranks"].attrs)
        del file["x_ranks"]
        file.create_dataset("x_ranks", (4,), "i4", external=[("pipe", 0, 16)])
        file["x_ranks"].attrs.update(attributes)

    def show_another(file: h5py.File) -> None:
        del file["x_ranks"]
        layout = h5py.VirtualLayout((4,), "i4")
        layout[:] = h5py.VirtualSource("pipe", "x", (4,))
        file.create_virtual_dataset("x_ranks", layout)

    for change in (link, keep_elsewhere, show_another):
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            change(file)
        with pytest.raises(CaptureFileError, match="in another file"):
            read_names(path)


def journal(
    place: int, identity: bytes, *extents: tuple[int, int, bytes], count: int = -1
) -> bytes:
    body = b"shapetrace journal 1\n"
    body += struct.pack("<QII", place, len(identity), len(extents) if count < 0 else count)
    body += identity
    for offset, size, content in extents:
        body += struct.pack("<QQ", offset, size) + content
    return body + struct.pack("<I", zlib.crc32(body))


def identity_of(path: Path) -> tuple[int, bytes]:
    with h5py.File(path) as file:
        identity = bytes(file.attrs["shapetrace_identity"])
    return path.read_bytes().index(identity), identity


def crafted(path: Path) -> dict[str, bytes]:
    """Journals that would make of a file what no commit of it could."""
    place, identity = identity_of(path)
    size = path.stat().st_size
    return {
        "empty": b"",
        "no header": journal(0, b"")[:21],
        "no identity": journal(0, b"", (0, 1, b"x")),
        "what every file begins with": journal(0, b"\x89HDF", (0, 1, b"x")),
        "zeros of every file": journal(9, b"\0" * 32, (0, 1, b"x")),
        "an identity beyond the end": journal(2**63, identity, (0, 1, b"x")),
        "another identity": journal(place, b"0" * 32, (0, 1, b"x")),
        "growing": journal(place, identity, (2**40, 10, b"x" * 10)),
        "beyond what a file can have": journal(place, identity, (2**63 - 1, 10, b"x" * 10)),
        "a byte longer": journal(place, identity, (size - 9, 10, b"x" * 10)),
        "the second one growing": journal(place, identity, (8, 1, b"x"), (size, 1, b"x")),
        "less than it says": journal(place, identity, (8, 10, b"x")),
        "more than it says": journal(place, identity, (8, 1, b"xx")),
        "more extents than there are": journal(place, identity, (8, 1, b"x"), count=2**31),
        "one over the other": journal(place, identity, (8, 4, b"xxxx"), (10, 1, b"x")),
    }


def test_a_crafted_journal_changes_nothing(path: Path) -> None:
    whole = path.read_bytes()
    for name, content in crafted(path).items():
        beside = Path(journal_of(str(path)))
        beside.write_bytes(content)
        assert left_beside(str(path)) is Left.FOREIGN, name
        assert not recover(str(path)), name
        assert path.read_bytes() == whole, name
        assert beside.read_bytes() == content, name


def test_a_journal_that_is_no_file_of_ours(path: Path, tmp_path: Path) -> None:
    place, identity = identity_of(path)
    whole = path.read_bytes()
    beside = Path(journal_of(str(path)))
    (tmp_path / "planted").write_bytes(journal(place, identity, (8, 1, b"x")))

    beside.symlink_to(tmp_path / "planted")
    assert left_beside(str(path)) is Left.FOREIGN
    beside.unlink()

    os.mkfifo(beside)
    assert left_beside(str(path)) is Left.FOREIGN
    beside.unlink()

    with open(beside, "wb") as stream:
        stream.truncate(1 << 40)
    assert left_beside(str(path)) is Left.FOREIGN
    beside.unlink()
    assert path.read_bytes() == whole


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_journal_that_somebody_else_has_put_there(path: Path) -> None:
    place, identity = identity_of(path)
    beside = Path(journal_of(str(path)))
    beside.write_bytes(journal(place, identity, (8, 1, b"x")))
    os.chown(beside, 12345, -1)
    assert left_beside(str(path)) is Left.FOREIGN
    assert not recover(str(path))


@pytest.mark.slow
def test_show_says_what_a_killed_program_left_and_recovers_when_asked(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place, identity = identity_of(path)
    whole = path.read_bytes()
    with h5py.File(path) as file:
        offset = file["x_iterations"].id.get_chunk_info(0).byte_offset
    left = journal(place, identity, (offset + 24, 8, struct.pack("<q", 99)))
    beside = Path(journal_of(str(path)))
    beside.write_bytes(left)

    code, out, error = shown(path, capfd)
    assert (code, "iterations 0–3" in out) == (0, True)
    assert error == (
        f"shapetrace: {path} may lack its last gather; `python -m shapetrace show --recover "
        f"{path}` completes the write of a program that was killed\n"
    )
    assert (path.read_bytes(), beside.read_bytes()) == (whole, left)

    code, out, error = shown(path, capfd, "--recover")
    assert (code, "iterations 0–99" in out) == (0, True)
    assert error == f"shapetrace: {path}: completed the write of a program that was killed\n"
    assert not beside.exists()

    code, out, error = shown(path, capfd, "--recover")
    assert (code, error) == (0, f"shapetrace: {path}: there is nothing to recover\n")


def test_show_leaves_a_crafted_journal_alone(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = path.read_bytes()
    content = crafted(path)["growing"]
    beside = Path(journal_of(str(path)))
    beside.write_bytes(content)
    code, out, error = shown(path, capfd)
    assert (code, bool(out)) == (0, True)
    assert error == (
        f"shapetrace: {beside} was left alone: it is damaged, or not the journal of this file\n"
    )
    code, out, error = shown(path, capfd, "--recover")
    assert (code, out) == (2, "")
    assert error.endswith(": nothing was changed; remove it\n")
    assert (path.read_bytes(), beside.read_bytes()) == (whole, content)


def test_a_file_that_cannot_be_read_before_it_is_recovered(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place, identity = identity_of(path)
    whole = path.read_bytes()
    torn = bytearray(whole)
    start = whole.index(b"TREE")
    torn[start : start + 4] = b"torn"
    path.write_bytes(torn)
    Path(journal_of(str(path))).write_bytes(journal(place, identity, (start, 4, b"TREE")))
    assert_refused(path, capfd, f"show --recover {path}` completes the write of a program")
    assert shown(path, capfd, "--recover")[0] == 0
    assert path.read_bytes() == whole


def test_files_of_single_ranks_are_shown_without_joining_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.h5"
    monkeypatch.setenv("WORLD_SIZE", "3")
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        with H5PYSaverCallback(path, shards=True) as saver:
            for step in range(3):
                saver("x", [np.full(2 + rank, float(step + 10 * rank))], [step])
                saver("only" if rank else "both", [step], [step])
    joined = path.read_bytes()
    os.utime(path, (0, 0))
    code, out, error = shown(path, capfd)
    assert (code, error) == (0, "")
    assert path.read_bytes() == joined
    path.unlink()
    assert shown(path, capfd)[1].splitlines()[2:] == out.splitlines()[2:]
    assert sorted(os.listdir(tmp_path)) == ["run.rank0.h5", "run.rank1.h5"]
    assert "f64[2..3]" in out
    assert "0 … 12, mean 7\n" in out
    assert "12 values, iterations 0–2, ranks 0, 1" in out.splitlines()[0]
    assert "nothing of rank 2: no file of theirs" in out
