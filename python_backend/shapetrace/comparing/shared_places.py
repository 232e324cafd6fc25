"""Where a call was made, in a way that two runs have in common though code and folders have moved.

Of a file that is the same in both runs, a place is its line and columns. Of one that was changed in
between, it is the text of the line, if both texts are still to be had, else only the function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from typing import TypeAlias

from shapetrace.comparing.comparison import Event
from shapetrace.events.source_text import decode_source

ReadSource: TypeAlias = Callable[[str], bytes | None]
"""Gives the bytes of a source file, or None where they cannot be had."""

Digests: TypeAlias = Mapping[str, str | None]


class SharedPlaces:
    """The places of one run, in terms that the other has too."""

    def __init__(self, ours: Digests, theirs: Digests, read_source: ReadSource | None) -> None:
        others = set(theirs.values())
        common = {digest for digest in ours.values() if digest is not None and digest in others}
        self._same = {path: digest for path, digest in ours.items() if digest in common}
        self._lines: dict[str, list[str]] = {}
        if read_source is not None:
            texts = _texts(ours, common, read_source)
            if texts and _texts(theirs, common, read_source):
                self._lines = texts

    def key(self, event: Event) -> tuple[Hashable, bool]:
        """A key that is equal for calls from one place in both runs, and whether it is exact."""
        file = event.file or ""
        digest = self._same.get(file)
        if digest is not None:
            place = (digest, event.line, event.column, event.end_line, event.end_column)
            return place, True
        lines = self._lines.get(file)
        if lines is None or event.line is None:
            return event.function, False
        end = event.line if event.end_line is None else event.end_line
        text = "".join(line.strip() for line in lines[event.line - 1 : end])
        return (event.function, text), False


def _texts(digests: Digests, common: set[str], read_source: ReadSource) -> dict[str, list[str]]:
    """The lines of the files that only one run has, as far as they are still as they ran."""
    texts: dict[str, list[str]] = {}
    for path, digest in digests.items():
        if digest is None or digest in common:
            continue
        data = read_source(path)
        if data is None or hashlib.sha256(data).hexdigest() != digest:
            continue
        text = decode_source(data)
        if text is not None:
            texts[path] = text.split("\n")
    return texts
