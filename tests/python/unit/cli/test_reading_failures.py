"""Commands that read traces, where something of ours is wrong."""

from __future__ import annotations

import os
import re
import resource
import threading
from pathlib import Path

import pytest

from shapetrace import views
from shapetrace.cli.main import main
from shapetrace.comparing import compare
from shapetrace.events import codec
from tests.python.unit.comparing.worlds import random_world


@pytest.mark.parametrize("command", ["show", "diff"])
def test_a_mistake_of_ours_is_told_on_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    path = tmp_path / "a.json"
    codec.save(random_world(1).trace(), path)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("too\nlarge")

    monkeypatch.setattr(compare, "compare", fail)
    monkeypatch.setattr(views, "render", fail)
    files = [str(path)] * (1 if command == "show" else 2)
    assert main([command, *files]) == 2
    shown = capsys.readouterr()
    line = fail.__code__.co_firstlineno + 1
    where = f"({Path(__file__).name}:{line})"
    assert shown.err == (
        f"shapetrace: cannot {command} {' and '.join(files)}: MemoryError: 'too\\nlarge' {where}; "
        "a trace may be damaged: record it again. If that fails too, it is a fault of Shapetrace: "
        "report this line\n"
    )
    assert not shown.out


@pytest.mark.slow
@pytest.mark.parametrize("view", ["tree", "listing", "table", "markdown", "json"])
def test_numbers_of_a_damaged_trace_that_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], view: str
) -> None:
    path = tmp_path / "a.json"
    codec.save(random_world(5, with_values=True).trace(), path)
    text = path.read_text()
    changed = re.sub(r'"count":\d+,"', '"count":0,"', text)
    changed = re.sub(r'"looked_at":\d+', '"looked_at":0', changed)
    assert changed != text
    path.write_text(changed)
    assert main(["show", "--view", view, str(path)]) == 0
    shown = capsys.readouterr()
    assert shown.out
    assert not shown.err


@pytest.mark.parametrize("command", ["show", "diff"])
def test_a_device_without_an_end_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    path = tmp_path / "a.json"
    codec.save(random_world(1).trace(), path)
    files = ["/dev/zero"] if command == "show" else ["/dev/zero", str(path)]
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as stream:
        pages = int(stream.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 28), limits[1]))
    try:
        assert main([command, *files]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    error = capsys.readouterr().err
    assert error.startswith("shapetrace: /dev/zero: this is not a Shapetrace trace; ")
    assert error.count("\n") == 1


def write_all(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)


def test_a_dash_is_what_is_given_on_stdin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    codec.save(random_world(1).trace(), path)
    stdin = os.dup(0)
    try:
        for arguments in (["show", "-"], ["diff", "-", str(path)], ["diff", str(path), "-"]):
            reader, writer = os.pipe()
            os.dup2(reader, 0)
            os.close(reader)
            thread = threading.Thread(target=write_all, args=(writer, path.read_bytes()))
            thread.start()
            assert main(arguments) == 0
            thread.join()
            assert capsys.readouterr().err == ""
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)
