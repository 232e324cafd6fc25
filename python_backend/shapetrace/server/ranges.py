"""Ranges of source text as Python counts them, and columns as editors count them."""

from __future__ import annotations

import ast
from typing import NamedTuple

ENCODINGS = ("utf-16", "utf-8", "utf-32")
"""The encodings in which editors may count columns; the first is the default."""


class SourceRange(NamedTuple):
    """A piece of source: lines from 1, columns in bytes of UTF-8 from 0, the end not included."""

    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def start(self) -> tuple[int, int]:
        """Where it begins."""
        return (self.line, self.column)

    @property
    def end(self) -> tuple[int, int]:
        """Where it ends."""
        return (self.end_line, self.end_column)

    def contains(self, other: SourceRange) -> bool:
        """Return whether another range is this one or inside it."""
        return self.start <= other.start and other.end <= self.end

    def touches(self, line: int, column: int) -> bool:
        """Return whether a position is in it, or right behind its end."""
        return self.start <= (line, column) <= self.end


def range_of(node: ast.expr | ast.stmt | ast.arg | ast.excepthandler | ast.pattern) -> SourceRange:
    """Where a part of a syntax tree is."""
    end_line = node.lineno if node.end_lineno is None else node.end_lineno
    end_column = node.col_offset if node.end_col_offset is None else node.end_col_offset
    return SourceRange(node.lineno, node.col_offset, end_line, end_column)


def editor_column(line: str, column: int, encoding: str) -> int:
    """A column in bytes of UTF-8 in the units that the editor counts in."""
    if encoding == "utf-8" or line.isascii():
        return column
    before = line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace")
    return editor_length(before, encoding)


def editor_length(text: str, encoding: str) -> int:
    """The length of a text in the units that the editor counts in."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def character_index(line: str, units: int, encoding: str) -> int:
    """The index into a line of a column in the units that the editor counts in.

    A column behind the end is the end, as the protocol says.
    """
    if line.isascii() or encoding == "utf-32":
        return min(units, len(line))
    passed = 0
    for index, character in enumerate(line):
        if passed >= units:
            return index
        passed += editor_length(character, encoding)
    return len(line)


def byte_column(line: str, units: int, encoding: str) -> int:
    """A column in the editor's units as bytes of UTF-8."""
    if line.isascii():
        return min(units, len(line))
    index = character_index(line, units, encoding)
    return len(line[:index].encode("utf-8", "surrogatepass"))
