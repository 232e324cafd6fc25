"""Bytes are read where a value's own are, and never where they may be gone."""

from __future__ import annotations

import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from shapetrace.inspecting.memory import is_held, may_be_read
from shapetrace.variables.loaded import loaded_tensors
from shapetrace.variables.memories import remember
from shapetrace.variables.tensor_memories import TensorMemory
from tests.python.unit.variables.programs import TORCH, Program
from tests.support.forked import run_forked

Load = Callable[..., Program]


def test_views_are_read_where_they_begin(program: Load) -> None:
    it = program("""
        @var_tracker("v", handler=told)
        def f():
            base = torch.zeros(10)
            v = base[5:]  # slice
            v += 1  # added
            v[2] = 7  # item
            base[0] = 9
            w = torch.arange(10.)
            v = w[:5]  # first
            v = w[5:]  # second
            for v in torch.arange(4.).view(2, 2):  # row
                v /= v.sum() + 1  # divided
            for v in torch.ones(4, 2).chunk(2):  # chunk
                pass
    """)
    it.module.f()
    assert [f"{line.split()[0]} {line.split()[-1]}" for line in it.history()] == [
        *("slice new", "added values", "item values", "first values", "second values"),
        *("row shape", "divided values", "row values", "divided values", "chunk shape"),
    ]


def test_another_part_of_the_same_storage_is_another(program: Load) -> None:
    it = program("""
        @var_tracker("t", handler=told)
        def f():
            base = torch.arange(10.)
            t = torch.empty(0)
            t.data = base[:5]
            t.data = base[5:]  # other
            t.data = base[5:]
            return t
    """)
    it.module.f()
    assert it.history()[-1] == "other t f32[5] -> f32[5] values"


GONE = {
    "shared memory": """
        shm = SharedMemory(create=True, size=1 << 16)
        a = np.ndarray((1 << 14,), np.float32, buffer=shm.buf)
        a[:] = 1
        shm.close()
        shm.unlink()
    """,
    "a bytearray": """
        held = bytearray(1 << 24)
        a = np.ndarray((1 << 24,), np.uint8, buffer=held)
        held.clear()
    """,
    "a mapped file": """
        a = np.memmap("mapped", np.uint8, "w+", shape=1 << 24)
        a._mmap.close()
    """,
    "a file that is cut": """
        a = np.memmap("mapped", np.uint8, "w+", shape=1 << 16)
        os.truncate("mapped", 0)
    """,
    "a slice of shared memory": """
        shm = SharedMemory(create=True, size=1 << 16)
        a = np.ndarray((1 << 14,), np.float32, buffer=shm.buf)[5:].reshape(-1, 1)
        shm.close()
        shm.unlink()
    """,
    "a tensor over shared memory": """
        shm = SharedMemory(create=True, size=1 << 16)
        with torch.inference_mode():
            a = torch.from_numpy(np.ndarray((1 << 14,), np.float32, buffer=shm.buf))
            shm.close()
            shm.unlink()
    """,
    "a storage that is freed": """
        a = torch.ones(1 << 22)
        a.untyped_storage().resize_(0)
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", ", stats=True", ", tolerance=0.1"])
@pytest.mark.parametrize("name", GONE)
def test_memory_that_is_gone_is_not_read(name: str, options: str, tmp_path: Path) -> None:
    body = textwrap.indent(textwrap.dedent(GONE[name]), "    ")
    program = (
        TORCH
        + "import os\nfrom multiprocessing.shared_memory import SharedMemory\n"
        + f"@var_tracker('a'{options})\ndef f():\n{body}\n    size = len(a)\n    return size\n"
        + "print('through', f())\n"
    )
    outcome = run_forked(program, tmp_path)
    assert outcome.code == 0, outcome.stderr
    assert "through" in outcome.stdout


def test_what_holds_its_memory_is_read(tmp_path: Path) -> None:
    own = np.arange(6.0)
    mapped = np.memmap(tmp_path / "mapped", np.uint8, "w+", shape=4)
    released = memoryview(bytearray(4))
    view = np.ndarray((4,), np.uint8, buffer=released)
    assert all(
        is_held(array, np.ndarray)
        for array in (
            *(own, own[2:], own.reshape(2, 3).T, np.ma.masked_array(own), own.view(np.matrix)),
            *(torch.ones(3).numpy(), np.frombuffer(b"1234", np.uint8)),
            np.frombuffer(bytearray(4), np.uint8),
        )
    )
    assert not is_held(mapped, np.ndarray)
    assert not is_held(view, np.ndarray)
    assert may_be_read(mapped[1:], np.ndarray)
    mapped._mmap.close()  # type: ignore[attr-defined]  # as a program might
    assert not may_be_read(mapped, np.ndarray)


def test_a_storage_that_another_thread_takes_away_is_held_while_it_is_read() -> None:
    tensors = loaded_tensors()
    assert tensors is not None
    parameter = torch.nn.Parameter(torch.empty(1 << 20))
    interval = sys.getswitchinterval()
    ends = threading.Event()

    def exchange() -> None:
        while not ends.is_set():
            parameter.data = torch.empty(1 << 20)

    thread = threading.Thread(target=exchange)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(20_000):
            TensorMemory(parameter, tensors)
    finally:
        ends.set()
        thread.join()
        sys.setswitchinterval(interval)


def test_an_array_that_is_followed_can_be_resized(program: Load) -> None:
    it = program("""
        @var_tracker("a", handler=told)
        def f():
            a = np.zeros(4)  # made
            a.resize(8, refcheck=False)  # resized
            a[1] = 1  # written
            return a
    """)
    it.module.f()
    assert it.history() == [
        "made a nothing -> f64[4] new",
        "resized a f64[4] -> f64[8] shape",
        "written a f64[8] -> f64[8] values",
    ]


def test_an_array_is_itself_and_no_other() -> None:
    one, other = np.zeros(3), np.zeros(3)
    memory = remember(one)
    assert memory.is_of(one)
    assert not memory.is_of(other)
    assert not memory.is_of(None)
    view = one[:]
    assert remember(view).is_of(view)
    assert not remember(view).is_of(one)
