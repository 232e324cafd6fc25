"""Everything a recorder holds, as one trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shapetrace.events.model import Frame, ModuleCall, Op, Trace, Variable
from shapetrace.events.rows import RowReader
from shapetrace.recorder.rows import Message, RowWriter

if TYPE_CHECKING:
    from shapetrace.events.fingerprint import CallFingerprints
    from shapetrace.events.model import Coverage, Run
    from shapetrace.recorder.session import Recorder


def take_snapshot(recorder: Recorder) -> Trace:
    """The recording so far. May be called while the recording runs."""
    writer, reader = RowWriter(recorder), RowReader()
    run: Run | None = None
    files: dict[str, str | None] = {}
    frames: list[Frame] = []
    modules: dict[int, ModuleCall] = {}
    ops: dict[int, Op] = {}
    variables: dict[int, Variable] = {}
    coverage: tuple[Coverage, ...] = ()
    fingerprints: dict[int, tuple[CallFingerprints, ...]] = {}
    for message in _messages(writer):
        update = reader.read(message)
        run = update.run or run
        files.update((source.path, source.digest) for source in update.sources)
        frames += update.frames
        modules |= {module.id: module for module in update.modules}
        ops |= {op.id: op for op in update.ops}
        variables |= update.variables
        fingerprints |= update.fingerprints
        coverage = update.coverage or coverage
    for identity, calls in fingerprints.items():
        if identity in modules:
            modules[identity] = dataclasses.replace(modules[identity], fingerprints=calls)
        else:
            ops[identity] = dataclasses.replace(ops[identity], fingerprints=calls)
    if run is None:
        raise AssertionError("a writer's first message describes the run")
    return Trace(
        run=dataclasses.replace(run, files=dict(sorted(files.items()))),
        modules=tuple(modules.values()),
        ops=tuple(sorted(ops.values(), key=lambda op: op.id)),
        frames=tuple(frames),
        variables=tuple(variables.values()),
        coverage=coverage,
    )


def _messages(writer: RowWriter) -> Iterator[Message]:
    while (message := writer.write(final=True)) is not None:
        yield message
    # Once only: while the program runs, counts change all the time.
    if (message := writer.write_changes()) is not None:
        yield message
