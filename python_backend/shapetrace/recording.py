"""Recordings as users hold them: one that runs, and one that was saved."""

from __future__ import annotations

import os
import sys
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from shapetrace._asynchronous import (
    called_by_program,
    clean_if_asynchronous,
    is_asynchronous,
    surely,
)
from shapetrace._exception_table import catching_everywhere
from shapetrace.events.model import Coverage, Frame, ModuleCall, Op, Run, Trace, Variable

if TYPE_CHECKING:
    from shapetrace.live import LiveOutput
    from shapetrace.recorder.session import Recorder

DEFAULT_WIDTH = 100
LEVELS = ("torch", "aten")


class Recording:
    """A trace with its parts at hand; printing it shows the tree."""

    @property
    def trace(self) -> Trace:
        """Everything that was seen, as events."""
        raise NotImplementedError

    @property
    def run(self) -> Run:
        """The program that ran."""
        return self.trace.run

    @property
    def modules(self) -> tuple[ModuleCall, ...]:
        """The module calls, in the order in which they were first seen."""
        return self.trace.modules

    @property
    def ops(self) -> tuple[Op, ...]:
        """The torch calls, in the order in which they were first seen."""
        return self.trace.ops

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The places on the stacks that ops and module calls refer to."""
        return self.trace.frames

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The values that names were given."""
        return self.trace.variables

    @property
    def coverage(self) -> tuple[Coverage, ...]:
        """The code that ran and was not recorded."""
        return self.trace.coverage

    @called_by_program
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file, whole or not at all."""
        from shapetrace.events import codec

        codec.save(self.trace, path)

    @called_by_program
    def render(self, view: str = "tree", width: int = DEFAULT_WIDTH, color: bool = False) -> str:
        """The trace as text: tree, listing, table, markdown or json."""
        from shapetrace.views import ViewOptions, render

        return render(self.trace, view, ViewOptions(width=width), color=color)

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        trace = self.trace
        return f"<{type(self).__name__}: {len(trace.modules)} module calls, {len(trace.ops)} ops>"


class SavedRecording(Recording):
    """A trace that was read from a file."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def trace(self) -> Trace:
        """Everything that was seen, as events."""
        return self._trace


class LiveRecording(Recording):
    """Records while its ``with`` block runs, and keeps what it saw."""

    def __init__(self, model: Any, options: dict[str, Any]) -> None:
        self._model = None if model is None else weakref.ref(model)
        self._options = options
        self._recorder: Recorder | None = None
        self._starting: Recorder | None = None
        self._stopped: Recorder | None = None
        self._trace: Trace | None = None

    @catching_everywhere
    def start(self, depth: int = 1, live: LiveOutput | None = None) -> Self:
        """Begin to record; ``depth`` says how far out the frame to be shown outermost is.

        What is recorded is written ``live`` as well, where that is given.
        """
        try:
            from shapetrace.recorder.options import RecorderOptions
            from shapetrace.recorder.session import Recorder

            model = None if self._model is None else self._model()
            on_change = None if live is None else live.step
            options = RecorderOptions(**self._options, on_change=on_change)
            recorder = self._starting = Recorder(options, model)
            if live is not None:
                live.watch(recorder)
            recorder.start(sys._getframe(depth))
            self._recorder, self._starting = recorder, None
            self._stopped, self._trace = None, None
            return self
        except BaseException as error:
            surely(self._give_up)
            clean_if_asynchronous(error)
            raise

    __enter__ = start

    @catching_everywhere
    def stop(self) -> None:
        """End the recording; what was seen stays."""
        try:
            recorder = self._recorder
            if recorder is None:
                return
            recorder.stop()
            try:
                self._trace = recorder.snapshot()
            except Exception as error:
                if is_asynchronous(error):
                    raise
                return  # the error is raised when the trace is asked for, not in the program
            self._recorder, self._stopped = None, recorder
        except BaseException as error:
            surely(self._stop_recorders)
            clean_if_asynchronous(error)
            raise

    def _give_up(self) -> None:
        if self._starting is not None:
            self._starting.stop()
            self._starting = None

    def _stop_recorders(self) -> None:
        for recorder in (self._recorder, self._stopped):
            if recorder is not None:
                recorder.stop()  # where another thread did, something of ours may be left here

    def wake(self) -> None:
        """Look at everything again, where the recording had settled."""
        if self._recorder is not None:
            self._recorder.wake()

    @catching_everywhere
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop()
            self._stop_recorders()
            if error is not None:
                from shapetrace.recorder.tracebacks import take_out_our_frames

                take_out_our_frames(error)
        except BaseException as another:
            surely(self._stop_recorders)
            clean_if_asynchronous(another)
            raise

    @property
    @called_by_program
    def trace(self) -> Trace:
        """Everything that was seen so far, as events."""
        if self._recorder is not None:
            return self._recorder.snapshot()
        if self._trace is None:
            raise RuntimeError(
                "nothing was recorded yet; use it as `with shapetrace.trace() as trace:`"
            )
        return self._trace


@called_by_program
def trace(
    model: Any = None,
    *,
    level: str = "torch",
    passes: int | None = None,
    settle_after: int | None = None,
    expand_fused: bool = False,
    fingerprint: bool = False,
) -> LiveRecording:
    """Record what the ``with`` block does with torch.

    Args:
        model: the module that dotted paths begin at; else the outermost module called.
        level: ``torch`` for calls as they were written, ``aten`` for the kernels below as well.
        passes: stop recording after this many outermost forward passes.
        settle_after: rest after this many forward passes that brought nothing new.
        expand_fused: look into modules for which torch would take a fused path, at the price that
            it does not take it.
        fingerprint: look at the values that calls return as well, and keep a few numbers of each,
            by which two runs can be compared.

    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    limits: dict[str, Any] = {"passes": passes, "settle_after": settle_after}
    for name, value in limits.items():
        if value is not None and not (type(value) is int and value >= 1):
            raise ValueError(f"{name} must be a whole number from 1 on, not {value!r}")
    try:
        weakref.ref(model)
    except TypeError:
        if model is not None:
            kind = type(model).__name__
            raise TypeError(f"model must be an nn.Module, not {kind}") from None
    options = {
        "level": level,
        "passes": passes,
        "settle_after": settle_after,
        "expand_fused": expand_fused,
        "fingerprint": fingerprint,
    }
    return LiveRecording(model, options)


@called_by_program
def load(path: str | os.PathLike[str]) -> SavedRecording:
    """Read a trace from a file."""
    from shapetrace.events import codec

    return SavedRecording(codec.load(path))
