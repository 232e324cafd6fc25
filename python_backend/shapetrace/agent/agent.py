"""The agent: records the program, and tells the language server what it sees while it runs.

A thread of ours, hidden from the debugger, asks the recorder for what is new and sends it. The
program's own threads only record. Where the language server is slow, rows stay in the recorder,
which merges them: nothing is lost, and nothing waits.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.agent import debugger, in_place
from shapetrace.agent.environment import is_worker, load_for_stops, torch_version, why_unsupported
from shapetrace.agent.hiding import hide_code, hide_skips, unseen
from shapetrace.agent.left_over_modes import LeftOverModes
from shapetrace.agent.panes import show_shapes
from shapetrace.agent.requests import Requests
from shapetrace.agent.stop_query import StopQueries
from shapetrace.process.ending import ProgramEnding
from shapetrace.process.exits import WatchedExits
from shapetrace.process.forks import undivided
from shapetrace.process.main_thread import raise_on_main_thread, soon_on_main_thread
from shapetrace.process.own_threads import own_thread
from shapetrace.process.undisturbed import undisturbed
from shapetrace.recorder.arrival import when_torch_is_imported
from shapetrace.recorder.ranks import ThisProcess
from shapetrace.transport import messages
from shapetrace.transport.handshake import this_process
from shapetrace.transport.originals import System
from shapetrace.transport.sender import Sender

if TYPE_CHECKING:
    from shapetrace.recorder.rows import RowWriter
    from shapetrace.recorder.session import Recorder
    from shapetrace.transport.session_address import SessionAddress

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
MOST_FAULTS: Final = 20
"""Faults of ours in a row, after which it is given up: within a second."""
FLUSH_SECONDS_OF_FORK: Final = 0.5
"""`FLUSH_SECONDS` for forked children: there may be many, and a parent usually waits for each."""

Beginning: TypeAlias = Literal["launch", "attach", "fork"]
"""Before anything of the program has run; in the middle of it; in a child that was just forked."""


class Agent:
    """One process of a debug session."""

    def __init__(
        self,
        address: SessionAddress,
        beginning: Beginning = "launch",
        began_at: float | None = None,
        former: Agent | None = None,
    ) -> None:
        """Since ``began_at`` the program may have read its files; ``former`` was forked from."""
        self.address = address
        self._beginning = beginning
        self._began_at = began_at
        self._flush_seconds, self._last_words_seconds = FLUSH_SECONDS, LAST_WORDS_SECONDS
        if beginning == "fork":
            self._flush_seconds = self._last_words_seconds = FLUSH_SECONDS_OF_FORK
        self._pid = os.getpid()
        self._process = ThisProcess()
        self._recorder: Recorder | None = None
        self._writer: RowWriter | None = None
        self._state, self._message = "waiting", ""
        self._told: tuple[Any, ...] | None = None
        self._is_leaving = self._is_finished = self._has_joined = self._is_joining = False
        self._undo: list[Callable[[], None]] = []
        """How to leave the program as it was, last first."""
        self._finishing = threading.Lock()
        self._next_changes = self._running_seconds = self._quiet_since = 0.0
        self._calls_seen = 0
        self._refused = 0
        """How many messages with rows could not be sent, one after the other."""
        self._faults = 0
        """How often what is to be done every few milliseconds has failed, one after the other."""
        self._files: set[str] = set()
        self._asked: Requests = Requests(address, began_at, former._asked if former else None)
        self._stops = StopQueries(lambda: self._recorder, self._someone_looks)
        self._exits = WatchedExits(self._finish)
        self._ending = ProgramEnding(
            raise_on_main_thread, self._end_process, lambda: self._running_seconds
        )
        # The command line is told later: it is still the debugger's, with the debugger's secrets.
        self._sender = Sender(
            address, this_process(()), on_connected=self._begin_anew, on_command=self._obey
        )
        self._thread = own_thread(self._run, "Shapetrace")
        self._left_over = LeftOverModes()

    @property
    def is_over(self) -> bool:
        """Whether it has left the program, or is about to."""
        return self._is_leaving

    def begin(self) -> None:
        """Get ready. Called on a thread of the program's, or on one of the debugger's."""
        atexit.register(self._at_exit)
        self._undo.append(lambda: atexit.unregister(self._at_exit))
        self._exits.install()
        self._undo.append(self._exits.remove)
        self._undo.append(hide_skips())
        self._undo.append(self._stops.install())
        if self.address.shows_variables:
            self._undo.append(show_shapes(self.address.folder))
        if self._beginning != "attach":
            self._await_torch()
        # Starting a thread takes a forked child long that may have nothing to do with torch.
        if self._beginning != "fork":
            self._thread.start()
        self._asked.watches.begin(self._start_thread)

    def _start_thread(self) -> None:
        """A forked child has something to tell, if it had not before."""
        if self._thread.ident is None:
            self._thread.start()

    def leave(self) -> None:
        """Have the program run as without us from now on; it is told what was seen so far."""
        if self._recorder is not None:
            self._end_recording(self._recorder)
        self._is_leaving = True
        self._asked.watches.end()
        recorder = self._recorder
        if recorder is not None:
            recorder.stop()  # Torch may have been imported just now.
        while self._undo:
            self._undo.pop()()
        if recorder is not None:
            self._left_over.remove()

    # On the program's threads

    def _await_torch(self) -> None:
        self._undo.append(when_torch_is_imported(unseen(self._torch_arrived)))

    def _torch_arrived(self) -> None:
        if os.getpid() != self._pid or self._is_leaving:
            return
        import torch

        problem = why_unsupported(torch.__version__)
        if problem is not None:
            self._state, self._message = "unsupported", problem
            return
        try:
            load_for_stops(self.address.captures)
            # It may be called again, where an exception of the program's came in between.
            if self._recorder is None or not self._recorder.active:
                self._start_recorder()
            self._state = "recording"
            self._stop_if_nobody_listens()
        except Exception as error:
            if is_asynchronous(error):
                raise
            self._message = f"the recorder could not start: {type(error).__name__}: {error}"
            self._state = "failed"

    def _stop_if_nobody_listens(self) -> None:
        if self._is_leaving and self._recorder is not None:
            self._recorder.stop()

    def _start_recorder(self) -> None:
        from torch.compiler import is_dynamo_compiling

        from shapetrace.recorder.joining import running_forwards
        from shapetrace.recorder.options import RecorderOptions
        from shapetrace.recorder.session import Recorder

        one_pass = self.address.mode == "forwardPass"
        options = RecorderOptions(
            level=self.address.level,
            passes=1 if one_pass else None,
            through_step=one_pass,
            settle_after=None if one_pass else SETTLE_AFTER,
            on_change=self._start_thread if self._beginning == "fork" else None,
            follows_forks=True,
            debugger=debugger.loaded_debugger(),
            program_began_at=self._began_at,
            hide_code=hide_code,
            unseen=unseen,
            before_pass=unseen(self._asked.captures.before_call) if self.address.captures else None,
        )
        # Our module call asks it each time, and a step into the module would go there first.
        hide_code(is_dynamo_compiling.__code__)
        recorder = self._recorder = Recorder(options, on_complete=self._recording_is_complete)
        if threading.current_thread() is self._thread:
            recorder.start_beside()
        else:
            if self._beginning == "fork":
                recorder.running_before = running_forwards(recorder.kinds)
            recorder.start()
            self._has_joined = True

    def _someone_looks(self) -> None:
        """The program has stopped and is looked at: what has changed is to be told at once."""
        self._next_changes = 0.0
        self._start_thread()
        self._sender.wake()

    def _join(self, frame: FrameType) -> None:
        """Called on the main thread of a program that was attached to, in between."""
        recorder = self._recorder
        try:
            self._has_joined = recorder is not None and recorder.join(frame)
        except Exception as error:
            if is_asynchronous(error):
                raise
            self._has_joined = True  # Its module calls are seen all the same.
            if recorder is not None:
                recorder.fault(error)
        finally:
            self._is_joining = False

    def _recording_is_complete(self) -> None:
        """Called where the next forward pass would begin; a SystemExit raised here ends that."""
        if os.getpid() != self._pid:
            return
        self._state = "complete"
        self._asked.captures.end()
        if self.address.after_pass == "stop" and not is_worker():
            self._ending.raise_in_program()

    def _at_exit(self) -> None:
        self._ending.main_is_over()
        undisturbed(self._finish)

    def _finish(self) -> None:
        """Send the rest; called on the thread that ends the program, and again does nothing."""
        if self._thread.ident is None:
            return  # A forked child that has had nothing to do with torch, and has not said hello.
        if os.getpid() != self._pid or not self._finishing.acquire(timeout=2 * FLUSH_SECONDS):
            return
        try:
            if self._is_finished:
                return
            recorder = self._recorder
            if recorder is not None:
                self._end_recording(recorder)
            elif self._state == "waiting" and self._asked.watches.has_any:
                self._state = "complete"
            elif self._state == "waiting":
                self._state = "noForward"
                self._message = "the program has not imported torch"
            self._asked.watches.finish()
            self._is_finished = self._is_leaving = True
            if self._thread.is_alive() and threading.current_thread() is not self._thread:
                # Rows are made faster there: the debugger does not trace that thread.
                self._thread.join(self._last_words_seconds + self._flush_seconds)
            else:
                self._say_the_rest()
        finally:
            self._finishing.release()

    def _end_process(self) -> None:
        """The program was to end and has not."""
        self._finish()
        self._exits.leave(0)

    def after_fork_in_child(self) -> Agent | None:
        """The agent to begin in a child that was just forked; this one is the parent's."""
        was_over, self._is_leaving = self._is_leaving, True
        self._finishing = threading.Lock()
        self._sender.after_fork_in_child()
        while self._undo:
            self._undo.pop()()
        self._asked.captures.end()
        if self._recorder is not None:
            self._recorder.stop_in_child()
        return None if was_over else Agent(self.address, "fork", self._began_at, self)

    # On the thread of ours

    @leaving_surely
    def _run(self) -> None:
        if self._beginning == "attach":
            # Here, as it takes a while, and the debugger is not to wait for it.
            with undivided():
                self._await_torch()
        before = System.now()
        while not self._is_leaving:
            if self._sender.is_over and self.address.mode == "debug":
                # No listener is left: the program must run as without us.
                self.leave()
                break
            now = System.now()
            try:
                self._ask_to_join()
                self._send_news()
                self._tend(now - before)
                self._faults = 0
            except Exception as error:
                self._note_fault(error)
            before = now
            self._sender.step(POLL_SECONDS)
        else:
            self._say_the_rest()
        self._left_over.remove_until_gone(lambda: self._is_finished)

    def _note_fault(self, error: Exception) -> None:
        """Try again with all rows anew, as the program may have replaced something for a while."""
        self._writer = None
        self._faults += 1
        if self._faults < MOST_FAULTS:
            return
        if self._recorder is not None:
            self._recorder.stop()
        self._recorder = None
        self._state, self._message = "failed", f"{type(error).__name__}: {error}"

    def _ask_to_join(self) -> None:
        recorder = self._recorder
        if recorder is None or self._has_joined or self._is_joining:
            return
        self._is_joining = True
        if not soon_on_main_thread(unseen(self._join)):
            self._has_joined = True

    def _send_news(self) -> None:
        """Send what is new; what has changed only now and then."""
        if not self._sender.is_connected:
            return
        recorder, stop = self._recorder, self._stops.unsent
        self._asked.tell(self._sender)
        if recorder is not None and self._sender.waiting < FULL:
            is_all = self._send_all(recorder, final=stop is not None)
            now = System.now()
            if now >= self._next_changes:
                self._send_changes(recorder)
                if self.address.mode == "debug":
                    recorder.stay_awake(debugger.has_breakpoint_in(self._files))
                self._tell()
                cost = System.now() - now
                self._next_changes = now + max(CHANGES_EVERY_SECONDS, CHANGES_SHARE * cost)
            if stop is not None and is_all:
                self._stops.send(stop, self._sender)
        if self._told is None or self._told[:2] != (self._state, self._message):
            self._tell()

    def _send_all(self, recorder: Recorder, final: bool, until: float = math.inf) -> bool:
        """Send what is new as far as there is room and time for it; whether that was all."""
        while self._sender.waiting < FULL and System.now() < until:
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
        self._files.update(os.path.realpath(row[0]) for row in message.get("sources", ()))
        if self._sender.offer(messages.write(messages.Rows(message))):
            self._refused = 0
        elif self._sender.is_connected:
            self._writer = None  # Rows refer to earlier ones: all of them anew.
            self._refused += 1
            if self._refused >= MOST_REFUSED:
                self._faults = MOST_FAULTS  # It would be no better the next time.
                raise RuntimeError(f"a message cannot be sent: {self._sender.trouble}")

    def _tell(self) -> None:
        """Send where things stand, where that has changed."""
        recorder = self._recorder
        calls, passes = (0, 0) if recorder is None else recorder.counters()
        state = self._state
        if state == "recording" and recorder is not None and recorder.rest.asleep:
            state = "settled"
        rank, _ = self._process.look()
        counts = (passes, calls, self._sender.dropped)
        told = (self._state, self._message, state, rank, *counts)
        if told == self._told:
            return
        status = messages.ProcessStatus(state, self._message, torch_version(), *counts, rank)
        if self._sender.offer(messages.write(status), important=True):
            self._told = told

    def _tend(self, seconds: float) -> None:
        """See to the end of the program, where that is asked for."""
        recorder = self._recorder
        if recorder is None or self.address.mode != "forwardPass":
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
        elif self.address.after_pass == "stop" and recorder.passes_seen and not is_worker():
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
        self._asked.begin_anew()
        self._stops.begin_anew()
        if self._is_finished:
            self._say_last_words()

    def _say_the_rest(self) -> None:
        if self._sender.is_connected:
            self._say_last_words()
        self._sender.close(self._flush_seconds)

    def _say_last_words(self) -> None:
        recorder = self._recorder
        if recorder is not None:
            now = System.now()
            deadline, patience = now + self._last_words_seconds, now + self._flush_seconds
            while not self._send_all(recorder, final=True, until=deadline):
                waiting = self._sender.waiting
                self._sender.step(POLL_SECONDS)
                now = System.now()
                if self._sender.waiting < waiting:
                    patience = now + self._flush_seconds
                if now > min(deadline, patience):
                    self._message = "the program ended before all of it was sent"
                    break
            self._send_changes(recorder)
        self._asked.tell(self._sender)
        self._tell()
        reason = "the program has ended" if self._is_finished else "the debugger has left"
        self._sender.offer(messages.write(messages.Bye(reason)), important=True)

    def _obey(self, message: dict[str, Any]) -> None:
        command, refused = messages.read_from_server(message)
        if refused:
            self._sender.trouble = refused[0]
        elif isinstance(command, messages.Wake) and self._recorder is not None:
            self._recorder.wake()
        elif isinstance(command, messages.Cancel):
            in_place.cancel(command.evaluation)
        elif isinstance(command, messages.Watch):
            self._asked.watches.watch(command.names)
        elif isinstance(command, messages.Finish):
            if self.address.mode == "debug":
                self.leave()
            elif self._recorder is not None:
                self._end_recording(self._recorder)

    def _end_recording(self, recorder: Recorder) -> None:
        recorder.stop()
        self._asked.captures.end()
        has_passed = self.address.mode == "debug" or recorder.passes_seen
        # Of forked children, most often none is to run a model.
        if self._beginning == "fork" or (recorder.modules and has_passed):
            self._state = "complete"
            return
        self._state = "noForward"
        if recorder.modules:
            self._message = "only modules without parameters were called"
