"""The new events of a running recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.events.rows import RowReader
from shapetrace.events.update import Update
from shapetrace.recorder.rows import RowWriter
from shapetrace.recorder.turn import Turn

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


class News:
    """The part of a recording that is new since the previous call."""

    def __init__(self, recorder: Recorder) -> None:
        self._writer = RowWriter(recorder)
        self._reader = RowReader()
        self._asking = Turn()

    def take(self, final: bool = False) -> list[Update]:
        """The new part; empty if another thread, or an outer call, is reading it.

        Calls that have not returned wait, where this is not the ``final`` time.
        """
        updates: list[Update] = []

        def read() -> None:
            while (message := self._writer.write(final)) is not None:
                updates.append(self._reader.read(message))

        self._asking.take(read, wait=False)
        return updates
