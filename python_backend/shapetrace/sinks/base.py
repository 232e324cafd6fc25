"""The interface of sinks."""

from __future__ import annotations

from typing import Protocol

from shapetrace.events.model import Trace


class Sink(Protocol):
    """A place for traces."""

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        ...

    def open(self) -> None:
        """Take hold of the resource, or raise an error of ours that says why it cannot be had."""
        ...

    def write(self, trace: Trace) -> None:
        """Put a trace there; a later one takes the place of an earlier one."""
        ...

    def close(self) -> None:
        """Let go of the resource."""
        ...
