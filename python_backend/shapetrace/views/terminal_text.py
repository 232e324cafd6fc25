"""Styled text as characters for a terminal: the only module that knows colours, and rich."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Protocol

from shapetrace.views.styled import Line, Span, Style, StyledText, line_text, printable

_COLORS: dict[Style, str] = {
    "heading": "bold",
    "guide": "dim",
    "path": "bold magenta",
    "class": "magenta",
    "detail": "dim",
    "call": "cyan",
    "role": "dim",
    "shape": "bright_blue",
    "name": "green",
    "count": "yellow",
    "location": "dim",
    "note": "dim italic",
    "error": "bold red",
    "expression": "cyan",
}
"""Colours of the terminal's own palette, so that they suit light and dark ones."""

_PLAIN_GLYPHS = {
    "⬇️": "v",
    "⬇": "v",
    "→": "->",
    "←": "<-",
    "×": "x",
    "✗": "x",
    "●": "*",
    "…": "..",
    "·": "-",
    "┌─": ".-",
    "├─": "|-",
    "└─": "`-",
    "│": "|",
    "─": "-",
    "–": "-",
    "µ": "u",
    **dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True)),
}
"""Replacements for signs that the terminal's encoding lacks."""


class Stream(Protocol):
    """The methods of a stream that are used for text."""

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        ...


def wants_color(choice: str, stream: Stream | None, environ: Mapping[str, str]) -> bool:
    """Whether to colour, after ``--color``, ``NO_COLOR``, ``FORCE_COLOR``, ``TERM``, the stream."""
    if choice in ("always", "never"):
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    if environ.get("TERM") == "dumb" or stream is None:
        return False
    return is_terminal(stream)


def is_terminal(stream: Stream | None) -> bool:
    """Return whether a stream is a terminal; not if it is closed."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def terminal_width(environ: Mapping[str, str], default: int = 100) -> int:
    """The columns of the terminal; the default where output does not go to one."""
    columns = environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return shutil.get_terminal_size((default, 24)).columns


def to_text(text: StyledText, *, color: bool = False, encoding: str | None = "utf-8") -> str:
    """Styled text as one string, with colours if asked for, that the encoding can encode."""
    encoder = _encoder(encoding or "utf-8")
    paint = _painter() if color else None
    if paint is None:
        return "".join(f"{line_text(encoder.line(line))}\n" for line in text.lines)
    return "".join(f"{paint(encoder.line(line))}\n" for line in text.lines)


@lru_cache(maxsize=16)
def _encoder(encoding: str) -> _Encoder:
    return _Encoder(encoding)


class _Encoder:
    """Replaces what an encoding does not have, keeping columns where they were."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._glyphs = {
            glyph: plain for glyph, plain in _PLAIN_GLYPHS.items() if not self._can_encode(glyph)
        }

    def line(self, line: Line) -> Line:
        """The line as the encoding can have it; blanks before the right edge give way.

        A trace may come from anywhere, so nothing in it reaches a terminal that could steer it.
        """
        if not all(text.isprintable() for text, _ in line):
            line = tuple((printable(text), style) for text, style in line)
        if all(text.isascii() or self._can_encode(text) for text, _ in line):
            return line
        spans: list[Span] = []
        grown = 0
        for text, style in line:
            if style == "padding":
                spans.append((" " * max(len(text) - grown, 2), style))
                continue
            encodable = self._replaced(text)
            grown += len(encodable) - len(text)
            spans.append((encodable, style))
        return tuple(spans)

    def _can_encode(self, text: str) -> bool:
        try:
            text.encode(self._encoding)
        except (UnicodeError, LookupError):
            return False
        return True

    def _replaced(self, text: str) -> str:
        for glyph, plain in self._glyphs.items():
            text = text.replace(glyph, plain)
        try:
            return text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        except LookupError:
            return text.encode("ascii", "backslashreplace").decode("ascii")


def _painter() -> Callable[[Line], str] | None:
    """A function that colours a line; None where rich is missing or the console is too old."""
    try:
        from rich.color import ColorSystem
        from rich.console import detect_legacy_windows
        from rich.style import Style as RichStyle
    except ImportError:
        return None
    if sys.platform == "win32" and detect_legacy_windows():
        return None
    # A style's codes are asked of rich once, as rendering each span by it costs far more.
    mark = "x"
    codes: dict[Style | None, tuple[str, str]] = {}
    for style, color in _COLORS.items():
        rendered = RichStyle.parse(color).render(mark, color_system=ColorSystem.STANDARD)
        before, _, after = rendered.partition(mark)
        codes[style] = (before, after)
    plain = ("", "")

    def paint(line: Line) -> str:
        parts = []
        for text, style in line:
            before, after = codes.get(style, plain)
            parts.append(f"{before}{text}{after}" if text else "")
        return "".join(parts)

    return paint
