"""Arrays whose memory is gone: reading one would end the process, so each program is a process."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

from shapetrace import H5PYSaverCallback, ModelTracer
from shapetrace.capture.copies import copied
from shapetrace.inspecting.memory import is_held, may_be_read
from tests.support.forked import run_forked

PROGRAM = """
import mmap, sys
from multiprocessing.shared_memory import SharedMemory
import numpy as np
from torch import nn
from shapetrace import ModelTracer

class Model(nn.Module):
    def forward(self, x):
        a = None
{body}
        size = len(a)
        a = None
        return x

shown = []
def show(name, value, iteration):
    shown.append(value is None or value.sum() >= 0)
    return value

paths, callbacks = {paths!r}, {callbacks}
with ModelTracer(Model(), paths, pre_save_callbacks=callbacks) as tracer:
    for _ in range(2):
        tracer.model(1)
for name, entry in tracer.results.items():
    print(name, entry.values)
for line in tracer.problems:
    print(line)
"""

GONE = {
    "shared memory": """
        memory = SharedMemory(create=True, size=8192)
        a = np.ndarray((8192,), np.uint8, buffer=memory.buf)
        a[:] = 1
        memory.close()
        memory.unlink()
    """,
    "a mapped file": """
        a = np.memmap("mapped", np.uint8, "w+", shape=(8192,))
        a[:] = 1
        a._mmap.close()
    """,
    "a record of a mapped file": """
        a = np.memmap("mapped", "u1,u2", "w+", shape=(4096,))[7:8]
        memory = a.base if type(a.base) is mmap.mmap else a._mmap
        memory.close()
    """,
}

REASON = "the memory that the array shows is another's, and may be gone"


def outcome_of(body: str, paths: list[str], folder: Path, callbacks: str = "[]") -> list[str]:
    indented = textwrap.indent(textwrap.dedent(body), " " * 8)
    outcome = run_forked(PROGRAM.format(body=indented, paths=paths, callbacks=callbacks), folder)
    assert outcome.code == 0, outcome.stderr
    return outcome.stdout.splitlines()


@pytest.mark.parametrize("path", ["forward.a", "forward.a.0"])
@pytest.mark.parametrize("name", GONE)
def test_it_is_told_of_and_not_read(name: str, path: str, tmp_path: Path) -> None:
    lines = outcome_of(GONE[name], [path], tmp_path)
    assert f"{path} is not captured: {REASON}" in lines


def test_what_was_there_before_is_kept(tmp_path: Path) -> None:
    body = GONE["shared memory"].replace("size=8192", "size=2").replace("8192", "2")
    assert outcome_of(body, ["forward.a"], tmp_path)[0] == (
        "forward.a [None, array([0, 0], dtype=uint8), array([1, 1], dtype=uint8), None, "
        "array([0, 0], dtype=uint8), array([1, 1], dtype=uint8), None]"
    )


def test_callbacks_are_not_given_it(tmp_path: Path) -> None:
    lines = outcome_of(GONE["shared memory"], ["forward.a"], tmp_path, "[show]")
    assert f"forward.a is not captured: {REASON}" in lines


def test_what_holds_it_says_so(tmp_path: Path) -> None:
    body = GONE["shared memory"] + "\n        b = [1, a, a[3:].reshape(-1, 1)]\n"
    lines = outcome_of(body, ["forward.b"], tmp_path)
    assert lines == [f"forward.b {[[1, f'<{REASON}>', f'<{REASON}>']] * 2}"]


def test_what_is_there_is_captured(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "mapped", np.uint8, "w+", shape=4)
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(4), 2)
    given = [mapped, windows, np.from_dlpack(torch.ones(2)), np.zeros(2, "u1,u2")[1]]

    class Model(torch.nn.Module):
        def forward(self, a: object) -> object:
            return a

    with ModelTracer(Model(), ["forward"]) as tracer:
        for each in given:
            tracer.model(each)
    assert tracer.problems == []
    assert len(tracer.results["forward"].values) == len(given)
    assert is_held(windows, np.ndarray)
    assert not may_be_read(np.ndarray((2,), np.uint8, buffer=bytearray(2)), np.ndarray)


def test_a_record_is_copied() -> None:
    array = np.zeros(2, "u1,u2")
    copy = copied(array[1])
    array[1] = (3, 4)
    assert copy.item() == (0, 0)


def test_a_file_is_not_given_it(tmp_path: Path) -> None:
    saver = H5PYSaverCallback(tmp_path / "run.h5")
    saver("a", [np.ndarray((2,), np.uint8, buffer=bytearray(2))], [1], [0])
    assert saver.problems == [f"a: not saved: {REASON}"]
    saver.close()


FREED = {
    "all of it": "a.untyped_storage().resize_(0)",
    "the end of a mapped file": """
        open("mapped", "wb").write(bytes(1 << 20))
        a = torch.from_file("mapped", size=1 << 18)
        os.truncate("mapped", 4096)
    """,
}


@pytest.mark.parametrize("callbacks", ["[]", "[show]"])
@pytest.mark.parametrize("how", FREED)
def test_what_was_freed_is_told_of_and_not_read(how: str, callbacks: str, tmp_path: Path) -> None:
    body = "import os, torch\na = torch.ones(1024, 1024)\n" + textwrap.dedent(FREED[how])
    lines = outcome_of(body + "\nb = a", ["forward.b"], tmp_path, callbacks)
    mapped = "mapped" in how
    reason = "its memory was another's, and is gone" if mapped else "its memory was given back"
    assert f"forward.b is not captured: {reason}" in lines
