"""The options that every view accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from shapetrace.views.source_files import read_source

ReadSource: TypeAlias = Callable[[str], bytes | None]
"""Gives the bytes of a source file, or None where they cannot be had."""

SMALLEST_WIDTH = 40
"""Views lay out for at least so many columns: below, lines are left for the terminal to wrap."""


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How a view shall render; the same for all views."""

    width: int = 100
    """Columns to lay out for."""
    base: str | None = None
    """The directory that files below it are named relative to."""
    verbose: bool = False
    """Also show what is folded away as library detail."""
    read_source: ReadSource = read_source
    """Where source text comes from."""

    @property
    def columns(self) -> int:
        """The width to lay out for, never absurdly small."""
        return max(self.width, SMALLEST_WIDTH)
