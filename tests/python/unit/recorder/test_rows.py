"""Following a recording row by row comes to the same as looking at the whole of it at the end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from shapetrace._errors import TraceFileError
from shapetrace.events.fingerprint import CallFingerprints
from shapetrace.events.model import ModuleCall, Op, Trace, Variable
from shapetrace.events.rows import RowReader
from shapetrace.events.update import Update
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.rows import MOST_ROWS, RowWriter
from shapetrace.recorder.session import Recorder
from tests.support.recorder import Program


class Follower:
    """Reads what a recorder writes, through JSON, and puts the updates together."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.writer = RowWriter(recorder)
        self.reader = RowReader()
        self.modules: dict[int, ModuleCall] = {}
        self.ops: dict[int, Op] = {}
        self.variables: dict[int, Variable] = {}
        self.fingerprints: dict[int, tuple[CallFingerprints, ...]] = {}
        self.updates: list[Update] = []

    def read(self, *, final: bool = False, changes: bool = False) -> Update | None:
        """The next message as an update."""
        message = self.writer.write_changes() if changes else self.writer.write(final)
        if message is None:
            return None
        update = self.reader.read(json.loads(json.dumps(message)))
        self.modules |= {module.id: module for module in update.modules}
        self.ops |= {op.id: op for op in update.ops}
        self.variables |= update.variables
        self.fingerprints |= update.fingerprints
        for number, count in update.counts.items():
            if count == 0:
                del self.ops[number]
            elif number in self.ops:
                self.ops[number] = replace(self.ops[number], count=count)
            else:
                self.modules[number] = replace(self.modules[number], count=count)
        self.updates.append(update)
        return update

    def read_all(self, *, final: bool = False) -> None:
        """Everything there is."""
        while self.read(final=final) is not None:
            pass
        self.read(changes=True)

    def differences(self, trace: Trace) -> list[str]:
        """What it knows otherwise than a snapshot."""
        ours: list[ModuleCall | Op] = [
            *self.modules.values(),
            *sorted(self.ops.values(), key=lambda op: op.id),
        ]
        ours = [replace(it, fingerprints=self.fingerprints.get(it.id, ())) for it in ours]
        theirs: list[ModuleCall | Op] = [*trace.modules, *trace.ops]
        found = [
            f"{a!r}\n  {b!r}" for a, b in zip(ours, theirs, strict=True) if _bare(a) != _bare(b)
        ]
        known = {_variable(each) for each in self.variables.values()}
        return found + sorted(known ^ {_variable(each) for each in trace.variables})


def _bare(call: ModuleCall | Op) -> Any:
    """A call without the numbers of its frames, which depend on the order of writing."""
    return replace(call, stack=(len(call.stack),) if call.stack else ())


def _variable(variable: Variable) -> str:
    return repr(variable)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.inner(x).relu()
        return torch.maximum(h, x)


def recording(level: str = "torch", fingerprint: bool = False) -> Recorder:
    recorder = Recorder(RecorderOptions(level=level, fingerprint=fingerprint))
    recorder.start()
    return recorder


@pytest.mark.slow
@pytest.mark.parametrize("fingerprint", [False, True])
@pytest.mark.parametrize("level", ["torch", "aten"])
def test_a_recording_that_is_followed_is_the_snapshot_at_its_end(
    level: str, fingerprint: bool
) -> None:
    model = nn.Sequential(Block(), Block())
    recorder = recording(level, fingerprint)
    try:
        follower = Follower(recorder)
        for length in [2, 3, 2, *range(4, 40)]:
            out = model(torch.ones(length, 4)).sum()
            follower.read_all()
            out.backward()
            follower.read()
    finally:
        recorder.stop()
    follower.read_all(final=True)
    assert follower.differences(recorder.snapshot()) == []


def test_following_in_the_middle_of_a_module_call_brings_its_output_later() -> None:
    recorder = recording()
    try:
        follower = Follower(recorder)
        seen: list[tuple[Any, ...]] = []

        class Watched(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = x * 2
                follower.read_all()
                seen.append(next(iter(follower.modules.values())).outputs)
                return y

        Watched()(torch.ones(3))
        follower.read_all()
    finally:
        recorder.stop()
    assert seen == [()]
    assert [len(module.outputs) for module in follower.modules.values()] == [1]


def test_a_comparison_waits_until_it_is_known_whose_value_it_is() -> None:
    recorder = recording()
    try:
        follower = Follower(recorder)
        _ = torch.ones(2) > torch.zeros(2)
        follower.read()
        assert [op.label for op in follower.ops.values()] == ["ones(2)", "zeros(2)"]
        follower.read()
        assert [op.label for op in follower.ops.values()] == ["ones(2)", "zeros(2)", ">"]
    finally:
        recorder.stop()


def test_counts_alone_are_told_as_counts() -> None:
    block = Block()
    recorder = recording()
    try:
        follower = Follower(recorder)
        for _ in range(2):
            block(torch.ones(2, 4))
        follower.read_all()
        for _ in range(3):
            block(torch.ones(2, 4))
        update = follower.read(changes=True)
    finally:
        recorder.stop()
    assert update is not None
    # Called from another loop: the calls are at another place and new; nothing old has changed.
    assert (update.modules, update.ops, dict(update.counts)) == ((), (), {})

    recorder = recording()
    try:
        follower = Follower(recorder)
        for index in range(5):
            block(torch.ones(2, 4))
            if index == 1:
                follower.read_all()
        update = follower.read(changes=True)
    finally:
        recorder.stop()
    assert update is not None
    assert (update.modules, update.ops) == ((), ())
    assert set(update.counts.values()) == {5}


def test_a_widening_variable_is_one_variable() -> None:
    recorder = recording()
    try:
        follower = Follower(recorder)

        def grow(length: int) -> torch.Tensor:
            cache = torch.ones(length, 2)
            return cache

        for length in range(1, 60):
            grow(length)
            follower.read_all()
    finally:
        recorder.stop()
    named = [each for each in follower.variables.values() if each.name == "cache"]
    # Sixteen apart, what was looked up when the next was met, and the one that widens.
    assert len(named) == 18
    assert "high=59" in repr(named[-1].tensor)


def test_the_source_that_ran_is_told_with_its_text(tmp_path: Path) -> None:
    program = Program.write("def main():\n    größe = torch.ones(2)\n    return größe\n", tmp_path)
    names = program.load()
    recorder = recording()
    try:
        names["main"]()
    finally:
        recorder.stop()
    follower = Follower(recorder)
    follower.read_all(final=True)
    sources = [source for update in follower.updates for source in update.sources]
    own = next(source for source in sources if source.path == str(program.path))
    assert own.text == program.path.read_text("utf-8")


@pytest.mark.slow
def test_no_message_has_more_rows_than_it_may() -> None:
    recorder = recording()
    try:
        lines = "".join(f"x = x + {number}\n" for number in range(2 * MOST_ROWS))
        exec(compile(lines, "<many>", "exec"), {"x": torch.ones(1)})
    finally:
        recorder.stop()
    follower = Follower(recorder)
    follower.read_all(final=True)
    assert len(follower.ops) >= 2 * MOST_ROWS
    assert max(len(update.ops) for update in follower.updates) <= MOST_ROWS
    assert follower.differences(recorder.snapshot()) == []


@pytest.mark.parametrize(
    "message",
    [
        {"ops": [[1]]},
        {"ops": 3},
        {"stacks": [[1, 77, 1]]},
        {"values": [[1, [9]]]},
        {"variables": [["x"]]},
        {"run": {"argv": []}},
        {"counts": [[1]]},
    ],
)
def test_what_no_recorder_sends_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(TraceFileError, match="not rows of a recording"):
        RowReader().read(message)
