"""Standard output as a terminal, and printed trees without what is between their words."""

from __future__ import annotations

import io
import re

import pytest

_PLACE = re.compile(r"\s{2,}(?:\S+\s{2,})?\S+:\d+$")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def in_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Let the environment be that of a terminal with colours, whatever it is."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")


def rows(tree: str) -> list[str]:
    """The lines of a tree without its guides, the places at the right, and blank lines."""
    lines = [_PLACE.sub("", line).strip("│├└─ ") for line in tree.splitlines()]
    return [" ".join(line.split()) for line in lines if line]


def has_rows(tree: str, *expected: str) -> bool:
    """Whether these rows stand in a tree, one below the other."""
    found = rows(tree)
    starts = range(len(found) - len(expected) + 1)
    return any(found[start : start + len(expected)] == list(expected) for start in starts)
