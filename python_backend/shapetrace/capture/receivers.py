"""Receivers of captured values: for which paths, in which iterations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from shapetrace._errors import CaptureError
from shapetrace.capture.iterations import Iteration
from shapetrace.capture.paths import ValuePath, parse
from shapetrace.capture.results import Mode


class CallbackError(Exception):
    """An exception of a user's callback, which is shown to the user."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


class Receiver(ABC):
    """Gets the changed values of some paths."""

    def __init__(self, paths: Iterable[str], trace_interval: int, mode: Mode | None) -> None:
        self.paths: tuple[ValuePath, ...] = tuple(parse(path) for path in paths)
        if mode not in ("train", "eval", None):
            raise CaptureError(f"mode must be 'train', 'eval' or None, not {mode!r}")
        self.mode = mode
        self.trace_interval = interval("trace_interval", trace_interval)
        self.captured: set[str] = set()
        """The names that a value was captured for."""

    def is_traced(self, mode: Mode, iteration: int) -> bool:
        """Return whether an iteration is captured."""
        return self.mode in (None, mode) and iteration % self.trace_interval == 0

    @abstractmethod
    def save(self, name: str, value: Any, iteration: Iteration) -> None:
        """Receive a changed value; raises ``CannotCopyError`` or ``CallbackError``."""

    def save_ordinary(self, name: str, value: Tensor, iteration: Iteration) -> None:
        """Like ``save``, for an ordinary tensor."""
        self.save(name, value, iteration)


def interval(name: str, value: int) -> int:
    """Check an interval; raises a ``CaptureError`` that names the option."""
    if type(value) is not int or value < 1:
        raise CaptureError(f"{name} must be a whole number from 1 on, not {value!r}")
    return value
