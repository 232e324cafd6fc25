"""A program whose model is captured from its first call on, until the program ends."""

from __future__ import annotations

import atexit
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shapetrace._asynchronous import is_asynchronous, suppressing
from shapetrace._dynamo import TO_SEE_IT_ALL, regions_begun
from shapetrace._errors import CaptureError, CaptureFileError
from shapetrace.cli import notes
from shapetrace.cli.program_end import keep_interrupt
from shapetrace.cli.spawned_processes import SpawnedProcesses
from shapetrace.cli.terminal import Terminal, ViewChoice
from shapetrace.cli.traced_run import OUR_FAILURE, import_path
from shapetrace.process.exits import WatchedExits
from shapetrace.process.undisturbed import undisturbed
from shapetrace.recorder.arrival import when_torch_is_imported

if TYPE_CHECKING:
    from collections.abc import Callable

    from shapetrace.capture.finding import ModelFinder
    from shapetrace.saving.tracer import ModelTracer


@dataclass(frozen=True, slots=True)
class CaptureChoice:
    """The values that the user asked for, and where to write them."""

    paths: tuple[str, ...]
    trace_interval: int = 1
    gathering_interval: int = 1
    train_only: bool = False
    eval_only: bool = False
    output: str | None = None
    overwrite: bool = False
    shards: bool = False
    program: str | None = None
    """The file that is run, which is not to be replaced."""


class CapturedRun:
    """Captures values of a program's model, and hands them out when the program ends."""

    def __init__(self, choice: CaptureChoice, terminal: Terminal, look: ViewChoice) -> None:
        self._choice = choice
        self._terminal = terminal
        self._look = look
        self._pid = os.getpid()
        self._own_path = list(sys.path)
        self._exits = WatchedExits(self._before_leaving)
        self._cancel_waiting: Callable[[], None] = _nothing
        self._finder: ModelFinder | None = None
        self._begun: list[tuple[ModelTracer, object]] = []
        """The tracer, once it has begun."""
        self._saver: Any = None
        self._tally: Any = None
        self._place: str | None = None
        self._why_not: str | None = None
        self._is_over = False
        self._spawned = SpawnedProcesses()
        self._problems: list[str] = []

    def begin(self) -> None:
        """Get ready; nothing of the program has run."""
        from shapetrace.capture.paths import parse

        for path in self._choice.paths:
            parse(path)
        if self._choice.shards and self._choice.output is None:
            raise CaptureError("--shards needs a file: -o run.h5")
        if self._choice.output is not None:
            _check_place(self._choice.output, self._choice)
            if self._choice.shards:
                from shapetrace.hdf5.rank import this_process
                from shapetrace.hdf5.shards import shard_path

                own = shard_path(self._choice.output, this_process()[0])
                _check_place(own, self._choice)
            # The program may change the folder before it calls its model, or afterwards.
            self._place = os.path.abspath(self._choice.output)
        atexit.register(self._at_exit)
        self._exits.install()
        self._spawned.begin()
        self._cancel_waiting = when_torch_is_imported(self._torch_arrived)

    def abandon(self) -> None:
        """There was no program to run after all."""
        atexit.unregister(self._at_exit)
        self._exits.remove()
        self._spawned.end()
        self._cancel_waiting()
        if self._finder is not None:
            self._finder.stop()

    def finish(self) -> int:
        """Hand everything out, once; the exit code."""
        if self._is_over or os.getpid() != self._pid:
            return 0
        self._is_over = True
        self._cancel_waiting()
        self._exits.remove()
        self._spawned.end()
        with import_path(self._own_path):
            try:
                return undisturbed(self._hand_out)
            except KeyboardInterrupt:
                return 0  # Ctrl-C once more: the user does not want the rest.

    def _at_exit(self) -> None:
        code = self.finish()
        if code:
            self._exits.leave(code)
        keep_interrupt()

    def _before_leaving(self) -> None:
        self.finish()

    def _torch_arrived(self) -> None:
        if os.getpid() != self._pid or self._is_over:
            return
        try:
            from shapetrace.capture.finding import ModelFinder
            from shapetrace.capture.paths import parse

            if self._finder is None:
                paths = [parse(path) for path in self._choice.paths]
                self._finder = ModelFinder(paths, self._found)
            self._load()
            self._finder.start()
        except Exception as error:
            if is_asynchronous(error):
                raise
            self._why_not = f"capturing could not start: {notes.on_one_line(error)}"

    def _load(self) -> None:
        """Import what the first call needs: where exceptions come in there, none gets through."""
        import_module("shapetrace.saving.tracer")
        if self._place is None:
            import_module("shapetrace.saving.tally")
        else:
            import_module("shapetrace.hdf5.saver")
            from shapetrace.hdf5.library import library

            with suppressing(CaptureFileError):  # reported when a model is found
                library()

    def _found(self, module: Any) -> Any:
        """The program calls its model for the first time."""
        from shapetrace.capture.structure import unwrapped
        from shapetrace.saving.tracer import ModelTracer

        with import_path(self._own_path):
            if not self._begun:
                tracer = self._made_for(module)
                # In one call, in which no exception of the program's comes once it has begun.
                self._begun.extend(zip([tracer], map(ModelTracer.__enter__, [tracer]), strict=True))
        ((tracer, _),) = self._begun
        tracer.let_model_go()
        if os.environ.get("RANK", "0") == "0":
            self._terminal.note(f"capturing from {type(unwrapped(module)).__name__}")
        return tracer.root_listener()

    def _made_for(self, module: Any) -> ModelTracer:
        from shapetrace.saving.tracer import ModelTracer

        choice = self._choice
        callbacks: dict[str, list[Any]] = {"pre_gather": [], "post_gather": []}
        if self._place is None:
            from shapetrace.saving.tally import Tally

            self._tally = Tally()
            callbacks["post_gather"].append(self._tally)
        else:
            from shapetrace.hdf5.saver import H5PYSaverCallback

            self._saver = H5PYSaverCallback(
                self._place, overwrite=choice.overwrite, shards=choice.shards
            )
            callbacks["pre_gather" if choice.shards else "post_gather"].append(self._saver)
        tracer = ModelTracer(
            module,
            choice.paths,
            choice.trace_interval,
            choice.gathering_interval,
            pre_gather_callbacks=callbacks["pre_gather"],
            post_gather_callbacks=callbacks["post_gather"],
            eval_only=choice.eval_only,
            train_only=choice.train_only,
        )
        tracer.say = self._problems.append
        return tracer

    def _hand_out(self) -> int:
        code = self._hand_out_values()
        others = self._spawned.line("captured")
        if others is not None:
            self._terminal.note(others)
        return code

    def _hand_out_values(self) -> int:
        finder = self._finder
        if finder is not None:
            finder.stop()
        if not self._begun:
            self._terminal.note(self._why_nothing())
            for line in finder.misses if finder is not None else ():
                self._terminal.note(line)
            return 0
        is_whole = True
        ((tracer, _),) = self._begun
        try:
            tracer.__exit__(None, None, None)
        except Exception as error:
            self._terminal.note(f"not all values could be gathered: {notes.on_one_line(error)}")
            is_whole = False
        if self._saver is not None:
            self._saver.close()
            is_whole = is_whole and not self._saver.has_failed
        for line in dict.fromkeys([*self._problems, *tracer.problems]):
            self._terminal.note(line)
        if self._tally is not None and self._tally.has_any:
            self._terminal.show_captured(self._tally.summary("captured"), self._look)
        elif self._saver is not None and os.path.exists(str(self._place)):
            self._terminal.note(f"wrote {self._choice.output}")
        return 0 if is_whole else OUR_FAILURE

    def _why_nothing(self) -> str:
        if self._why_not is not None:
            return self._why_not
        if sys.modules.get("torch") is None:
            return notes.NOT_IMPORTED.replace("trace", "capture")
        if self._finder is not None and self._finder.misses:
            return "nothing was captured: no called module has these values"
        if self._finder is not None and self._finder.was_interrupted:
            return (
                "nothing was captured: each time when capturing was to begin, an exception arrived "
                "from a signal handler or another thread"
            )
        line = "nothing was captured: no module with parameters was called"
        if regions_begun():
            line += f" outside of code compiled by torch.compile; {TO_SEE_IT_ALL}"
        return line


def _check_place(path: str, choice: CaptureChoice) -> None:
    """Refuse at once what could not be written in the end."""
    from shapetrace.sinks.file import OutputFile

    if os.path.lexists(path):
        if not choice.overwrite:
            raise CaptureError(f"{path} exists already; --overwrite replaces it")
        if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
            raise CaptureError(f"cannot write {path}: HDF5 needs a file; name one, such as run.h5")
    OutputFile(path, None, () if choice.program is None else (choice.program,)).open()


def _nothing() -> None:
    """There is nothing to cancel yet."""
