"""What commands write: whole or not at all, and over nothing that is not theirs."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapetrace._errors import TraceFileError
from shapetrace._files import descriptor_of, new_beside, open_to_append, write_whole
from shapetrace.cli.main import main
from shapetrace.events import codec
from shapetrace.sinks.file import TRACE, FileSink, OutputFile
from tests.python.unit.comparing.worlds import random_world
from tests.support.interrupting import Interrupter, exceptions

ROOT = Path(__file__).parents[4]

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    world = random_world(5, with_values=True)
    codec.save(world.trace(), tmp_path / "a.json")
    world.ops()[3].shape = (3, 3)
    codec.save(world.trace(), tmp_path / "b.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that says why, where nothing has changed."""
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    return shown.err.removeprefix("shapetrace: ").removesuffix("\n")


@pytest.mark.parametrize("output", ["a.json", "b.json", "link.json", "./a.json", "hard.json"])
def test_a_comparison_does_not_replace_what_it_reads(
    folder: Path, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    Path("link.json").symlink_to("b.json")
    os.link("a.json", "hard.json")
    assert refused(capsys, "diff", "-o", output, "a.json", "b.json") == (
        f"{output} is an input of this command: name another file"
    )


@pytest.mark.parametrize(
    "content", ["import torch\n", "# notes\n", '{"format": 1}', "A  list of things\nB  more\n"]
)
def test_a_comparison_replaces_nothing_but_a_report(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    Path("train.py").write_text(content)
    assert refused(capsys, "diff", "-o", "train.py", "a.json", "b.json") == (
        "train.py exists already and is not a report of `shapetrace diff`: remove it, or name "
        "another file"
    )


@pytest.mark.slow
@pytest.mark.parametrize("color", ["never", "always"])
def test_a_report_replaces_a_report(folder: Path, color: str) -> None:
    formats = ("text", "json", "markdown")
    for form in (*formats, *reversed(formats)):
        arguments = ("--format", form, "--color", color, "-o", "report", "a.json")
        assert main(["diff", *arguments, "b.json"]) == 1
        assert main(["diff", *arguments, "a.json"]) == 0
    Path("empty").touch()
    assert main(["diff", "-o", "empty", "a.json", "b.json"]) == 1
    assert not list(folder.glob(".shapetrace*"))


def test_a_trace_replaces_no_report(folder: Path) -> None:
    assert main(["diff", "--format", "json", "-o", "report.json", "a.json", "b.json"]) == 1
    with pytest.raises(TraceFileError, match="exists already and is not a trace"):
        FileSink("report.json").open()


def test_what_was_put_there_meanwhile_stays(folder: Path) -> None:
    trace = codec.load("a.json")
    sink = FileSink("run.json")
    sink.open()
    Path("run.json").write_text("results of the program")
    with pytest.raises(TraceFileError, match="exists already and is not a trace"):
        sink.write(trace)
    assert Path("run.json").read_text() == "results of the program"


def test_an_empty_program_is_not_replaced_by_its_trace(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("program.py").touch()
    for command in (["run"], ["capture", "--overwrite", "--values", "forward"]):
        assert refused(capsys, *command, "-o", "program.py", "program.py") == (
            "program.py is an input of this command: name another file"
        )


def test_captured_values_need_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("program.py").touch()
    os.mkfifo("pipe")
    for output in ("pipe", os.devnull):
        arguments = ("--overwrite", "--values", "forward", "-o", output, "program.py")
        assert refused(capsys, "capture", *arguments) == (
            f"cannot write {output}: HDF5 needs a file; name one, such as run.h5"
        )


def test_a_disk_that_is_full_leaves_the_old_report(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["diff", "-o", "report", "a.json", "a.json"]) == 0

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert refused(capsys, "diff", "-o", "report", "a.json", "b.json") == (
        f"cannot write {folder / 'report'}: no space left on device; choose another place"
    )
    assert not list(folder.glob(".shapetrace*"))


def test_what_fails_while_it_is_written_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, pieces())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_nobody_else_reads_it_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o600)
    path.chmod(0o640)
    seen: list[int] = []

    def pieces() -> Iterator[bytes]:
        yield b"secret"
        (temporary,) = tmp_path.glob(".shapetrace*")
        seen.append(stat.S_IMODE(temporary.stat().st_mode))

    write_whole(path, pieces())
    assert seen == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@only_root
def test_a_replaced_file_stays_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 12345, 23456)
    write_whole(path, [b"new"])
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@only_root
def test_a_link_that_somebody_has_planted_is_not_followed(tmp_path: Path) -> None:
    everybodys = tmp_path / "tmp"
    everybodys.mkdir()
    everybodys.chmod(0o1777)
    target = tmp_path / "bashrc"
    target.touch()
    link = everybodys / "run.json"
    link.symlink_to(target)
    write_whole(link, [b"by our own link"])
    assert target.read_bytes() == b"by our own link"
    os.lchown(link, 12345, 12345)
    for output in (OutputFile(link, None), OutputFile(link, TRACE)):
        with pytest.raises(TraceFileError, match="it is not permitted there"):
            output.open()
    with pytest.raises(PermissionError):
        write_whole(link, [b"by theirs"])
    assert target.read_bytes() == b"by our own link"


def test_what_is_made_beside_a_file_is_never_there_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: b"\0" * count)
    with new_beside(tmp_path / "file") as (_, name):
        assert os.path.exists(name)
    (tmp_path / "victim").write_bytes(b"precious")
    os.symlink(tmp_path / "victim", name)
    with pytest.raises(FileExistsError), new_beside(tmp_path / "file"):
        pass
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert os.path.islink(name)


class Late(Exception):
    """Set from another thread."""


# What Python closes by itself where one comes just as ``open`` returns.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_nothing_is_left_beside_a_file_by_an_exception_that_comes_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "file"
    interrupter = Interrupter(
        exceptions(Late), lambda code: code.co_filename == write_whole.__code__.co_filename
    )
    write_whole(file, [b"0"])
    interrupter.run(lambda: write_whole(file, [b"0"]))
    whole = interrupter.count
    assert whole > 100
    for at in range(1, whole + 1):
        with contextlib.suppress(Late):
            interrupter.run(lambda: write_whole(file, [b"1"]), at)
        assert os.listdir(tmp_path) == ["file"], interrupter.place
        assert file.read_bytes() in (b"0", b"1")
    write_whole(file, [b"2"])
    assert file.read_bytes() == b"2"


def test_a_log_is_no_link_and_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "link.log").symlink_to(tmp_path / "victim")
    os.mkfifo(tmp_path / "pipe.log")
    for name, problem in (("link.log", "symbolic links"), ("pipe.log", "No such device")):
        with pytest.raises(OSError, match=problem):
            open_to_append(tmp_path / name, encoding="utf-8", errors="strict")
    assert (tmp_path / "victim").read_text() == "precious"
    for _ in range(2):
        with open_to_append(tmp_path / "new.log", encoding="utf-8", errors="strict") as stream:
            stream.write("ä\n")
    assert (tmp_path / "new.log").read_text("utf-8") == "ä\nä\n"


def test_paths_that_stand_for_a_descriptor(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "file").touch()
    paths: dict[str | Path, int | None] = {
        "/dev/stdout": 1,
        "/dev/fd/63": 63,
        "/proc/self/fd/2": 2,
        f"/proc/{os.getpid()}/fd/3": 3,
        "/proc/1/fd/3": None,
        tmp_path / "link": 1,
        tmp_path / "file": None,
        tmp_path / "none": None,
    }
    for path, number in paths.items():
        assert descriptor_of(path) == number, path


def shell(command: str, folder: Path) -> str:
    """What a command line prints, with ``shapetrace`` for the command."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python_backend"),
        "BASH_FUNC_shapetrace%%": f'() {{ {sys.executable} -m shapetrace "$@"; }}',
    }
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_traces_from_pipes(folder: Path) -> None:
    shown = shell("shapetrace show a.json", folder)
    assert shown.startswith("0\n")
    different = shell("shapetrace diff a.json b.json", folder).splitlines()[4:]
    assert "First difference" in "".join(different)
    assert shell("cat a.json | shapetrace show /dev/stdin", folder) == shown
    assert shell("shapetrace show /dev/stdin < a.json", folder) == shown
    assert shell("shapetrace show <(cat a.json)", folder) == shown
    piped = shell("shapetrace diff <(cat a.json) <(cat b.json)", folder)
    assert piped.splitlines()[4:] == different
    # In another form than line by line.
    other = "python3 -m json.tool"
    piped = shell(f"shapetrace diff <({other} a.json) <({other} b.json)", folder)
    assert piped.splitlines()[4:] == different


@pytest.mark.slow
def test_captured_values_from_pipes(folder: Path) -> None:
    from shapetrace.hdf5.saver import H5PYSaverCallback

    with H5PYSaverCallback(folder / "run.h5") as saver:
        saver("x", list(range(3)), list(range(3)))
    shown = shell("shapetrace show run.h5", folder).splitlines()
    assert shown[0] == "0"
    for command in (
        "cat run.h5 | shapetrace show /dev/stdin",
        "shapetrace show /dev/stdin < run.h5",
        "shapetrace show <(cat run.h5)",
    ):
        assert shell(command, folder).splitlines()[2:] == shown[2:], command
    assert shell("shapetrace show <(head -c 999 run.h5)", folder).startswith(
        "2\nshapetrace: cannot read "
    )


def test_a_report_on_a_descriptor(folder: Path) -> None:
    diff = "shapetrace diff a.json b.json"
    printed = shell(diff, folder)
    assert printed.startswith("1\n")
    assert shell(f"{diff} -o /dev/stdout", folder) == printed
    assert shell(f"{diff} -o >(cat)", folder).splitlines()[1:] == printed.splitlines()[1:]
    # What the shell opened is written to, at the place that it has come to.
    (folder / "both").write_text("before\n")
    assert shell(f"(echo printed; {diff} -o /dev/stdout) >> both", folder) == "1\n"
    assert (folder / "both").read_text() == f"before\nprinted\n{printed[2:]}"


def test_a_pipe_stays_a_pipe(folder: Path) -> None:
    os.mkfifo("pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(Path("pipe").read_bytes()))
    reader.start()
    assert main(["diff", "-o", "pipe", "a.json", "b.json"]) == 1
    reader.join()
    assert b"First difference" in received[0]
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
