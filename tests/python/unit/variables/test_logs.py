"""Files of the logger: one for each process and thread, made when they are first written to."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shapetrace import h4logger, log2file, logger
from tests.python.unit.variables.programs import Program

Load = Callable[..., Program]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The logger is as it was afterwards."""
    before = logger.handlers[:]
    yield
    for handler in logger.handlers[:]:
        if handler not in before:
            logger.removeHandler(handler)
            handler.close()


def texts(folder: Path) -> dict[str, list[str]]:
    return {
        path.name: [line.split(" - ", 1)[1] for line in path.read_text("utf-8").splitlines()]
        for path in folder.iterdir()
    }


def name_of(thread: int | None = None) -> str:
    return f"process_{os.getpid()}_thread_{thread or threading.get_ident()}.log"


def test_files_are_made_when_written_to_one_for_each_thread(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    handler = h4logger(folder)
    assert isinstance(handler, logging.Handler)
    logger.addHandler(handler)
    assert not folder.exists()
    logger.info("one → %d", 1)
    threads: list[int] = []

    def work() -> None:
        threads.append(threading.get_ident())
        logger.warning("two")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert texts(folder) == {name_of(): ["INFO - one → 1"], name_of(threads[0]): ["WARNING - two"]}


def test_log2file_prints_and_writes_to_the_default_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shapetrace.variables.logs._default", None)
    log2file("xx is", 3)
    log2file("100 %d")
    assert capsys.readouterr().out == "xx is 3\n100 %d\n"
    assert texts(tmp_path / "shapetrace-logs") == {name_of(): ["INFO - xx is 3", "INFO - 100 %d"]}


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAPETRACE_LOGS", str(tmp_path / "here"))
    monkeypatch.setattr("shapetrace.variables.logs._default", None)
    log2file("x")
    assert texts(tmp_path / "here") == {name_of(): ["INFO - x"]}


def test_the_tree_goes_to_the_logger_too(
    tmp_path: Path, program: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    it = program("""
        @var_tracker("x")
        def f(x):
            x = x + 1  # more
            return x
    """)
    logger.addHandler(h4logger(tmp_path / "logs"))
    it.module.f(1)
    (lines,) = texts(tmp_path / "logs").values()
    place = f"{it.path.name}:{it.line('more')}"
    assert lines[1:3] == ["INFO - ├─ in   x  1", f"INFO - ├─ {place}  x  1 → 2"]
    assert "x  1 → 2" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_file_of_its_own(tmp_path: Path) -> None:
    logger.addHandler(h4logger(tmp_path / "logs"))
    logger.info("parent")
    child = os.fork()
    if not child:
        logger.info("child")
        os._exit(0)
    os.waitpid(child, 0)
    logger.info("parent again")
    found = texts(tmp_path / "logs")
    assert found.pop(name_of()) == ["INFO - parent", "INFO - parent again"]
    assert [*found.values()] == [["INFO - child"]]
