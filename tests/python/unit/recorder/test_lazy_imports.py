"""What torch computes while it imports a part of itself, amid a call, is not recorded."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import shapetrace
from shapetrace.recorder import callsite
from tests.support.recorder import LEVELS, faults_of

TABLES = """
import torch
from torch import nn

def filled():
    return torch.ones(3) * 2

TABLE = filled() @ torch.ones(3)
LINEAR = nn.Linear(2, 2)(torch.ones(2))
"""

LAZY = """
def double(x):
    import lazily_imported_tables
    return x * 2
"""


@pytest.fixture
def lazy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A part of torch that imports another when it is first called."""
    (tmp_path / "lazily_imported_tables.py").write_text(TABLES, "utf-8")
    (tmp_path / "lazily_importing.py").write_text(LAZY, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "lazily_imported_tables", raising=False)
    monkeypatch.delitem(sys.modules, "lazily_importing", raising=False)
    import lazily_importing  # type: ignore[import-not-found]

    module: ModuleType = lazily_importing
    return module


def in_torch(monkeypatch: pytest.MonkeyPatch, folder: str | Path) -> None:
    """Have a folder taken for torch's."""
    both = (callsite.TORCH_DIRECTORY, os.path.realpath(folder) + os.sep)
    monkeypatch.setattr(callsite, "TORCH_DIRECTORY", both)


@pytest.mark.parametrize("level", LEVELS)
def test_it_is_not_recorded(
    level: str, lazy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_torch(monkeypatch, tmp_path)
    x = torch.ones(2, 4)
    with shapetrace.trace(level=level) as recording:
        first = lazy.double(x)
        lazy.double(first)
    names = [op.name for op in recording.ops if not op.name.startswith("aten")]
    assert names == ["torch.Tensor.mul", "torch.Tensor.mul"]
    assert recording.modules == ()
    assert faults_of(recording.trace) == []


def test_a_module_of_the_program_is_recorded(lazy: ModuleType) -> None:
    with shapetrace.trace() as recording:
        lazy.double(torch.ones(2, 4))
    functions = {op.function for op in recording.ops}
    assert {"filled", "<module>", "double"} <= functions
    assert len(recording.modules) == 1
    files = {os.path.basename(frame.file) for frame in recording.trace.frames}
    assert not any(file.startswith("<frozen importlib") for file in files)
