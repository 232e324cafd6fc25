"""Programs in files of their own, what they print, and what they tell."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from shapetrace.events.followed import (
    CallBegan,
    CallEnded,
    FollowedEvent,
    FollowingNote,
    VariableChanged,
)
from shapetrace.views.shapes import value_text

_NUMBERS = itertools.count()

HEAD = """
import numpy as np
from shapetrace import auto_diff, var_tracker
"""
TORCH = HEAD + "import torch\n"


class Program:
    """A module that was loaded from a file, with what its functions have told ``told``."""

    def __init__(self, folder: Path, text: str, head: str = TORCH) -> None:
        self.events: list[FollowedEvent] = []
        self.name = f"followed_program_{next(_NUMBERS)}"
        self.path = folder / f"{self.name}.py"
        text = head + textwrap.dedent(text)
        self.path.write_text(text, "utf-8")
        self._lines = text.splitlines()
        specification = importlib.util.spec_from_file_location(self.name, self.path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        self.module: Any = module
        vars(module)["told"] = self.events.append
        sys.modules[self.name] = module
        specification.loader.exec_module(self.module)

    def line(self, mark: str) -> int:
        """The line that ends in this comment."""
        (found,) = [at for at, text in enumerate(self._lines, 1) if text.endswith(f"# {mark}")]
        return found

    @property
    def changes(self) -> list[VariableChanged]:
        return [event for event in self.events if isinstance(event, VariableChanged)]

    @property
    def began(self) -> list[CallBegan]:
        return [event for event in self.events if isinstance(event, CallBegan)]

    @property
    def ended(self) -> list[CallEnded]:
        return [event for event in self.events if isinstance(event, CallEnded)]

    @property
    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, FollowingNote)]

    def history(self, name: str | None = None) -> list[str]:
        """Each change in one line: mark or line, name, before, after, what differs."""
        return [
            f"{self._mark(each.line)} {each.name} {text(each.before)} -> {text(each.after)} "
            + " ".join(each.differs)
            for each in self.changes
            if name in (None, each.name)
        ]

    def _mark(self, line: int) -> str:
        found = re.search(r"# (\w+)$", self._lines[line - 1])
        return found[1] if found else str(line)


def text(value: Any) -> str:
    return "nothing" if value is None else value_text(value.value)
