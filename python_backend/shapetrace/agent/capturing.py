"""Capturing from one model, as a debug session wants it: values are told of, and none is kept.

The language server hears from each process by itself, so nothing goes to other ranks, and nothing
is written to the program's own standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from torch.nn import Module

from shapetrace._asynchronous import clean_if_asynchronous, surely
from shapetrace._errors import ShapetraceError
from shapetrace._exception_table import catching_everywhere
from shapetrace.agent.hiding import unseen
from shapetrace.agent.hook_hiding import hide_hooks
from shapetrace.capture.capture_session import CaptureSession
from shapetrace.capture.copies import shown
from shapetrace.capture.iterations import Iteration
from shapetrace.capture.problems import CaptureIssue
from shapetrace.capture.receivers import Receiver
from shapetrace.capture.structure import unwrapped
from shapetrace.transport.requested import Mode

_MODES: Final[tuple[Mode, Mode]] = ("train", "eval")


class ModelListener(Protocol):
    """Who hears of what a model does."""

    def captured(
        self, model: str, path: str, name: str, value: Any, iteration: int, mode: Mode
    ) -> None:
        """A value was captured; called where that was done."""

    def missed(self, path: str, reason: str) -> None:
        """The model has nothing that a path could mean."""

    def met(self, path: str) -> None:
        """It has."""

    def noted(self, path: str, reason: str) -> None:
        """Something is not captured; the path is empty where that is about no single one."""


@catching_everywhere
def trace(model: Module, paths: Sequence[str], listener: ModelListener) -> Callable[[], None]:
    """Have values of a model told of from its next call on; returns how to end that."""
    session: CaptureSession | None = None
    try:
        receivers = _receivers(type(unwrapped(model)).__name__, paths, listener)
        if not receivers:
            return _nothing
        notes = _Notes(listener)
        counts: dict[Mode, int] = dict.fromkeys(_MODES, 0)
        # Of ours alone: what a tracer of the program's own calls may be the program's.
        session = CaptureSession(model, receivers, counts, notes.note, _ended, unseen)
        session.start(model)
        hide_hooks()
        for path in dict.fromkeys(receiver.path for receiver in receivers):
            if path not in notes.missed:
                listener.met(path)
        return partial(_end, session)
    except BaseException as error:
        if session is not None:
            surely(session.stop)
        clean_if_asynchronous(error)
        raise


class _Teller(Receiver):
    """Tells a listener of each value of one path."""

    def __init__(self, model: str, path: str, mode: Mode, listener: ModelListener) -> None:
        super().__init__([path], 1, mode)
        self.path: Final = path
        self._mode: Final[Mode] = mode
        self._model: Final = model
        self._listener: Final = listener

    def save(self, name: str, value: Any, iteration: Iteration) -> None:
        """Tell of a value where it is."""

        def tell(value: Any) -> None:
            self._listener.captured(
                self._model, self.path, name, value, iteration.number, self._mode
            )

        shown(value, tell)
        self.captured.add(name)


class _Notes:
    """Tells a listener what is wrong, once."""

    def __init__(self, listener: ModelListener) -> None:
        self.missed: set[str] = set()
        """The paths that match nothing in the model."""
        self._listener = listener

    def note(self, issue: CaptureIssue) -> None:
        """Tell of something that is not captured."""
        if issue.kind == "unmatched" and issue.path is not None:
            self.missed.add(issue.path)
            self._listener.missed(issue.path, issue.text)
        else:
            self._listener.noted(issue.path or "", issue.text)


def _receivers(model: str, paths: Sequence[str], listener: ModelListener) -> list[_Teller]:
    found: list[_Teller] = []
    for path in paths:
        try:
            # One for each mode: what is unchanged since the training is new to the evaluation.
            found += [_Teller(model, path, mode, listener) for mode in _MODES]
        except ShapetraceError as error:
            listener.noted(path, str(error))
    return found


def _end(session: CaptureSession) -> None:
    surely(session.stop)
    if not session.is_forked:
        session.tell_of_silence()


def _ended(iteration: Iteration) -> None:
    """Nothing is to be gathered."""


def _nothing() -> None:
    """Nothing is to be ended."""
