"""The children of an opened value."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any, NamedTuple


class ChildEntry(NamedTuple):
    """One line below a value."""

    name: str
    value: Any
    suffix: str | Callable[[str], str] | None
    """What an expression for it has after its parent's own, or how to make it from that; None where
    there is none."""


class Text(str):
    """A text that is shown as it is, without quotes and with nothing below it."""

    __slots__ = ()


Usual = Callable[[Any], "list[ChildEntry]"]
"""The debugger's own children of a value."""


class ChildGroup:
    """Several entries under one name, which are made when they are asked for."""

    __slots__ = ("entries", "text")

    def __init__(self, text: str, entries: Callable[[], list[ChildEntry]]) -> None:
        self.text = text
        self.entries = entries


# The editor shows the name of a value's class, and these are nothing of the program's.
Text.__name__ = ChildGroup.__name__ = ""

MOST_ENTRIES = 1000
"""Entries of one kind below a value; the rest is counted."""


def attribute(name: str) -> str:
    """The suffix that reads an attribute."""
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return f".{name}" if plain else f".__dict__[{name!r}]"


def cut_entries(entries: list[ChildEntry], total: int) -> list[ChildEntry]:
    """The entries, and a line with the number of the others."""
    if total > len(entries):
        entries.append(ChildEntry("…", Text(f"{total - len(entries):,} more"), None))
    return entries
