"""One model's tracer, as a debug session wants it: it tells of values, and keeps none.

The language server hears from each process by itself, so nothing goes to other ranks, and nothing
is written to the program's own standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from torch.nn import Module

from shapetrace._errors import ShapetraceError
from shapetrace.agent.hook_hiding import hide_hooks, look_away
from shapetrace.capture.listening import FunctionListener, ModuleListener, RootListener
from shapetrace.capture.problems import CaptureIssue
from shapetrace.capture.ranks.gathering import Alone, Gathering
from shapetrace.capture.saving import Outlet
from shapetrace.capture.structure import unwrapped
from shapetrace.capture.tracer import ModelTracer
from shapetrace.transport.captures import Mode

_MODES: Final[tuple[Mode, Mode]] = ("train", "eval")


class Listener(Protocol):
    """Who hears of what a tracer sees."""

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


def hide() -> None:
    """Keep the debugger out of the library functions that hooks call: no step is to end there."""
    look_away(
        (FunctionListener, ("entered", "entered_by", "looked_at", "looked_at_all", "returned")),
        (RootListener, ("begins", "ends", "fails")),
        (ModuleListener, ("begins", "ends", "fails")),
    )


def trace(model: Module, paths: Sequence[str], listener: Listener) -> Callable[[], None]:
    """Have values of a model told of from its next call on; returns how to end that."""
    kind = type(unwrapped(model)).__name__
    outlets: list[Outlet] = []
    read: list[str] = []
    for path in paths:
        try:
            # One for each mode: what is unchanged since the training is new to the evaluation.
            outlets += [_outlet(kind, path, mode, listener) for mode in _MODES]
            read.append(path)
        except ShapetraceError as error:
            listener.noted(path, str(error))
    if not outlets:
        return _nothing
    tracer = _Tracer(model, outlets, listener)
    tracer.__enter__()
    tracer.let_model_go()
    hide_hooks()
    for path in read:
        if path not in tracer.missed:
            listener.met(path)

    def end() -> None:
        tracer.__exit__(None, None, None)

    return end


class _Tracer(ModelTracer):
    """A tracer that tells a listener what is wrong."""

    def __init__(self, model: Module, outlets: Sequence[Outlet], listener: Listener) -> None:
        super().__init__(model, outlets)
        self.missed: set[str] = set()
        """The paths that match nothing in the model."""
        self._listener = listener

    def gathering(self, label: str) -> Gathering:
        """Each process tells its own language server connection what it has captured."""
        return Alone()

    def note(self, issue: CaptureIssue) -> None:
        """Tell of something that is not captured."""
        if issue.kind == "unmatched" and issue.path is not None:
            self.missed.add(issue.path)
            self._listener.missed(issue.path, issue.text)
        else:
            self._listener.noted(issue.path or "", issue.text)


def _outlet(model: str, path: str, mode: Mode, listener: Listener) -> Outlet:
    def tell(name: str, value: Any, iteration: int) -> None:
        listener.captured(model, path, name, value, iteration, mode)

    return Outlet(path, mode, tell)


def _nothing() -> None:
    """Nothing is to be ended."""


# Once, as nothing else in the process knows of these.
hide()
