"""Text of programs within Markdown, whatever it contains."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shapetrace.views.styled import printable


def table_row(texts: Iterable[str]) -> str:
    """One row of a table."""
    return f"| {' | '.join(texts)} |"


def code(text: str) -> str:
    """A code span, whatever the text contains."""
    if not text:
        return ""
    fence = "`" * (_longest_run_of_backticks(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(text: str) -> str:
    """A code block, whatever the text contains."""
    lines = [printable(line) for line in text.splitlines()]
    fence = "`" * max(3, _longest_run_of_backticks(text) + 1)
    return "\n".join([fence, *lines, fence])


def _longest_run_of_backticks(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def plain(text: str) -> str:
    """Text outside code, with what Markdown would take for its own signs escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", printable(text))
