"""A recording as the editor gets it: through rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from shapetrace.events.rows import RowReader
from shapetrace.events.update import Update
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.rows import RowWriter
from shapetrace.recorder.session import Recorder


def rows_of(recorder: Recorder) -> list[dict[str, Any]]:
    """All that a recorder has seen, as the messages that an agent would send."""
    writer = RowWriter(recorder)
    messages: list[dict[str, Any]] = []
    while (message := writer.write(final=True)) is not None:
        messages.append({"type": "rows", **message})
    changes = writer.write_changes()
    return messages if changes is None else [*messages, {"type": "rows", **changes}]


def updates_of(recorder: Recorder) -> list[Update]:
    """The same as the server understands it."""
    reader = RowReader()
    return [reader.read(message) for message in rows_of(recorder)]


def recorded(path: Path, may_fail: bool = False) -> Recorder:
    """Run a file under a recorder."""
    recorder = Recorder(RecorderOptions(), None)
    code = compile(path.read_bytes(), str(path), "exec")
    names = {"__name__": "program", "__file__": str(path)}
    recorder.start(sys._getframe())
    try:
        exec(code, names)
    except Exception:
        if not may_fail:
            raise
    finally:
        recorder.stop()
    return recorder
