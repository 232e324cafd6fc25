"""The agent: records the program, and tells the language server what it sees while it runs.

A thread of ours, hidden from the debugger, asks the recorder for what is new and sends it. The
program's own threads only record. Where the language server is slow, rows stay in the recorder,
which merges them: nothing is lost, and nothing waits.
"""

from __future__ import annotations

import atexit
import importlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from shapetrace.agent import debugger, here
from shapetrace.agent.hiding import hide_code, hide_skips, unseen
from shapetrace.process.ending import Ending
from shapetrace.process.exits import WatchedExits
from shapetrace.recorder.arrival import when_torch_is_imported
from shapetrace.transport.handshake import this_process
from shapetrace.transport.sender import Sender

if TYPE_CHECKING:
    from shapetrace.recorder.rows import RowWriter
    from shapetrace.recorder.session import Recorder
    from shapetrace.transport.session import SessionAddress

POLL_SECONDS: Final = 0.05
"""How long something new waits to be sent, at most."""
CHANGES_EVERY_SECONDS: Final = 0.5
"""How often counts are looked at, at most; it costs time for each row there is."""
CHANGES_SHARE: Final = 50
"""Looking at counts may take one part in so many of the time."""
FULL: Final = 8 << 20
"""Bytes that wait to be sent, from which on nothing more is added."""
SETTLE_AFTER: Final = 16
"""Forward passes that bring nothing new, after which only now and then one is looked at."""
QUIET_SECONDS: Final = 5.0
"""In a traced forward pass: when nothing of torch has been called for so long after it returned,
the program is ended."""
FLUSH_SECONDS: Final = 2.0
"""How long the end of the program waits for what is not sent yet."""
LAST_WORDS_SECONDS: Final = 10.0
"""How long it waits for rows to be made and read; those that are not by then are lost."""
MOST_REFUSED: Final = 3
"""Messages that cannot be sent, in a row, after which it is given up."""
OLDEST_TORCH: Final = (2, 4)


class Agent:
    """One process of a debug session."""

    def __init__(self, address: SessionAddress) -> None:
        self._address = address
        self._began_at = time.time()
        self._pid = os.getpid()
        self._recorder: Recorder | None = None
        self._writer: RowWriter | None = None
        self._state = "waiting"
        self._message = ""
        self._told: tuple[Any, ...] | None = None
        self._next_changes = 0.0
        self._is_leaving = False
        self._is_finished = False
        self._finishing = threading.Lock()
        self._running_seconds = 0.0
        self._quiet_since = 0.0
        self._calls_seen = 0
        self._refused = 0
        """How many messages with rows could not be sent, one after the other."""
        self._files: set[str] = set()
        self._exits = WatchedExits(self._finish)
        self._ending = Ending(_raise_in_main, self._end_process, lambda: self._running_seconds)
        # The command line is told later: it is still the debugger's, with the debugger's secrets.
        self._sender = Sender(
            address,
            this_process(()),
            on_connected=self._begin_anew,
            on_command=self._obey,
        )
        self._thread = threading.Thread(target=self._run, name="Shapetrace", daemon=True)
        # What the debugger asks of threads of its own: it neither stops nor shows this one.
        self._thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
        self._thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]

    def begin(self) -> None:
        """Get ready; nothing of the program has run."""
        atexit.register(self._at_exit)
        self._exits.install()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork_in_child)
        hide_skips()
        here.answer_for(lambda: self._recorder, self._someone_looks)
        when_torch_is_imported(unseen(self._torch_arrived))
        self._thread.start()

    # On the program's threads

    def _torch_arrived(self) -> None:
        if os.getpid() != self._pid or self._is_leaving:
            return
        import torch

        version = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))
        if version < OLDEST_TORCH:
            oldest = ".".join(map(str, OLDEST_TORCH))
            self._message = f"Shapetrace needs torch {oldest} or newer; this is {torch.__version__}"
            self._state = "unsupported"
            return
        try:
            # From here on the debugger may want it, and be in no place to import anything.
            importlib.import_module("shapetrace.panes")
            recorder = self._recorder = self._started_recorder()
            self._state = "recording"
            self._stop_if_nobody_listens(recorder)
        except Exception as error:
            self._message = f"the recorder could not start: {type(error).__name__}: {error}"
            self._state = "failed"

    def _stop_if_nobody_listens(self, recorder: Recorder) -> None:
        if self._is_leaving:
            recorder.stop()

    def _started_recorder(self) -> Recorder:
        from torch.compiler import is_dynamo_compiling

        import shapetrace.recorder.standing  # noqa: F401 (asked for at stops, which import nothing)
        from shapetrace.recorder.session import Recorder, RecorderOptions

        one_pass = self._address.mode == "forwardPass"
        options = RecorderOptions(
            level=self._address.level,
            passes=1 if one_pass else None,
            through_step=one_pass,
            settle_after=None if one_pass else SETTLE_AFTER,
            debugger=debugger.loaded_debugger(),
            program_began_at=self._began_at,
            hide_code=hide_code,
            unseen=unseen,
        )
        # Our module call asks it each time, and a step into the module would go there first.
        hide_code(is_dynamo_compiling.__code__)
        recorder = Recorder(options, on_complete=self._recording_is_complete)
        recorder.start()
        return recorder

    def _someone_looks(self) -> None:
        """The program has stopped and is looked at: what has changed is to be told at once."""
        self._next_changes = 0.0

    def _recording_is_complete(self) -> None:
        """Called where the next forward pass would begin; a SystemExit raised here ends that."""
        if os.getpid() != self._pid:
            return
        self._state = "complete"
        if self._address.after_pass == "stop":
            self._ending.raise_in_program()

    def _at_exit(self) -> None:
        self._ending.main_is_over()
        self._finish()

    def _finish(self) -> None:
        """Send the rest; called on the thread that ends the program, and again does nothing."""
        if os.getpid() != self._pid or not self._finishing.acquire(timeout=2 * FLUSH_SECONDS):
            return
        try:
            if self._is_finished:
                return
            recorder = self._recorder
            if recorder is not None:
                self._end_recording(recorder)
            elif self._state == "waiting":
                self._state = "noForward"
                self._message = "the program has not imported torch"
            self._is_finished = self._is_leaving = True
            if self._thread.is_alive() and threading.current_thread() is not self._thread:
                # Rows are made faster there: the debugger does not trace that thread.
                self._thread.join(LAST_WORDS_SECONDS + FLUSH_SECONDS)
            else:
                self._say_the_rest()
        finally:
            self._finishing.release()

    def _end_process(self) -> None:
        """The program was to end and has not."""
        self._finish()
        self._exits.leave(0)

    def _after_fork_in_child(self) -> None:
        self._is_leaving = True
        self._finishing = threading.Lock()
        self._sender.after_fork_in_child()

    # On the thread of ours

    def _run(self) -> None:
        before = time.monotonic()
        while not self._is_leaving:
            if self._sender.is_over and self._address.mode == "debug":
                # Nobody will hear of it: the program is to run as without us.
                self._is_leaving = True
                if self._recorder is not None:
                    self._recorder.stop()
                return
            now = time.monotonic()
            try:
                self._send_news()
                self._tend(now - before)
            except Exception as error:
                if self._recorder is not None:
                    self._recorder.stop()
                self._recorder = None
                self._state, self._message = "failed", f"{type(error).__name__}: {error}"
            before = now
            self._sender.step(POLL_SECONDS)
        self._say_the_rest()

    def _send_news(self) -> None:
        """Send what is new; what has changed only now and then."""
        if not self._sender.is_connected:
            return
        recorder = self._recorder
        if recorder is not None and self._sender.waiting < FULL:
            self._send_all(recorder, final=False)
            now = time.monotonic()
            if now >= self._next_changes:
                self._send_changes(recorder)
                if self._address.mode == "debug":
                    recorder.stay_awake(debugger.has_breakpoint_in(self._files))
                self._tell()
                cost = time.monotonic() - now
                self._next_changes = now + max(CHANGES_EVERY_SECONDS, CHANGES_SHARE * cost)
        if self._told is None or self._told[:2] != (self._state, self._message):
            self._tell()

    def _send_all(self, recorder: Recorder, final: bool, until: float = math.inf) -> bool:
        """Send what is new as far as there is room and time for it; whether that was all."""
        while self._sender.waiting < FULL and time.monotonic() < until:
            message = self._writer_of(recorder).write(final)
            if message is None:
                return True
            self._send_rows(message)
        return False

    def _send_changes(self, recorder: Recorder) -> None:
        message = self._writer_of(recorder).write_changes()
        if message is not None:
            self._send_rows(message)

    def _writer_of(self, recorder: Recorder) -> RowWriter:
        from shapetrace.recorder.rows import RowWriter

        if self._writer is None:
            self._writer = RowWriter(recorder)
        return self._writer

    def _send_rows(self, message: dict[str, Any]) -> None:
        message["type"] = "rows"
        self._files.update(os.path.realpath(row[0]) for row in message.get("sources", ()))
        if self._sender.offer(message):
            self._refused = 0
        elif self._sender.is_connected:
            self._writer = None  # Rows refer to earlier ones: all of them anew.
            self._refused += 1
            if self._refused >= MOST_REFUSED:
                raise RuntimeError(f"a message cannot be sent: {self._sender.trouble}")

    def _tell(self) -> None:
        """Send where things stand, where that has changed."""
        recorder = self._recorder
        calls, passes = (0, 0) if recorder is None else recorder.counters()
        state = self._state
        if state == "recording" and recorder is not None and recorder.rest.asleep:
            state = "settled"
        told = (self._state, self._message, state, passes, calls, self._sender.dropped)
        if told == self._told:
            return
        status = {
            "type": "status",
            "state": state,
            "message": self._message,
            "torch": _torch_version(),
            "passes": passes,
            "calls": calls,
            "dropped": self._sender.dropped,
        }
        if self._sender.offer(status, important=True):
            self._told = told

    def _tend(self, seconds: float) -> None:
        """See to the end of the program, where that is asked for."""
        recorder = self._recorder
        if recorder is None or self._address.mode != "forwardPass":
            return
        if debugger.is_stopped():
            # The clock stands still while the program does.
            return
        self._running_seconds += seconds
        if self._ending.is_asked_for:
            if not debugger.is_running_code_of(self._files):
                # Only python's and the debugger's own endings are left.
                self._ending.main_is_over()
            self._ending.step()
        elif self._address.after_pass == "stop" and recorder.passes_seen:
            calls, _ = recorder.counters()
            if calls != self._calls_seen:
                self._calls_seen, self._quiet_since = calls, self._running_seconds
            elif self._running_seconds - self._quiet_since >= QUIET_SECONDS:
                self._state = "complete"
                self._ending.begin_from_beside()

    def _begin_anew(self) -> None:
        """A connection was made: the server at its other end knows nothing yet."""
        self._writer = None
        self._told = None
        self._next_changes = 0.0
        if self._is_finished:
            self._say_last_words()

    def _say_the_rest(self) -> None:
        if self._sender.is_connected:
            self._say_last_words()
        self._sender.close(FLUSH_SECONDS)

    def _say_last_words(self) -> None:
        recorder = self._recorder
        if recorder is not None:
            now = time.monotonic()
            deadline, patience = now + LAST_WORDS_SECONDS, now + FLUSH_SECONDS
            while not self._send_all(recorder, final=True, until=deadline):
                waiting = self._sender.waiting
                self._sender.step(POLL_SECONDS)
                now = time.monotonic()
                if self._sender.waiting < waiting:
                    patience = now + FLUSH_SECONDS
                if now > min(deadline, patience):
                    self._message = "the program ended before all of it could be told"
                    break
            self._send_changes(recorder)
        self._tell()
        self._sender.offer({"type": "bye", "reason": "the program has ended"}, important=True)

    def _obey(self, command: dict[str, Any]) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        if command.get("type") == "wake":
            recorder.wake()
        elif command.get("type") == "stop":
            self._end_recording(recorder)

    def _end_recording(self, recorder: Recorder) -> None:
        recorder.stop()
        if not recorder.modules:
            self._state = "noForward"
        elif self._address.mode == "forwardPass" and not recorder.passes_seen:
            self._state = "noForward"
            self._message = "only modules without parameters were called"
        else:
            self._state = "complete"


def _torch_version() -> str | None:
    version = getattr(sys.modules.get("torch"), "__version__", None)
    return None if version is None else str(version)


def _raise_in_main() -> bool:
    """Have the main thread raise what ends it, as soon as it is back from what it waits for."""
    import ctypes

    ident = threading.main_thread().ident or 0
    raised: Callable[..., int] = ctypes.pythonapi.PyThreadState_SetAsyncExc
    return raised(ctypes.c_ulong(ident), ctypes.py_object(SystemExit)) == 1
