"""Source text around a place: the whole statement, of the source that really ran.

Lines are counted as Python counts them, and columns are bytes of UTF-8, as the events have them.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shapetrace.events.model import Frame
from shapetrace.events.source_text import decode_source
from shapetrace.views.shapes import CUT
from shapetrace.views.view_options import ReadSource

_MOST_LINES = 20
"""Of statements longer than this, the first line and those of the place are shown."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines of a file that a place belongs to."""

    numbers: tuple[int | None, ...]
    """The number of each line; None for ``…``, which replaces omitted lines."""
    lines: tuple[str, ...] | None
    """Without their common indentation; None where the source cannot be had."""
    indentation: int = 0
    """How many bytes of UTF-8 were taken from the beginning of each line."""
    doubt: str = ""
    """Why this may not be the source that ran; empty where it is known to be."""


class Sources:
    """The source files of a trace, each read and parsed once."""

    def __init__(self, read_source: ReadSource, digests: Mapping[str, str | None]) -> None:
        self._read_source = read_source
        self._digests = digests
        self._files: dict[str, _SourceFile | None] = {}
        self._excerpts: dict[tuple[str, int, int], Excerpt] = {}

    def excerpt(self, frame: Frame) -> Excerpt:
        """The statement that a frame was in, else as many lines as the frame's place has."""
        end = frame.end_line if frame.end_line is not None else frame.line
        key = (frame.file, frame.line, max(end, frame.line))
        excerpt = self._excerpts.get(key)
        if excerpt is None:
            excerpt = self._excerpts[key] = self._make(*key)
        return excerpt

    def _make(self, path: str, line: int, end: int) -> Excerpt:
        if path not in self._files:
            self._files[path] = self._load(path)
        file = self._files[path]
        if file is None or not 1 <= line <= len(file.lines):
            return Excerpt((line,), None)
        numbers = file.whole(line, min(end, len(file.lines)))
        lines = [file.lines[number - 1] for number in numbers if number is not None]
        indentation = _common_indentation(lines)
        shown = (
            CUT if number is None else file.lines[number - 1][len(indentation) :]
            for number in numbers
        )
        return Excerpt(numbers, tuple(shown), len(indentation.encode()), file.doubt)

    def _load(self, path: str) -> _SourceFile | None:
        data = self._read_source(path)
        if data is None:
            return None
        text = decode_source(data)
        return None if text is None else _SourceFile(text, self._doubt(path, data))

    def _doubt(self, path: str, data: bytes) -> str:
        if path.startswith("<"):
            return ""  # typed into a shell, which keeps it as it was
        digest = self._digests.get(path)
        if digest is None:
            return "may have changed since"
        return "" if hashlib.sha256(data).hexdigest() == digest else "changed since"


class _SourceFile:
    """The lines of one file, and which of them are one statement."""

    def __init__(self, text: str, doubt: str) -> None:
        self.lines = text.split("\n")
        self.doubt = doubt
        self._statements: dict[int, tuple[int, int]] = {}
        if not doubt:
            for start, end in _statement_ranges(text, self.lines):
                self._statements.update(dict.fromkeys(range(start, end + 1), (start, end)))

    def whole(self, line: int, end: int) -> tuple[int | None, ...]:
        """The lines of the statement that some lines are in."""
        first, last = self._statements.get(line, (line, max(end, line)))
        if last - first < _MOST_LINES:
            return tuple(range(first, last + 1))
        shown_end = min(end, last, line + _MOST_LINES - 1)
        before = () if first == line else (first,) if first == line - 1 else (first, None)
        after = () if shown_end == last else (None,)
        return (*before, *range(line, shown_end + 1), *after)


def _statement_ranges(text: str, lines: list[str]) -> Iterator[tuple[int, int]]:
    """First and last line of each simple statement and of each compound one's head."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, _BLOCKS)]
        pending.extend(reversed(inner))
        if isinstance(node, ast.stmt) and not inner:
            yield node.lineno, node.end_lineno or node.lineno
        elif isinstance(node, _BLOCKS):
            yield from _head_ranges(node, _first_line(inner[0]) if inner else None, lines)


_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def _head_ranges(
    node: ast.stmt | ast.ExceptHandler | ast.match_case, body: int | None, lines: list[str]
) -> Iterator[tuple[int, int]]:
    """The lines of ``if ...:``, ``def ...:``, and those of each decorator."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    for decorator in decorators:
        yield decorator.lineno, decorator.end_lineno or decorator.lineno
    start = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
    end = start
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _BLOCKS) and child not in decorators:
            ends = (getattr(part, "end_lineno", None) for part in ast.walk(child))
            end = max([end, *(line for line in ends if line is not None)])
    if body is not None and body > end:
        # The head may close on a later line than its last expression: `):`.
        closing = range(body - 1, end, -1)
        end = next((line for line in closing if _is_code(lines[line - 1])), end)
    yield start, end


def _first_line(node: ast.AST) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    line: int = getattr(node, "lineno", 1)
    return min([line, *(decorator.lineno for decorator in decorators)])


def _is_code(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def _common_indentation(lines: list[str]) -> str:
    indentations = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    # What the first and the last in alphabetical order share is shared by all.
    first, last = min(indentations, default=""), max(indentations, default="")
    length = 0
    while length < len(first) and first[length] == last[length]:
        length += 1
    return first[:length]
