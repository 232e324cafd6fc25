"""One traced run of a program: from before its first line to after its last.

The recorder starts once the program has imported torch. The trace is given out by the exit handler
that was registered first and so runs last: after the program's own output, its traceback and its
exit handlers. Only the process that was started gives it out; children that it forks do not.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import TraceFileError
from shapetrace.cli import notes
from shapetrace.cli.helper_thread import HelperThread
from shapetrace.cli.program_end import keep_interrupt
from shapetrace.cli.progress import Progress
from shapetrace.cli.spawned_processes import SpawnedProcesses
from shapetrace.cli.terminal import Terminal, ViewChoice
from shapetrace.process.early_exit import ended_by
from shapetrace.process.ending import ProgramEnding, interrupt_main_thread
from shapetrace.process.exits import WatchedExits
from shapetrace.process.fatal import FatalSignals
from shapetrace.process.undisturbed import undisturbed
from shapetrace.recorder.arrival import when_torch_is_imported

if TYPE_CHECKING:
    from shapetrace.events.model import Trace
    from shapetrace.live import LiveOutput
    from shapetrace.recorder.session import Recorder
    from shapetrace.sinks.base import Sink

OUR_FAILURE = 2
"""The exit code for what is not the program's fault."""

LIVE_SECONDS = 0.25
"""How long the newest call waits to be printed where none comes after it."""

SECONDS_FOR_OTHER_THREAD = 30.0
"""How long to wait for a trace that another thread is giving out."""


@dataclass(frozen=True, slots=True)
class RecordingChoice:
    """The recording that the user asked for, and when it ends."""

    level: str = "torch"
    passes: int | None = 1
    """None for all."""
    stop_after_trace: bool = False
    settle_after: int | None = None
    expand_fused: bool = False
    fingerprint: bool = False
    live: bool = False
    """Print each call as it comes."""


class TracedRun:
    """Records a program and gives out the trace when it ends, however it ends."""

    def __init__(
        self,
        recording: RecordingChoice,
        view: ViewChoice,
        sink: Sink | None,
        terminal: Terminal,
        argv: tuple[str, ...],
    ) -> None:
        self._recording = recording
        self._view = view
        self._sink = sink
        self._terminal = terminal
        self._pid = os.getpid()
        self._began_at = datetime.now(UTC)
        self._started = self._began_at.isoformat(timespec="milliseconds")
        self._argv = argv
        self._own_path = list(sys.path)
        self._recorder: Recorder | None = None
        self._why_not_recorded: str | None = None
        self._file_is_whole = False
        self._cancel_waiting: Callable[[], None] = _nothing
        self._exits = WatchedExits(self._before_leaving)
        self.ending = ProgramEnding(interrupt_main_thread, self._end_process)
        self._helper = HelperThread(self._attend)
        self._progress: Progress | None = None
        self._spawned = SpawnedProcesses()
        self._live: LiveOutput | None = None
        self._fatal: FatalSignals | None = None
        self._finishing = _thread.allocate_lock()
        self._finisher: int | None = None

    def begin(self) -> None:
        """Get ready; nothing of the program has run."""
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
        self._helper.stop()
        if self._fatal is not None:
            self._fatal.remove()
        if self._recorder is not None:
            self._recorder.stop()

    def finish(self, *, wait: bool = True) -> bool:
        """Give out the trace, once, on any thread; whether all of it could be given out.

        Where another thread is doing so, waits for that, or returns False if not to ``wait``.
        """
        if os.getpid() != self._pid or self._finisher == _thread.get_ident():
            return True
        if not self._finishing.acquire(timeout=SECONDS_FOR_OTHER_THREAD if wait else 0):
            return False
        try:
            if self._finisher is not None:
                return True
            self._finisher = _thread.get_ident()
            with import_path(self._own_path):
                return self._give_out()
        except KeyboardInterrupt:
            # Ctrl-C once more: the user does not want the rest.
            return True
        finally:
            self._finishing.release()

    def _at_exit(self) -> None:
        if not undisturbed(self.finish):
            # An exit handler cannot change the exit code in any other way, and this is the last.
            self._leave(OUR_FAILURE)
        keep_interrupt()

    def _torch_arrived(self) -> None:
        if os.getpid() != self._pid or self._finisher is not None:
            return
        try:
            if self._recorder is None or not self._recorder.active:
                self._start_recorder()
        except Exception as error:
            if is_asynchronous(error):
                raise
            self._recorder = None
            self._why_not_recorded = f"the recorder could not start: {notes.on_one_line(error)}"
            return
        if self._fatal is None:
            self._fatal = FatalSignals(self._before_dying)
        self._fatal.install()
        self._helper.start()

    def _start_recorder(self) -> None:
        from shapetrace.recorder.options import RecorderOptions
        from shapetrace.recorder.session import Recorder

        choice = self._recording
        options = RecorderOptions(
            level=choice.level,
            passes=choice.passes,
            through_step=not choice.stop_after_trace,
            settle_after=choice.settle_after,
            expand_fused=choice.expand_fused,
            fingerprint=choice.fingerprint,
            program_began_at=self._began_at.timestamp(),
            on_change=self._print_news if choice.live else None,
        )
        recorder = Recorder(options, on_complete=self._recording_is_complete)
        if choice.live:
            self._live = self._live_output(recorder)
        file = self._sink.name if self._sink is not None else None
        self._progress = Progress(
            self._terminal.stderr, recorder.counters, lambda: recorder.complete, file
        )
        # Known before it starts: an exception of the program's may come just afterwards.
        self._recorder = recorder
        recorder.start()

    def _recording_is_complete(self) -> None:
        """Called on the program's thread, which a SystemExit raised here ends."""
        if os.getpid() != self._pid or self._recorder is None:
            return
        if self._recording.stop_after_trace:
            self.ending.raise_in_program()
        if self._sink is not None:
            # The program may go on for hours, and be killed.
            try:
                self._sink.write(self._recorder.snapshot())
                self._file_is_whole = True
            except Exception as error:
                if is_asynchronous(error):
                    raise
                # It is tried again at the end, and reported then.

    def _attend(self) -> float | None:
        if self.ending.is_asked_for:
            return self.ending.step()
        if self._live is not None:
            # What nothing has come after yet: the program may hang.
            self._live.step()
        wait = self._progress.step() if self._progress is not None else None
        is_live = self._live is not None and not (self._recorder and self._recorder.complete)
        return LIVE_SECONDS if is_live else wait

    def _live_output(self, recorder: Recorder) -> LiveOutput:
        from shapetrace.live import LiveOutput

        live = LiveOutput(
            lambda text: self._terminal.show_lines(text, self._view),
            self._recording.level,
            self._terminal.options(self._view),
        )
        live.watch(recorder)
        return live

    def _print_news(self) -> None:
        if self._live is not None and os.getpid() == self._pid:
            self._live.step()

    def _before_dying(self, name: str) -> None:
        """Called by a signal that is about to end the process, in the middle of anything."""
        if not self._finishing.acquire(False) or self._finisher is not None:
            return
        self._finisher = _thread.get_ident()
        self._terminal = self._terminal.anew()
        self._terminal.note(ended_by(name))
        with import_path(self._own_path):
            self._give_out(is_dying=True)

    def _give_out(self, *, is_dying: bool = False) -> bool:
        self._cancel_waiting()
        self._exits.remove()
        self._spawned.end()
        if self._fatal is not None:
            self._fatal.remove()
        if not is_dying:
            self._helper.stop()
        if self._progress is not None:
            self._progress.clear()
        try:
            trace = self._trace(is_dying)
        except Exception as error:
            self._terminal.note(f"the trace is lost: {notes.on_one_line(error)}")
            return False
        is_written = self._write(trace)
        is_shown = self._show(trace)
        missing = self._why_not_recorded or notes.missing_text(trace, self._recording.passes)
        if missing is not None:
            self._terminal.note(missing)
        elif self._sink is None and self._view.view == "none":
            self._terminal.note(f"recorded {notes.recorded_text(trace)}")
        others = self._spawned.line("traced")
        if others is not None:
            self._terminal.note(others)
        return is_written and is_shown

    def _trace(self, is_dying: bool) -> Trace:
        if self._recorder is not None:
            if not is_dying:
                self._recorder.stop()
            if self._live is not None:
                self._live.step(final=True)
            return self._recorder.snapshot()
        if self._why_not_recorded is None:
            is_imported = sys.modules.get("torch") is not None
            self._why_not_recorded = notes.UNNOTICED if is_imported else notes.NOT_IMPORTED
        from shapetrace.events.model import Coverage, Run, Trace

        run = Run(
            argv=self._argv,
            python=platform.python_version(),
            torch=None,
            pid=self._pid,
            rank=None,
            world_size=None,
            started=self._started,
            files={},
        )
        return Trace(run, coverage=(Coverage(self._why_not_recorded, "", 1),))

    def _write(self, trace: Trace) -> bool:
        if self._sink is None:
            return True
        try:
            if not self._file_is_whole:
                self._sink.write(trace)
            self._sink.close()
        except Exception as error:
            reason = str(error) if isinstance(error, TraceFileError) else notes.on_one_line(error)
            self._terminal.note(reason)
            return False
        self._terminal.note(f"wrote {self._sink.name}: {notes.recorded_text(trace)}")
        return True

    def _show(self, trace: Trace) -> bool:
        if not trace.ops and not trace.modules:
            return True
        try:
            self._terminal.show(trace, self._view)
        except Exception as error:
            self._terminal.note(f"the trace cannot be shown: {notes.on_one_line(error)}")
            return False
        return True

    def _before_leaving(self) -> None:
        self.finish()

    def _end_process(self) -> None:
        """The program was to end and has not."""
        if not self.finish(wait=False):
            # Its end has come meanwhile, or has failed and says so.
            return
        self._terminal.note(
            "the program did not end by itself; it was ended without its remaining exit handlers"
        )
        self._leave(0)

    def _leave(self, status: int) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        self._exits.leave(status)


def _nothing() -> None:
    """There is nothing to cancel yet."""


@contextlib.contextmanager
def import_path(path: list[str]) -> Iterator[None]:
    """Import what is still missing of ours from where python started, not from the program's."""
    own = sys.path
    sys.path = path
    try:
        yield
    finally:
        sys.path = own
