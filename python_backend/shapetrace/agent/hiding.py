"""Keeping the debugger from taking our code for the program's."""

from __future__ import annotations

from types import CodeType


def hide_code(code: CodeType) -> bool:
    """Have the debugger pass over a code object; False where that cannot be done."""
    return False
