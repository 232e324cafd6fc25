"""Which calls of a process have a text in them, and which are around those."""

from __future__ import annotations

from collections import deque
from itertools import islice

from shapetrace.server.file_records import Call
from shapetrace.server.processes import Process
from shapetrace.views.outline import searched_text

_MOST_OPENED = 300
"""So many rows are brought up by opening nodes, the outermost first, to show what is found."""

_MOST_OF_ONE = 100
"""More rows than that are not shown below one node at first."""


class Search:
    """Finds texts in the calls of one process, and keeps what it found last."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._texts: dict[int, tuple[Call, str]] = {}
        self._last: tuple[str, int] = ("", -1)
        self._found: set[int] = set()
        self._above: set[int] = set()
        self._shown: set[int] = set()
        self._opened: set[int] = set()

    def shown(self, text: str) -> set[int]:
        """The calls that have the text in them, and what these were made in."""
        self._search(text)
        return self._shown

    def is_above(self, call: int, text: str) -> bool:
        """Return whether a call is shown only for what is in it, and is to be opened for that."""
        self._search(text)
        return call in self._opened

    def shows_all_below(self, call: int | None, text: str) -> bool:
        """Return whether a call, or what it was made in, has the text in it."""
        if call is None:
            return False
        self._search(text)
        nesting = self._process.nesting
        return call in self._found or any(each in self._found for each in nesting.above(call))

    def _search(self, text: str) -> None:
        version = self._process.nesting.version
        if self._last == (text, version):
            return
        self._last = (text, version)
        process = self._process
        self._found = {
            call.id
            for calls in (process.modules, process.ops)
            for call in calls.values()
            if call.id in process.nesting and text in self._text(call)
        }
        self._above = set()
        for each in self._found:
            for around in process.nesting.above(each):
                if around in self._above:
                    break
                self._above.add(around)
        self._shown = self._found | self._above
        self._opened = self._to_open()

    def _to_open(self) -> set[int]:
        """The ancestors of the matches, from the outside in, as far as there is room for rows."""
        opened: set[int] = set()
        rows = 0
        above = self._above - self._found
        pending: deque[int | None] = deque([None])
        while pending:
            parent = pending.popleft()
            inside = self._process.nesting.children(parent)
            shown = list(islice((each for each in inside if each in self._shown), _MOST_OF_ONE))
            rows += len(shown)
            if parent is not None:
                if rows > _MOST_OPENED:
                    break
                opened.add(parent)
            pending.extend(each for each in shown if each in above)
        return opened

    def _text(self, call: Call) -> str:
        known = self._texts.get(call.id)
        if known is None or known[0] is not call:
            known = self._texts[call.id] = (call, searched_text(call))
        return known[1]
