"""Following named variables through functions, and telling of calls, inputs and outputs.

    @var_tracker("video", "sample['mask']")
    def transform(sample): ...

A function is followed in place (``instrument``): it stays the object that it was. What is told are
events (``events.followed``), which are printed, or handed to whoever asked for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.variables.decorators import auto_diff, var_tracker
    from shapetrace.variables.tracking import Tracking, track

__all__ = ["Tracking", "auto_diff", "track", "var_tracker"]

_HOMES = {
    "Tracking": "tracking",
    "auto_diff": "decorators",
    "track": "tracking",
    "var_tracker": "decorators",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
