"""Frames, stacks and files as rows, alike for all versions of Python.

Until 3.12 a comprehension is a function of its own. What runs in one is told as if it ran in the
function around it, as it does since.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from shapetrace.recorder.callsite import Site
from shapetrace.recorder.positions import Position, Positions
from shapetrace.recorder.steps import is_comprehension

_COMPREHENSION: Final = re.compile(r"(?:^|\.)<(?:list|set|dict)comp>")


def function_name(code: CodeType) -> str:
    """The qualified name of a function, or of the one that a comprehension is written in."""
    name = _COMPREHENSION.sub("", code.co_qualname)
    return name.removesuffix(".<locals>").lstrip(".") or "<module>"


class Places:
    """Numbers the places that rows refer to, and writes each once."""

    def __init__(self, positions: Positions, add: Callable[[str, Any], None]) -> None:
        self._positions = positions
        self._add = add
        self._frames: dict[tuple[int, int], tuple[int, Position, str]] = {}
        """Number, position and file, by code and offset."""
        self._numbers: dict[Any, int] = {}
        """The numbers of frames, by their content."""
        self._stacks: dict[int, int] = {}
        self._stack_numbers: dict[tuple[int, int], int] = {}
        """By the number of the stack below and that of the frame."""
        self._files: set[str] = set()
        self.unread_files: list[str] = []
        """Files whose text has not been sent."""
        self._kept: list[Any] = []
        """The objects whose identities serve as keys."""

    def frame(self, site: Site) -> tuple[int, Position, str]:
        """The number of a frame, where it is in the source, and in which file."""
        code = site.activation.code
        key = (id(code), site.offset)
        known = self._frames.get(key)
        if known is None:
            self._kept.append(code)
            position = line, end_line, column, end_column = self._positions.at(code, site.offset)
            told = (self.file(code), line, function_name(code), column, end_line, end_column)
            number = self._numbers.get(told)
            if number is None:
                number = self._numbers[told] = len(self._numbers) + 1
                self._add("frames", (number, *told))
            known = self._frames[key] = (number, position, told[0])
        return known

    def file(self, code: CodeType) -> str:
        """The path of the file that code is in."""
        name = code.co_filename
        path = name if name.startswith("<") else os.path.abspath(name)
        if path not in self._files:
            self._files.add(path)
            self.unread_files.append(path)
        return path

    def stack(self, site: Site | None) -> int:
        """The number of the program's frames from the outermost one to this site; 0 for none."""
        new: list[Site] = []
        while site is not None and id(site) not in self._stacks:
            new.append(site)
            site = site.activation.caller
        number = 0 if site is None else self._stacks[id(site)]
        for index, site in enumerate(reversed(new)):
            inner = new[len(new) - index - 2] if index + 1 < len(new) else None
            is_around = inner is not None and is_comprehension(inner.activation.code)
            if not site.activation.in_torch and not is_around:
                number = self._stack_on(number, self.frame(site)[0])
            self._kept.append(site)
            self._stacks[id(site)] = number
        return number

    def _stack_on(self, below: int, frame: int) -> int:
        number = self._stack_numbers.get((below, frame))
        if number is None:
            number = self._stack_numbers[below, frame] = len(self._stack_numbers) + 1
            self._add("stacks", (number, below, frame))
        return number
