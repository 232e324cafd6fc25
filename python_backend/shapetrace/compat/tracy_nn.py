"""``Tracer``, ``trace_model``, ``Color`` and ``TensorOpsTracer``, the names of tracy_nn.

● TRACING MHA STARTED

train.py · torch 2.13.0 · 1 forward pass · 2 module calls · 3 ops

MHA  f32[2,5,6] → f32[2,5,6]                               train.py:52
├─ query  Linear(in_features=6, ...)  f32[2,5,6] → f32[2,5,6]   mha.py:30
...

● TRACING MHA COMPLETE
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from shapetrace._asynchronous import (
    called_by_program,
    clean_if_asynchronous,
    is_asynchronous,
    surely,
)
from shapetrace._errors import AlreadyTracingError
from shapetrace._exception_table import catching_everywhere
from shapetrace.compat.output import RUNNING_ALREADY, joined, live_output, show, view_of, warn
from shapetrace.live import LiveOutput
from shapetrace.process.early_exit import EarlyExit
from shapetrace.recording import LiveRecording, Recording, trace
from shapetrace.views import StyledText
from shapetrace.views.styled import Line, printable

_NOT_STOPPED = "The program ended before stop() was called; this was recorded until then."


class Color:
    """ANSI codes of colours, all empty where stdout was no terminal when they were loaded."""

    PURPLE = "\033[95m"
    CYAN = "\033[96m"
    DARKCYAN = "\033[36m"
    BLUE = "\033[94m"
    GREEN = "\033[92m"
    YELLOW = "\033[93m"
    RED = "\033[91m"
    ORANGE = "\033[33m"
    BOLD = "\033[1m"
    UNDERLINE = "\033[4m"
    END = "\033[0m"
    GREY = "\033[90m"

    _is_disabled = False
    """Whether ``disable`` was called. Who prints without that looks at what stdout is by then."""

    @classmethod
    def disable(cls) -> None:
        """Print in no colours from now on."""
        cls._is_disabled = True
        cls._clear()

    @classmethod
    def _clear(cls) -> None:
        for name in dir(cls):
            if name.isupper():
                setattr(cls, name, "")


try:
    _is_terminal = sys.stdout.isatty()
except (AttributeError, ValueError):
    _is_terminal = False  # None, or closed
if not _is_terminal:
    Color._clear()


class TensorOpsTracer:
    """Prints the operations on tensors between its two methods, with nothing around them."""

    @called_by_program
    def __init__(self, color_class: Any = Color) -> None:
        self.Color = color_class
        self._recording: LiveRecording | None = None
        self._starting: LiveRecording | None = None
        self._early_exit = EarlyExit(self._tell_before_end)

    @catching_everywhere
    def _start_tensor_ops_tracing(self) -> None:
        """Begin to record."""
        try:
            if self._recording is not None:
                return
            recording = self._starting = trace()
            try:
                recording.start(2)
                self._recording = recording
                self._early_exit.watch()
            except AlreadyTracingError:
                warn(f"TensorOpsTracer records nothing: {RUNNING_ALREADY}.")
            self._starting = None
        except BaseException as error:
            surely(self._give_up)
            clean_if_asynchronous(error)
            raise

    def _give_up(self) -> None:
        if self._starting is not None:
            self._early_exit.cancel()
            self._starting.stop()
            self._recording = self._starting = None

    @catching_everywhere
    def _stop_tensor_ops_tracing(self) -> None:
        """End the recording and print it."""
        try:
            recording = self._recording
            if recording is not None:
                self._show(recording)
        except BaseException as error:
            surely(self._leave)
            clean_if_asynchronous(error)
            raise

    def _tell_before_end(self, reason: str | None) -> None:
        """Print what is known so far: the process will not come to the end of it."""
        if reason is not None:
            warn(reason)
        if self._recording is not None:
            self._show(self._recording, is_over=False)

    def _show(self, recording: LiveRecording, *, is_over: bool = True) -> None:
        try:
            if is_over:
                self._leave()
            text = view_of(recording.trace, "listing", verbose=True)
        except Exception as error:
            if is_asynchronous(error):
                raise
            # Ours to regret, not the program's to handle.
            warn(f"TensorOpsTracer cannot show what it recorded: {type(error).__name__}: {error}")
            return
        show(text, may_color=_may_color(self.Color))

    def _leave(self) -> None:
        if self._recording is not None:
            self._early_exit.cancel()
            self._recording.stop()
            self._recording = None


def _may_color(color_class: Any) -> bool:
    is_disabled = getattr(color_class, "_is_disabled", None)
    return bool(getattr(color_class, "END", True)) if is_disabled is None else not is_disabled


class Tracer:
    """Prints, once it is stopped, what ran since it was started.

        tracer = Tracer("MHA")
        with tracer.trace(model):
            model(x)

    A trace that is never stopped is printed when the program ends.
    """

    @called_by_program
    def __init__(self, name: str = "Neural Network", *, live: bool | None = None) -> None:
        self.name = name
        self.live = live
        """Print each call as it comes, and once, before the whole is printed; None for that where
        stdout is a terminal."""
        self._live: LiveOutput | None = None
        self.model: Any = None
        """The model to record if ``start`` or ``trace`` is given none."""
        self._process = os.getpid()
        self._early_exit = EarlyExit(self._tell_before_end)
        self._running: LiveRecording | None = None
        self._starting: LiveRecording | None = None
        self._recording: LiveRecording | None = None
        self._printed = StyledText(())
        self.tensor_ops_tracer = TensorOpsTracer(Color)
        """Prints operations by themselves; ``start`` has no need of it."""

    @property
    def _is_active(self) -> bool:
        return self.is_active

    @property
    def is_active(self) -> bool:
        """Whether it is started and not stopped."""
        return self._running is not None

    @property
    def recording(self) -> Recording | None:
        """The recording of the latest start, so far or complete; None before the first one."""
        return self._recording

    @property
    def text(self) -> str:
        """The output of the latest stop, without colours."""
        return self._printed.plain()

    @catching_everywhere
    def start(self, model: Any = None) -> None:
        """Begin to record; module paths begin at ``model``."""
        try:
            self._start(model, depth=2)
        except BaseException as error:
            surely(self._give_up)
            clean_if_asynchronous(error)
            raise

    @catching_everywhere
    def stop(self) -> None:
        """End the recording and print it."""
        try:
            self._stop()
        except BaseException as error:
            surely(self._leave)
            clean_if_asynchronous(error)
            raise

    @called_by_program
    def trace(self, model: Any = None) -> _Traced:
        """Record what a ``with`` block does."""
        return _Traced(self, model)

    def __enter__(self) -> Self:
        """Only promise to stop: starting is left to ``start``."""
        return self

    @catching_everywhere
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except BaseException as error:
            surely(self._leave)
            clean_if_asynchronous(error)
            raise

    def _start(self, model: Any, depth: int) -> None:
        """Begin to record; ``depth`` says how far out the caller of the public method is."""
        if self._running is not None:
            warn(f"Tracer {self.name} is already active!")
            return
        recording = self._starting = trace(self.model if model is None else model)
        live = live_output(self.live, "torch", may_color=_may_color(Color))
        try:
            recording.start(depth + 1, live)
        except AlreadyTracingError:
            self._starting = None
            warn(f"Tracer {self.name} records nothing: {RUNNING_ALREADY}.")
            return
        self._running = self._recording = recording
        self._live = live
        if live is not None:
            show(StyledText((self._banner("STARTED"), ())), may_color=_may_color(Color))
        self._process = os.getpid()
        atexit.register(self._stop_at_exit)
        self._early_exit.watch()
        self._starting = None

    def _give_up(self) -> None:
        """It could not be started."""
        if self._starting is not None:
            self._starting.stop()
            if self._running is self._starting:
                self._leave()
            self._starting = None

    def _leave(self) -> None:
        """End the recording, if there is one."""
        if self._running is not None:
            atexit.unregister(self._stop_at_exit)
            self._early_exit.cancel()
            if os.getpid() == self._process:  # A fork is not watched.
                self._running.stop()
            self._running = None

    def _stop(self, remarks: Iterable[Line] = ()) -> None:
        recording = self._running
        if recording is not None:
            self._show(recording, remarks)

    def _tell_before_end(self, reason: str | None) -> None:
        """Print what is known so far: the process will not come to the end of it."""
        if self._running is not None:
            remarks: list[Line] = [] if reason is None else [((reason, "note"),), ()]
            self._show(self._running, remarks, is_over=False)

    def _show(
        self, recording: LiveRecording, remarks: Iterable[Line], *, is_over: bool = True
    ) -> None:
        try:
            if is_over:
                self._leave()
                if os.getpid() != self._process:
                    return  # The process that was started prints.
            if self._live is not None:
                self._live.step(final=True)
                show(StyledText(((),)))
            tree = view_of(recording.trace, "tree", verbose=True)
        except Exception as error:
            if is_asynchronous(error):
                raise
            # Ours to regret, not the program's to handle.
            warn(
                f"Tracer {self.name} cannot show what it recorded: {type(error).__name__}: {error}"
            )
            return
        begin, end = self._banner("STARTED"), self._banner("COMPLETE")
        printed = joined((tree, StyledText((*remarks, end))))
        self._printed = joined((StyledText((begin,)), printed))
        show(self._printed if self._live is None else printed, may_color=_may_color(Color))

    def _stop_at_exit(self) -> None:
        self._stop(remarks=((((_NOT_STOPPED, "note"),)), ()))

    def _banner(self, state: str) -> Line:
        return (("● ", "name"), (printable(f"TRACING {self.name} {state}"), "heading"))


class _Traced:
    """Starts a tracer where its ``with`` block begins, and stops it where that ends."""

    @called_by_program
    def __init__(self, tracer: Tracer, model: Any) -> None:
        self._tracer = tracer
        self._model = model

    @catching_everywhere
    def __enter__(self) -> Tracer:
        try:
            self._tracer._start(self._model, depth=2)
            return self._tracer
        except BaseException as error:
            surely(self._tracer._give_up)
            clean_if_asynchronous(error)
            raise

    @catching_everywhere
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._tracer.stop()
        except BaseException as error:
            surely(self._tracer._leave)
            clean_if_asynchronous(error)
            raise


def trace_model(model: Any, name: str = "Quick Trace") -> Tracer:
    """Make a tracer that records ``model`` when it is started with no other one."""
    tracer = Tracer(name)
    tracer.model = model
    return tracer
