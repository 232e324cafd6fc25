"""The diff command as a process: exit codes, formats, files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shapetrace.events import codec
from tests.python.e2e.cli.programs import Outcome, environment, shapetrace
from tests.python.unit.comparing.worlds import Call, random_world

pytestmark = pytest.mark.e2e


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    good = random_world(5, with_values=True)
    bad = good.copy()
    bad.ops()[7].shape = (3, 3)
    gpu = good.copy()
    for call in [*gpu.ops(), *gpu.modules()]:
        call.device = "cuda:0"
    longer = good.copy()
    longer.calls.append(Call("item"))
    worlds = {"good": good, "same": good.copy(), "bad": bad, "gpu": gpu, "longer": longer}
    for name, world in worlds.items():
        codec.save(world.trace(), tmp_path / f"{name}.json")
    return tmp_path


def diff(folder: Path, *arguments: str) -> Outcome:
    return shapetrace("diff", *arguments, cwd=folder)


def test_runs_that_are_alike(folder: Path) -> None:
    outcome = diff(folder, "good.json", "same.json")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "Alike: " in outcome.stdout


def test_runs_that_differ(folder: Path) -> None:
    outcome = diff(folder, "good.json", "bad.json")
    assert (outcome.code, outcome.stderr) == (1, "")
    assert "First difference, after 7 ops that are alike: shape" in outcome.stdout
    assert "\x1b" not in outcome.stdout
    assert "\x1b" in diff(folder, "--color", "always", "good.json", "bad.json").stdout


def test_what_is_ignored_does_not_count(folder: Path) -> None:
    assert diff(folder, "good.json", "gpu.json").code == 1
    assert diff(folder, "--ignore", "dtype,device", "good.json", "gpu.json").code == 0
    assert diff(folder, "good.json", "bad.json", "--ignore", "shape").code == 0
    assert diff(folder, "good.json", "longer.json", "--ignore", "only").code == 0
    assert diff(folder, "good.json", "longer.json", "--ignore", "order").code == 1
    assert diff(folder, "good.json", "longer.json", "--modules-only").code == 0
    assert diff(folder, "good.json", "bad.json", "--modules-only").code == 1


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_the_file_has_what_would_be_printed(folder: Path, form: str) -> None:
    arguments = ("--format", form, "--width", "90", "good.json", "bad.json")
    printed = diff(folder, *arguments)
    written = diff(folder, *arguments, "-o", "diff.out")
    assert (written.code, written.stdout, written.stderr) == (1, "", "")
    assert (folder / "diff.out").read_text("utf-8") == printed.stdout
    if form == "json":
        document = json.loads(printed.stdout)
        assert document["differences"][document["first"]]["kind"] == "shape"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("good.json", "none.json"), "there is no file none.json; name a file that"),
        (("good.json", "."), ". is a folder; name a file that"),
        (("good.json", "text.json"), "text.json: this is not a Shapetrace trace; name a file that"),
        (("cut.json", "good.json"), "cut.json: this file is cut short or damaged at line"),
        (
            ("good.json", "bad.json", "-o", "no/where"),
            "cannot write no/where: its folder does not exist",
        ),
    ],
)
def test_trouble_is_said_in_one_line(folder: Path, arguments: tuple[str, ...], reason: str) -> None:
    (folder / "text.json").write_text("hello")
    (folder / "cut.json").write_text((folder / "good.json").read_text()[:3000])
    outcome = diff(folder, *arguments)
    assert (outcome.code, outcome.stdout) == (2, "")
    (line,) = outcome.stderr.splitlines()
    assert line.startswith(f"shapetrace: {reason}")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_what_cannot_be_printed_is_trouble_and_no_difference(folder: Path) -> None:
    command = [sys.executable, "-m", "shapetrace", "diff", "good.json", "bad.json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=folder, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("shapetrace: cannot write to stdout: ")
    assert line.endswith("; write it to a file with -o")
