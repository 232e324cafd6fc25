"""Facts about the program that are found without importing anything of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

OLDEST_TORCH: Final = (2, 4)


def why_unsupported(torch: str) -> str | None:
    """The message for a version of torch that is too old."""
    if tuple(map(int, torch.split("+")[0].split(".")[:2])) >= OLDEST_TORCH:
        return None
    oldest = ".".join(map(str, OLDEST_TORCH))
    return f"Shapetrace needs torch {oldest} or newer; this is {torch}"


def torch_version() -> str | None:
    """The version of torch, where the program has imported it."""
    version = getattr(sys.modules.get("torch"), "__version__", None)
    return None if version is None else str(version)


def is_worker() -> bool:
    """Return whether this process loads data for another one, which counts on it to go on."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None


def load_for_stops(captures: Sequence[str]) -> None:
    """Import what the debugger may want from here on, in places where nothing is imported."""
    import_module("shapetrace.panes")
    for name in ("evaluation", "randomness", "standing"):
        import_module(f"shapetrace.recorder.{name}")
    if captures:
        import_module("shapetrace.agent.capturing")
