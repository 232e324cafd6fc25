"""Numbers, texts and keys in a few characters."""

from __future__ import annotations

from typing import Any, Final

from shapetrace._classes import name_of
from shapetrace.inspecting.containers import PLAIN
from shapetrace.views.shapes import CUT, cut_end

_LONGEST_PLAIN: Final = 40


def plain_text(value: Any) -> str:
    """A number or a text as the program would write it, where that is short."""
    kind = type(value)
    if kind is int and value.bit_length() > 256:
        return "int"
    if kind in (bytes, bytearray, range):
        return f"{name_of(kind)}[{len(value)}]"
    if kind is str and len(value) > _LONGEST_PLAIN:
        return repr(value[:_LONGEST_PLAIN]) + CUT
    return repr(value)


def key_text(key: Any) -> str:
    """A key, where it is short."""
    kind = type(key)
    if kind is str:
        return cut_end(key, _LONGEST_PLAIN)
    return plain_text(key) if kind in PLAIN else name_of(kind)
