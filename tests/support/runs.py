"""Runs of programs that never ran, for traces that are made by hand."""

from __future__ import annotations

from collections.abc import Mapping

from shapetrace.events.model import Run


def made_run(
    argv: tuple[str, ...] = ("train.py",), files: Mapping[str, str] | None = None, passes: int = 0
) -> Run:
    """A run of a program in one process."""
    return Run(
        argv=argv,
        python="3.11.7",
        torch="2.13.0",
        pid=1,
        rank=None,
        world_size=None,
        started="2026-01-01T00:00:00Z",
        files=files or {},
        passes=passes,
    )
