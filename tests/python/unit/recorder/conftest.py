"""Runs programs with and without the recorder, and watches what every test leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.events.model import Trace
from tests.support.process_groups import process_group
from tests.support.recorder import Harmless, Program, Traced, check_harmless, faults_of
from tests.support.reference.remains import Surroundings


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test after which the process is not as it was before."""
    model = nn.Linear(1, 1)
    before = Surroundings.now(model)
    yield
    after = Surroundings.now(model)
    # A part of torch that the test imported may have brought filters; Dynamo patches nn.Module for
    # good when it first looks at one. Its progress bar has a thread of its own, as what compiles in
    # other processes has in torch 2.4.
    theirs = {
        each.ident
        for each in threading.enumerate()
        if each.name == "tqdm_monitor" or each.name.endswith("(_read_thread)")
    }
    patched = {"__init__", "__setstate__", "___needs_generation_tag_patch"}
    # Functions that are followed since an earlier test wait for Dynamo until it is imported.
    arrived = {
        finder
        for finder in before.imports[1]
        if "shapetrace.recorder.arrival" in finder[1] and finder not in after.imports[1]
    }
    before, after = (
        replace(
            each,
            imports=(
                each.imports[0],
                tuple(finder for finder in each.imports[1] if finder not in arrived),
                each.imports[2],
            ),
            warnings=(*each.warnings[:2], ()),
            threads=each.threads - theirs,
            methods_of_module=tuple(
                item for item in each.methods_of_module if item[0] not in patched
            ),
        )
        for each in (before, after)
    )
    assert before.changes(after) == []


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU())


@pytest.fixture
def x() -> torch.Tensor:
    return torch.ones(2, 4)


@pytest.fixture
def single_process_group() -> Iterator[None]:
    """A process group of one, which talks to nobody."""
    with process_group(1):
        yield


@pytest.fixture
def harmless(tmp_path: Path) -> Harmless:
    """Trace a program, given as text, and fail where that makes any difference to it."""

    def run(text: str, **options: Any) -> Trace:
        return check_harmless(Program.write(text, tmp_path), **options)

    return run


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    """Trace a program, given as text, that must not fail."""

    def run(text: str, **options: Any) -> Trace:
        recording = shapetrace.trace(**options)
        outcome = Program.write(text, tmp_path).run(recording)
        assert outcome.traceback == ""
        assert not faults_of(recording.trace), faults_of(recording.trace)
        return recording.trace

    return run
