"""What is wrong on our side is said in one line, before the program starts, with exit code 2."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.python.e2e.cli.programs import NOT_IMPORTED, Outcome, shapetrace

pytestmark = pytest.mark.e2e


def refused(*arguments: str, cwd: Path) -> str:
    """The one line that says why, without our name."""
    outcome = shapetrace(*arguments, cwd=cwd)
    assert outcome.code == 2
    assert outcome.stdout == ""
    lines = outcome.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("shapetrace: ")
    return lines[0].removeprefix("shapetrace: ")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text("print('it ran')\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    return tmp_path


def test_missing_script(folder: Path) -> None:
    path = folder / "nothing.py"
    assert refused("run", "nothing.py", "--epochs", "1", cwd=folder) == (
        f"can't open file '{path}': [Errno 2] No such file or directory"
    )


def test_unusable_scripts(folder: Path) -> None:
    assert "[Errno 20] Not a directory" in refused("run", "script.py/x", cwd=folder)
    assert "File name too long" in refused("run", "x" * 300, cwd=folder)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-m", "no_module"], "No module named no_module"),
        (["-m", "package.no_module"], "No module named package.no_module"),
        (["-m", ".relative"], "Relative module names not supported"),
        (["-m", "package"], "'package' is a package and cannot be directly executed"),
        (["-m", "script.py"], "Try using 'script' instead of 'script.py' as the module name."),
        (["empty"], "can't find '__main__' module in "),
        (["-"], "a program from standard input cannot be traced; name a file"),
    ],
)
def test_programs_that_cannot_be_run(arguments: list[str], reason: str, folder: Path) -> None:
    if arguments == ["-m", "script.py"]:
        (folder / "script.py").write_text("")
    assert reason in refused("run", *arguments, cwd=folder)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("empty", "it is a folder; name a file in it"),
        ("nowhere/run.json", "its folder does not exist; make it first, or choose another place"),
        ("script.py/run.json", "its folder does not exist; make it first, or choose another place"),
        ("x" * 300, "file name too long; choose another place"),
    ],
)
def test_files_that_cannot_be_written(file: str, reason: str, folder: Path) -> None:
    assert refused("run", "-o", file, "script.py", cwd=folder) == f"cannot write {file}: {reason}"


def test_a_file_is_tried_without_being_changed(folder: Path) -> None:
    (folder / "run.json").write_text("as it was")
    before = sorted(os.listdir(folder))
    assert "nothing.py" in refused("run", "-o", "run.json", "nothing.py", cwd=folder)
    assert (folder / "run.json").read_text() == "as it was"
    assert sorted(os.listdir(folder)) == before


def test_a_program_without_torch_leaves_a_file_that_says_so(folder: Path) -> None:
    outcome = shapetrace("run", "-o", "run.json", "script.py", "a", cwd=folder)
    assert outcome == Outcome(
        0, "it ran\n", f"shapetrace: wrote run.json: 0 forward passes, 0 ops\n{NOT_IMPORTED}"
    )
    trace = json.loads((folder / "run.json").read_text())
    assert trace["run"]["argv"] == ["script.py", "a"]
    assert trace["coverage"] == [
        {"reason": NOT_IMPORTED.removeprefix("shapetrace: ")[:-1], "where": "", "count": 1}
    ]
    shown = shapetrace("show", "run.json", cwd=folder)
    assert shown.code == 0
    assert "the program did not import torch" in shown.stdout


def test_the_program_changes_directory(folder: Path) -> None:
    (folder / "script.py").write_text("import os; os.chdir('empty')\n")
    assert shapetrace("run", "-o", "run.json", "script.py", cwd=folder).code == 0
    assert (folder / "run.json").exists()


def test_a_file_that_cannot_be_written_any_more(folder: Path) -> None:
    (folder / "script.py").write_text("import os; os.rmdir('empty'); print('it ran')\n")
    outcome = shapetrace("run", "-o", "empty/run.json", "script.py", cwd=folder)
    assert outcome.code == 2
    assert outcome.stdout == "it ran\n"
    assert outcome.stderr.startswith(f"shapetrace: cannot write {folder / 'empty' / 'run.json'}: ")


def test_devices_stay_what_they_are(folder: Path) -> None:
    assert shapetrace("run", "-o", os.devnull, "script.py", cwd=folder).code == 0
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no file trace.json"),
        ("", "trace.json: this file is empty; record it again"),
        ("{}", "trace.json: this is not a Shapetrace trace"),
        ('{"format": "shapetrace/1", "run"', "trace.json: this file is cut short or damaged"),
        ('{"format": "shapetrace/99"}', "trace.json: this was written by a newer Shapetrace"),
        ("import torch", "trace.json: this is not a Shapetrace trace"),
    ],
)
def test_trace_files_that_cannot_be_shown(content: str | None, reason: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "trace.json").write_text(content)
    assert reason in refused("show", "trace.json", cwd=tmp_path)


def test_usage(tmp_path: Path) -> None:
    def last_line(*arguments: str) -> str:
        outcome = shapetrace(*arguments, cwd=tmp_path)
        assert outcome.code == 2
        assert outcome.stderr.startswith("usage: python -m shapetrace")
        return outcome.stderr.splitlines()[-1]

    assert last_line("train.py").endswith(
        "unknown command 'train.py'; `python -m shapetrace run PROGRAM` runs a program"
    )
    assert last_line("run", "--view", "tree").endswith(
        "name a program to run: a script, or -m and a module"
    )
    assert last_line("run", "--stop-after-trace", "--passes", "all", "x.py").endswith(
        "--stop-after-trace needs a number of passes: use --passes N"
    )


def test_help_and_version(tmp_path: Path) -> None:
    assert shapetrace("--version", cwd=tmp_path) == Outcome(0, "shapetrace 0.1.0\n", "")
    for arguments in (["--help"], ["run", "--help"], ["show", "--help"]):
        outcome = shapetrace(*arguments, cwd=tmp_path, extra={"COLUMNS": "100"})
        assert outcome.code == 0
        assert "examples:\n  python -m shapetrace " in outcome.stdout
        assert max(len(line) for line in outcome.stdout.splitlines()) <= 100
