"""One open document beside what was recorded of it: where its statements are, what is known."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from shapetrace.server.documents import Document
from shapetrace.server.line_alignment import Alignment
from shapetrace.server.ranges import SourceRange, editor_column
from shapetrace.server.records_in_scope import Records
from shapetrace.server.source_structure import Structure
from shapetrace.server.statement_values import StatementValues, statement_values_of
from shapetrace.server.statements import Statement


@lru_cache(maxsize=12)
def structure_of(text: str) -> Structure:
    """The statements of a source text, which is read once."""
    return Structure(text)


class DocumentView:
    """An open document joined with its records: where it has the lines that ran.

    Lines of the document are counted from 0 as editors do, lines of the source from 1 as Python
    does.
    """

    def __init__(self, document: Document, records: Records, text: str) -> None:
        self.document = document
        self.records = records
        self.structure = structure_of(text)
        self._alignment: Alignment = document.alignment(text)

    def statements(self, first: int, last: int) -> Iterator[Statement]:
        """The statements on some lines of the document that are there as they ran, in order.

        All that end on the same line come with it, and what ends behind the last line but has a
        part on it.
        """
        origins = self._alignment.origins
        last = min(last, len(origins) - 1)
        line = max(first, 0)
        while line <= last:
            origin = origins[line]
            if origin is not None:
                for statement in self.structure.ending_on(origin + 1):
                    if self._is_whole(statement.range, line - origin):
                        yield statement
                if line == last:
                    spanning = self.structure.covering(origin + 1)
                    if spanning is not None:
                        last += spanning.range.end_line - origin - 1
            line += 1

    def facts(self, statement: Statement) -> StatementValues:
        """The values and errors of a statement."""
        return statement_values_of(statement, self.structure, self.records)

    def document_line(self, line: int) -> int | None:
        """Where a line of the source is now."""
        return self._alignment.document_line(line - 1)

    def source_line(self, line: int) -> int | None:
        """Which line of the source a line of the document is."""
        origins = self._alignment.origins
        origin = origins[line] if 0 <= line < len(origins) else None
        return None if origin is None else origin + 1

    def is_whole(self, where: SourceRange) -> bool:
        """Return whether all lines of a range of the source are still there, in a row."""
        now = self.document_line(where.line)
        return now is not None and self._is_whole(where, now - where.line + 1)

    def editor_position(self, line: int, column: int, encoding: str) -> tuple[int, int] | None:
        """Where a place of the source is in the document, in the editor's columns."""
        now = self.document_line(line)
        if now is None:
            return None
        return (now, editor_column(self.document.lines[now], column, encoding))

    def _is_whole(self, where: SourceRange, offset: int) -> bool:
        """Return whether all lines of a range are there, each as far down as the last one."""
        if where.line == where.end_line:
            return True
        first = where.line - 1
        expected = list(range(first, where.end_line))
        origins = self._alignment.origins
        return first + offset >= 0 and expected == list(
            origins[first + offset : where.end_line + offset]
        )
