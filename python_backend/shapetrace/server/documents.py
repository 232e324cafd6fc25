"""The documents that are open in the editor, as they are now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shapetrace.server.line_alignment import Alignment
from shapetrace.server.ranges import character_index
from shapetrace.server.uris import file_key, path_of_uri

_LINE_END = re.compile(r"\r\n|\n|\r")
"""The line ends of the protocol. Python's ``splitlines`` knows more kinds."""


def split_lines(text: str) -> list[str]:
    """The lines of a text, without their ends."""
    return _LINE_END.split(text)


@dataclass(frozen=True, slots=True)
class Change:
    """An edit: a text for a range, in lines and the editor's columns from 0, or for everything."""

    text: str
    start: tuple[int, int] | None = None
    end: tuple[int, int] | None = None


class Document:
    """One open document, and how it compares with the source that ran."""

    def __init__(self, uri: str, path: str, text: str, version: int | None) -> None:
        self.uri = uri
        self.key = file_key(path)
        self.version = version
        self.lines = split_lines(text)
        self._ran: str | None = None
        self._alignment: Alignment | None = None

    def alignment(self, ran: str) -> Alignment:
        """How the document compares with a source; that source is followed from now on."""
        if self._alignment is None or self._ran != ran:
            self._ran = ran
            self._alignment = Alignment(ran.split("\n"), self.lines)
        return self._alignment

    def replace_all(self, text: str) -> None:
        """Take a whole new text."""
        self._replace_lines(0, len(self.lines), split_lines(text))

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Put a text in the place of a range; positions are lines and characters from 0."""
        first, first_character = self._inside(start)
        last, last_character = self._inside(max(start, end))
        old_first, old_last = self.lines[first], self.lines[last]
        lines = split_lines(old_first[:first_character] + text + old_last[last_character:])
        removed = last - first + 1
        # A line to which nothing was added but further lines has not been edited.
        if first_character == len(old_first) and lines[0] == old_first:
            first, removed, lines = first + 1, removed - 1, lines[1:]
        if last_character == 0 and removed and lines and lines[-1] == old_last:
            removed, lines = removed - 1, lines[:-1]
        if lines != self.lines[first : first + removed]:
            self._replace_lines(first, removed, lines)

    def _inside(self, position: tuple[int, int]) -> tuple[int, int]:
        line, character = position
        if line >= len(self.lines):
            return (len(self.lines) - 1, len(self.lines[-1]))
        return (line, min(character, len(self.lines[line])))

    def _replace_lines(self, first: int, removed: int, lines: Sequence[str]) -> None:
        self.lines[first : first + removed] = lines
        if self._alignment is not None:
            self._alignment.replace(first, removed, lines)


class Documents:
    """All open documents that are files."""

    def __init__(self) -> None:
        self.encoding = "utf-16"
        """The encoding in which the editor counts columns."""
        self._documents: dict[str, Document] = {}

    def open(self, uri: str, text: str, version: int | None) -> Document | None:
        """Begin with a document; None if it is no file."""
        path = path_of_uri(uri)
        if path is None:
            return None
        document = self._documents[uri] = Document(uri, path, text, version)
        return document

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._documents.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        """An open document."""
        return self._documents.get(uri)

    def change(self, uri: str, version: int | None, changes: Sequence[Change]) -> None:
        """Apply what was edited."""
        document = self._documents.get(uri)
        if document is None:
            return
        document.version = version
        for change in changes:
            if change.start is None or change.end is None:
                document.replace_all(change.text)
                continue
            start = self._position(document, change.start)
            end = self._position(document, change.end)
            document.replace(start, end, change.text)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents.values())

    def _position(self, document: Document, position: tuple[int, int]) -> tuple[int, int]:
        line, units = position
        if line >= len(document.lines):
            return (line, units)
        return (line, character_index(document.lines[line], units, self.encoding))
