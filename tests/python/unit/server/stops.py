"""What the editor shows while a program stands still, as text in, text out.

A program says where it stops: ``stop()``, or ``stop(1)`` with the function around looked at. Where
it says ``begin()``, it is recorded only from there on, as when it is attached to, or forked.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from shapetrace.events.rows import RowReader
from shapetrace.events.stop import Stop
from shapetrace.recorder.debuggers import Debugger
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.rows import RowWriter
from shapetrace.recorder.session import Recorder
from shapetrace.recorder.standing import standing_of
from shapetrace.server.documents import Documents
from shapetrace.server.features.inlay_hints import Hint, inlay_hints
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.scope import Scope
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from shapetrace.transport.messages import NumberedStop, read_as, write
from tests.python.unit.server.annotated import plain, with_hints
from tests.support.recorder import PRELUDE


class Stops:
    """A program that runs, and what was shown at each of its stops."""

    def __init__(self, text: str, path: Path) -> None:
        path.write_text(PRELUDE + plain(text), encoding="utf-8")
        self.path = path
        self.shown: list[str] = []
        """At each stop the lines of the function that was looked at with their hints."""
        self.recorder = Recorder(RecorderOptions(debugger=Debugger((), frozenset())))
        self._writer, self._reader = RowWriter(self.recorder), RowReader()
        self._store = TraceStore()
        self._store.open_process("session", "process")
        self._scopes = PinAndFocus(self._store)
        document = Documents().open(path.as_uri(), path.read_text("utf-8"), 1)
        assert document is not None
        self._document = document
        self.lines = document.lines
        self.names: dict[str, Any] = {
            "__name__": "__main__",
            "__file__": str(path),
            "begin": self.begin,
            "stop": self.stop,
        }

    def run(self) -> Stops:
        """Run it to its end."""
        code = compile(self.path.read_bytes(), str(self.path), "exec")
        if not any("begin()" in line for line in self.lines):
            self.recorder.start(sys._getframe())
        try:
            exec(code, self.names)
        finally:
            self.recorder.stop()
        assert [note for note in self.recorder.notes if "fault" in note[0]] == []
        return self

    def begin(self) -> None:
        """Begin in the middle of the program."""
        self.recorder.start_beside()
        assert self.recorder.join(sys._getframe(1))

    def stop(self, outwards: int = 0, shown: int = 0) -> int:
        """Look at the function that calls this, or one around it; show that or one around it."""
        return self.stop_at(sys._getframe(1), outwards, shown)

    def stop_at(self, frame: FrameType, outwards: int, shown: int) -> int:
        """Look at a frame, or one around it; show that or one around it."""
        if not self.recorder.active:
            return 0
        frame = self._frame(frame, outwards)
        self.hear()
        stop = standing_of(self.recorder, frame, None)
        self._scopes.set_focus(None if stop is None else scope_of(stop))
        frame = self._frame(frame, shown)
        hints = self._hints(frame)
        self.look(frame, hints)
        lines = with_hints(self.lines, hints).split("\n")
        self.shown.append(
            "\n".join(lines[each].strip() for each in sorted({hint.line for hint in hints}))
        )
        return 1

    def look(self, frame: FrameType, hints: list[Hint]) -> None:
        """What is shown of a function that is looked at."""

    def _frame(self, frame: FrameType | None, outwards: int) -> FrameType:
        while frame is not None and (outwards or frame.f_code.co_filename != str(self.path)):
            outwards -= frame.f_code.co_filename == str(self.path)
            frame = frame.f_back
        assert frame is not None
        return frame

    def hear(self) -> None:
        """Take what the recorder has seen, as the editor does every few milliseconds."""
        messages = iter(self._writer.write, None)
        for message in (*messages, self._writer.write_changes()):
            if message is not None:
                self._store.apply("process", self._reader.read({"type": "rows", **message}))

    def _hints(self, frame: FrameType) -> list[Hint]:
        """The hints of a function."""
        records = self._scopes.records(self._document.key)
        assert records is not None
        assert records.base.text is not None
        view = DocumentView(self._document, records, records.base.text)
        function = view.structure.function_at(frame.f_lineno)
        hints = inlay_hints(view, 0, 1_000_000, HintOptions())
        return [each for each in hints if view.structure.function_at(each.line + 1) is function]


def scope_of(stop: Stop) -> Scope:
    """What the server makes of a stop of the first process, by way of JSON."""
    sent = sent_and_read(stop)
    return Scope(1, sent.call, sent)


def sent_and_read(stop: Stop) -> Stop:
    """A stop as it comes from the agent."""
    message = json.loads(json.dumps(write(NumberedStop(1, stop))))
    told = read_as(NumberedStop, message)
    assert told is not None
    return told.stop
