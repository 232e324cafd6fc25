"""Text with named styles: what every view returns, before anyone decides about colours.

A line is a sequence of spans, each a text and the name of its style or None. Which colour a style
has, if any, is known in ``terminal`` alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from shapetrace.views.shapes import CUT

Style: TypeAlias = Literal[
    "heading",
    "guide",
    "path",
    "class",
    "detail",
    "call",
    "role",
    "shape",
    "name",
    "count",
    "location",
    "note",
    "error",
    "source",
    "expression",
    "padding",
]
"""What a span is. ``padding`` is filler between columns, which may give way to other text."""

Span: TypeAlias = tuple[str, Style | None]
Line: TypeAlias = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class StyledText:
    """Lines of styled spans."""

    lines: tuple[Line, ...]

    def plain(self) -> str:
        """The text without styles, one newline after each line."""
        return "".join(f"{line_text(line)}\n" for line in self.lines)


_FARTHEST_EDGE = 120
"""Where the right edge is on a terminal that is wider."""

_LEAST_GAP = 2


def line_text(line: Iterable[Span]) -> str:
    """One line without its styles and without blanks at its end."""
    return "".join([text for text, _ in line]).rstrip()


def unstyled(text: str) -> StyledText:
    """Text that has no styles, such as a document for another program."""
    return StyledText(tuple(((line, None),) for line in text.splitlines()))


def printable(text: str) -> str:
    """The text on one line, with characters that could steer a terminal written as escapes."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or unicodedata.category(character) in ("Zs", "Co", "Cn")
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def first_line(text: str) -> str:
    """The first line of a text that says anything."""
    for line in text.splitlines():
        if line.strip():
            return printable(line.strip())
    return ""


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else _cells_of_any(text)


def line_cells(line: Iterable[Span]) -> int:
    """How many columns of a terminal a line takes."""
    return sum(cells(text) for text, _ in line)


def cut_to_cells(text: str, width: int) -> str:
    """The beginning of a text, with ``…`` for what went over the width."""
    if cells(text) <= width:
        return text
    used = 0
    for position, character in enumerate(text):
        used += _character_cells(character)
        if used > width - 1:
            return text[:position] + CUT
    return text


def cut_middle(text: str, width: int) -> str:
    """Both ends of a text, with ``…`` for what went over the width; the end weighs more."""
    excess = cells(text) - width
    if excess <= 0:
        return text
    if width < 2:
        return CUT[:width]
    head = (width - 1) // 3
    tail = width - 1 - head
    return f"{text[:head]}{CUT}{text[len(text) - tail :]}"


def cut_line(line: Sequence[Span], width: int) -> Line:
    """A line whose end is cut where it went over the width."""
    if line_cells(line) <= width:
        return tuple(line)
    kept: list[Span] = []
    left = width
    for text, style in line:
        taken = cells(text)
        if taken > left - 1:
            kept.append((cut_to_cells(text + " ", left), style))
            break
        kept.append((text, style))
        left -= taken
    return tuple(kept)


def join_right(left: Sequence[Span], right: Sequence[Span], width: int) -> Line | None:
    """A line with its last part at the right edge; None where the width has no room for both.

    On a very wide terminal the edge is nearer, as eyes lose the line on the way; a line that is
    longer goes on past it.
    """
    if not right:
        return tuple(left) if line_cells(left) <= width else None
    taken = line_cells(left) + line_cells(right)
    if taken + _LEAST_GAP > width:
        return None
    gap = max(min(width, _FARTHEST_EDGE) - taken, _LEAST_GAP)
    return (*left, (" " * gap, "padding"), *right)


@lru_cache(maxsize=1024)
def _cells_of_any(text: str) -> int:
    return sum(map(_character_cells, text))


@lru_cache(maxsize=4096)
def _character_cells(character: str) -> int:
    if character == "\ufe0f":
        # Asks for the picture form of the character before it, which is one column wider.
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
