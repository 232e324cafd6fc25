"""Whatever reads numbers survives every odd tensor, and leaves it as it was.

The matrix is made once, in a process of its own, which has a fork for each tensor.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch

from tests.python.boundaries.rule import BACKEND, imports_of
from tests.python.unit.odd_tensors.consumers import CONSUMERS
from tests.python.unit.odd_tensors.tensors import LOST, TENSORS, nothing

pytestmark = pytest.mark.slow

Outcomes: TypeAlias = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What came of each pair, by tensor and consumer."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.python.unit.odd_tensors.matrix"],
        cwd=tmp_path_factory.mktemp("odd"),
        env={"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "HOME": str(Path.home())},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    found: Outcomes = {}
    for line in result.stdout.splitlines():
        tensor, consumer, outcome = json.loads(line)
        found.setdefault(tensor, {})[consumer] = outcome
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TENSORS)
def test_nothing_dies_or_raises(outcomes: Outcomes, name: str) -> None:
    found = outcomes[name]
    assert found.keys() == CONSUMERS.keys()
    bad = ("died: ", "raised: ", "changed: ", "not made: ", "not used")
    assert {key: each for key, each in found.items() if each.startswith(bad)} == {}


@pytest.mark.parametrize("name", LOST)
def test_what_is_gone_is_told_of_and_not_read(outcomes: Outcomes, name: str) -> None:
    found, reason = outcomes[name], LOST[name]
    told: dict[str, Any] = {key: found[key] for key in _TOLD}
    assert told == {key: each.format(reason) for key, each in _TOLD.items()}


def test_no_number_is_counted_where_there_are_none(outcomes: Outcomes) -> None:
    assert outcomes["meta"]["counting"] == "False"


READS = {
    f"shapetrace.inspecting.{name}" for name in ("memory", "readable", "stable_reads", "sampling")
}
"""What somebody imports who reads numbers."""


def test_whoever_reads_numbers_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = BACKEND / "shapetrace"
    readers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if path.parent.name != "inspecting"
        and any(each.startswith(read) for each in imports_of(path, root) for read in READS)
    }
    ran: set[str] = set()

    def hear(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            ran.add(frame.f_code.co_filename)

    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for consume in CONSUMERS.values():
            sys.setprofile(hear)
            try:
                consume(torch.ones(2, 3), nothing)
                consume(np.ones((2, 3)), nothing)
            finally:
                sys.setprofile(None)
    assert readers
    assert {each for each in readers if str(root / each) not in ran} == set()


@pytest.mark.timeout(900)
def test_memory_that_another_thread_frees_meanwhile(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.python.unit.odd_tensors.races", *CONSUMERS],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(sys.path), "MALLOC_MMAP_THRESHOLD_": str(1 << 16)},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout.split()) == (0, [*CONSUMERS]), result.stderr


_TOLD = {
    "copying": "refused: {}",
    "tracing_a_model": "is not captured: {}",
    "tracing_a_model_with_callbacks": "['forward.b']",
    "summarizing": "False",
    "counting": "False",
    "saving_to_a_file": "a: not saved: {}",
    "stacking": "False",
}

_ORDINARY = [
    *("over NumPy's memory", "over a buffer", "in shared memory", "over an array for reading"),
    *("view of what is left", "empty of a freed one", "zero-size", "expanded", "conjugate view"),
    *("negative view", "zero tensor", "complex32", "inference tensor", "overlapping strides"),
    *("bfloat16", "float8_e4m3fn", "uint4", "uint16", "sparse", "CSR", "nested", "jagged"),
    *("quantized", "wrapper", "DTensor", "MKL-DNN", "as a subclass", "meta"),
]


@pytest.mark.parametrize("name", _ORDINARY)
def test_what_is_there_is_captured(outcomes: Outcomes, name: str) -> None:
    assert outcomes[name]["tracing_a_model"] == "captured"
