"""What a recorder has to know of a debugger that the program runs under."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Debugger:
    """How to know its frames."""

    directories: tuple[str, ...]
    """Where its code lies."""
    carriers: frozenset[str]
    """What of it stands below the program itself: names of files, or ``file:function``."""

    def carries(self, file: str, function: str) -> bool:
        """Whether a function of the debugger's runs the program, and not an expression."""
        name = os.path.basename(file)
        return name in self.carriers or f"{name}:{function}" in self.carriers
