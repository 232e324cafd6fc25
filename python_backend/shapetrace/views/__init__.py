"""Ways to look at a trace: pure functions from events to text.

Views return styled text; ``render`` turns it into a string, with or without colours. What is named
here is loaded at first use: the agent takes ``views.shapes`` into the user's program, and no more.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.views.options import ViewOptions
    from shapetrace.views.registry import VIEWS, View, render
    from shapetrace.views.styled import StyledText
    from shapetrace.views.terminal import terminal_width, wants_color

__all__ = [
    "VIEWS",
    "StyledText",
    "View",
    "ViewOptions",
    "render",
    "terminal_width",
    "wants_color",
]

_HOMES = {
    "VIEWS": "registry",
    "StyledText": "styled",
    "View": "registry",
    "ViewOptions": "options",
    "render": "registry",
    "terminal_width": "terminal",
    "wants_color": "terminal",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
