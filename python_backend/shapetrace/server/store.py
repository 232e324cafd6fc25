"""The traces of all debug sessions, and which of them a file's hints come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from shapetrace.events.model import Coverage, Frame, ModuleCall, Op, Trace, Variable
from shapetrace.events.update import Source, Update
from shapetrace.server.file_records import Call, FileRecords, Key
from shapetrace.server.processes import Process, ProcessKey, Session
from shapetrace.server.requested import Requested
from shapetrace.server.uris import file_key
from shapetrace.transport.messages import NumberedStop
from shapetrace.transport.requested import CAPTURED, WATCHED, CaptureNews, WatchNews

Listener: TypeAlias = Callable[[frozenset[str], frozenset[str]], None]
"""Called with the keys of files: those with new records, and those whose counts changed."""

_SESSIONS_KEPT = 8

_FORMER = 1 << 40
"""Taken off the order of sessions that are read back from the disk."""


class TraceStore:
    """Keeps what sessions record, and notifies listeners when a file has new records."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._processes: dict[ProcessKey, Process] = {}
        self._numbers: dict[int, Process] = {}
        self._listeners: list[Listener] = []
        self._stop_listeners: list[Callable[[], None]] = []
        self._opened = 0
        self._numbered = 0

    def add_listener(self, listener: Listener) -> None:
        """Tell someone of the files that change."""
        self._listeners.append(listener)

    def add_stop_listener(self, listener: Callable[[], None]) -> None:
        """Tell someone when it is known where a process has stopped."""
        self._stop_listeners.append(listener)

    def open_session(self, session: str, *, is_former: bool = False) -> None:
        """Begin a session, or go on with it; one that was over begins anew.

        A former one counts as older than all others.
        """
        former = self._sessions.get(session)
        if former is not None and former.is_over and not is_former:
            self._drop(former)
            self._tell(set(former.files), set())
        if is_former and session not in self._sessions:
            self._opened += 1
            self._sessions[session] = Session(session, self._opened - _FORMER)
        self._session(session)
        self._drop_old()

    def close_session(self, session: str) -> None:
        """Note that no process of a session is expected any more; what they sent is kept."""
        if session in self._sessions:
            self._sessions[session].is_over = True
            self._tell(set(), set())

    def open_process(self, session: str, key: ProcessKey, about: object = None) -> None:
        """Begin with a process; what one with this key sent before is forgotten."""
        owner = self._session(session)
        self._numbered += 1
        former = self._processes.get(key)
        if former is not None:
            self._forget(former)
        process = self._numbers[self._numbered] = Process(self._numbered, owner, about)
        owner.processes[key] = self._processes[key] = process

    def close_process(self, key: ProcessKey) -> None:
        """Note that nothing more comes from a process; what it sent is kept."""
        if key in self._processes:
            self._processes[key].is_running = False
            self._tell(set(), set())

    def apply(self, key: ProcessKey, update: Update) -> None:
        """Add what has come from a process."""
        process = self._processes.get(key)
        if process is None:
            return  # of a session that was started again
        changed: set[str] = set()
        if update.run is not None:
            process.run = update.run
        if update.coverage is not None:
            process.coverage = update.coverage
        for source in update.sources:
            process.sources[source.path] = source
            if self._set_source(process.session, source):
                changed.add(file_key(source.path))
        process.frames.update((frame.id, frame) for frame in update.frames)
        for module in update.modules:
            former_module = process.modules.get(module.id)
            process.modules[module.id] = module
            changed.update(self._replace(process, former_module, module))
            process.named.setdefault((module.path, module.class_name), set()).add(module.id)
        for op in update.ops:
            former_op = process.ops.get(op.id)
            process.ops[op.id] = op
            changed.update(self._replace(process, former_op, op))
        for number, variable in update.variables.items():
            changed.add(self._set_variable(process, number, variable))
        counted: set[str] = set()
        for identity, count in update.counts.items():
            process.counts[identity] = count
            call = process.call(identity)
            if call is not None and count == 0:
                process.nesting.add(call)
            if call is not None and call.file is not None:
                counted.add(file_key(call.file))
                if count > process.cleared.get(identity, count):
                    changed.update(self._show_again(process, call))
        if changed or counted:
            self._tell(changed, counted)

    def capture(self, key: ProcessKey, news: CaptureNews) -> None:
        """Add the captured values of a process."""
        process = self._processes.get(key)
        if process is not None:
            process.captured.add(news)
            self._tell(set(), set())

    def watch(self, key: ProcessKey, news: WatchNews) -> None:
        """Add the watched variables of a process."""
        process = self._processes.get(key)
        if process is None:
            return
        changed: set[str] = set()
        for source in news.sources:
            process.sources.setdefault(source.path, source)
            if self._set_source(process.session, process.sources[source.path]):
                changed.add(file_key(source.path))
        for change in process.watched.add(news):
            file = change.event.file
            self._file(process, file).add_watched(process.number, change)
            changed.add(file_key(file))
        if news.running is not None:
            process.watched_calls = {each.call: each for each in news.running}
            changed.update(file_key(each.file) for each in news.running)
        self._tell(changed, set())

    def stop(self, key: ProcessKey, stop: NumberedStop) -> None:
        """Note where a process has stopped. Nothing is recorded by that."""
        process = self._processes.get(key)
        if process is not None:
            process.stop = stop
            for listener in self._stop_listeners:
                listener()

    def clear(self) -> None:
        """Forget everything. Of processes that go on, what runs from now on is shown again."""
        changed = {key for session in self._sessions.values() for key in session.files}
        for session in self._sessions.values():
            session.files.clear()
            for process in session.processes.values():
                if process.is_running:
                    calls: list[Call] = [*process.modules.values(), *process.ops.values()]
                    process.cleared = {call.id: process.count(call) or 0 for call in calls}
                    process.cleared_variables = dict(process.variables)
                    process.captured.clear()
                    process.watched.clear()
                else:
                    process.captured, process.watched = Requested(CAPTURED), Requested(WATCHED)
                    process.watched_calls.clear()
                    for kept in (process.modules, process.ops, process.variables, process.counts):
                        kept.clear()
                process.entries.clear()
                process.nesting.clear()
                for source in process.sources.values():
                    self._set_source(session, source)
        self._tell(changed, set())

    def records(self, key: str) -> FileRecords | None:
        """The records of the newest session that ran in a file."""
        recorded = [
            (session.order, session.files[key])
            for session in self._sessions.values()
            if key in session.files and not session.files[key].is_empty
        ]
        return max(recorded, key=_first, default=(0, None))[1]

    def coverage(self, key: str) -> Iterator[Coverage]:
        """Notes on unrecorded code, of the processes whose records of a file are shown."""
        records = self.records(key)
        for session in self._sessions.values():
            if records is not None and session.files.get(key) is records:
                for process in session.processes.values():
                    yield from process.coverage

    def newest_session(self) -> Session | None:
        """The session that began last, of those that recorded anything."""
        recorded = (
            each
            for each in self._sessions.values()
            if any(process.ops or process.modules for process in each.processes.values())
        )
        return max(recorded, key=lambda each: each.order, default=None)

    def label(self, process: Process) -> str:
        """``rank 1`` or ``process 4711``, where a session has several processes with calls."""
        # There may be thousands of them, and this is asked for each call.
        processes = process.session.processes.values()
        with_calls = (each for each in processes if each.ops or each.modules)
        return process.label if len(tuple(islice(with_calls, 2))) > 1 else ""

    def process(self, number: int) -> Process | None:
        """The process that a call's key begins with."""
        return self._numbers.get(number)

    def shown_processes(self) -> list[Process]:
        """The processes with calls of the newest session, and of others that go on, by rank."""
        newest = self.newest_session()
        return [
            process
            for session in sorted(self._sessions.values(), key=lambda each: each.order)
            for process in sorted(session.processes.values(), key=_rank)
            if process.nesting.children(None) and (session is newest or process.is_running)
        ]

    def is_watched_anywhere(self, session: str, name: str) -> bool:
        """Return whether a process of a session has reported changes of a name."""
        return any(
            kept.about.request == name and kept.total > 0
            for process in self.processes(session).values()
            for kept in process.watched.names.values()
        )

    def watching_processes(self) -> list[Process]:
        """The processes in which variables are watched, of the newest session and those that run.

        Where a later one is over and has watched nothing, nothing is watched any more.
        """
        sessions = sorted(self._sessions.values(), key=lambda each: each.order)
        watching = [each for each in sessions if each.is_watching]
        last = watching[-1] if watching else None
        if last is not None and any(
            each.processes and each.is_finished and not last.is_running
            for each in sessions[sessions.index(last) + 1 :]
        ):
            last = None
        return [
            process
            for session in watching
            for process in sorted(session.processes.values(), key=_rank)
            if process.watched.requests and (session is last or process.is_running)
        ]

    def processes(self, session: str) -> Mapping[ProcessKey, Process]:
        """The processes of a session, in the order in which they began."""
        found = self._sessions.get(session)
        return {} if found is None else found.processes

    def traces(self, session: str | None) -> Iterator[Trace]:
        """The trace of each process of a session, or of the newest one that recorded anything."""
        chosen = self.newest_session() if session is None else self._sessions.get(session)
        if chosen is not None:
            yield from (process.trace() for process in chosen.processes.values())

    def _drop_old(self) -> None:
        """Forget sessions that no hint comes from any more, and the oldest if there are many."""
        newest_first = sorted(self._sessions.values(), key=lambda each: -each.order)
        shown: set[str] = set()
        for position, session in enumerate(newest_first):
            files = {key for key, records in session.files.items() if not records.is_empty}
            is_running = any(process.is_running for process in session.processes.values())
            is_needed = position < _SESSIONS_KEPT and (position == 0 or bool(files - shown))
            if files and not is_running and not is_needed:
                self._drop(session)
            shown |= files

    def _drop(self, session: Session) -> None:
        del self._sessions[session.identity]
        for key, process in session.processes.items():
            self._processes.pop(key, None)
            self._numbers.pop(process.number, None)
        # They refer to each other, and the collector is not to look for them.
        session.processes.clear()

    def _session(self, identity: str) -> Session:
        found = self._sessions.get(identity)
        if found is None:
            self._opened += 1
            found = self._sessions[identity] = Session(identity, self._opened)
        return found

    def _file(self, process: Process, path: str) -> FileRecords:
        """The records of a file.

        If the file has changed since this process read it, they are records that are not shown.
        """
        files = process.session.files
        key = file_key(path)
        found = files.get(key)
        if found is None:
            found = files[key] = FileRecords(path, self._module)
        source = process.sources.get(path)
        if source is not None and (source.digest, source.text) != (found.digest, found.text):
            return process.outdated.setdefault(key, FileRecords(path, self._module))
        return found

    def _set_source(self, session: Session, source: Source) -> bool:
        """Note what a file was when it ran; say whether that was not known before.

        What was recorded in another version of it is shown no more.
        """
        key = file_key(source.path)
        records = session.files.get(key)
        if records is not None and (source.digest, source.text) == (records.digest, records.text):
            return False
        if records is None or records.digest is not None or records.text is not None:
            records = session.files[key] = FileRecords(source.path, self._module)
        records.digest, records.text = source.digest, source.text
        return True

    def _replace(self, process: Process, former: Call | None, call: Call) -> set[str]:
        """Put a call in place of what it was; return the keys of the files this changes."""
        process.counts.pop(call.id, None)
        changed: set[str] = set()
        if former is not None and former.file is not None and _place(former) != _place(call):
            self._file(process, former.file).remove_call(process.number, former)
            changed.add(file_key(former.file))
        return changed | self._add_call(process, call)

    def _add_call(self, process: Process, call: Call) -> set[str]:
        """Show a call where it was made, and its module where that began."""
        process.cleared.pop(call.id, None)
        process.nesting.add(call)
        changed: set[str] = set()
        if isinstance(call, Op) and call.level != "torch":
            return changed
        if call.file is not None:
            self._file(process, call.file).add_call(process.number, call)
            changed.add(file_key(call.file))
        self._find_entry(process, call)
        entry = process.entries.get(call.id) if isinstance(call, ModuleCall) else None
        if entry is not None:
            records = self._file(process, entry.file)
            records.add_entry(entry.function, process.number, call.id)
            changed.add(file_key(entry.file))
        return changed

    def _show_again(self, process: Process, call: Call) -> set[str]:
        """Show a call that was made again after it was cleared, and the names around it.

        It is not known which names were stored again: those of its function up to its line are.
        """
        changed = self._add_call(process, call)
        frame = process.frames.get(call.stack[-1]) if call.stack else None
        if frame is not None:
            again = {
                number: variable
                for number, variable in process.cleared_variables.items()
                if (variable.file, variable.function) == (frame.file, frame.function)
                and variable.line <= (call.end_line or 0)
            }
            for number, variable in again.items():
                changed.add(self._set_variable(process, number, variable))
        return changed

    def _module(self, key: Key) -> ModuleCall | None:
        process = self._numbers.get(key[0])
        return None if process is None else process.modules.get(key[1])

    def _find_entry(self, process: Process, call: Call) -> None:
        """Note the function in which the program's own code in a module call began.

        That is its ``forward``, or else the first frame on the stack behind those that the module
        call itself stands on. Decorators and hooks of the program's may stand before ``forward``.
        """
        identity = call.parent if isinstance(call, ModuleCall) else call.module
        former = None if identity is None else process.entries.get(identity)
        module = None if identity is None else process.modules.get(identity)
        if identity is None or module is None or (former is not None and _is_forward(former)):
            return
        inside = map(process.frames.get, call.stack[len(module.stack) :])
        frames = [frame for frame in inside if frame is not None]
        frame = next(filter(_is_forward, frames), None) or (
            None if former else next(iter(frames), None)
        )
        if frame is None:
            return
        if former is not None:
            records = self._file(process, former.file)
            records.remove_entry(former.function, process.number, identity)
        process.entries[identity] = frame
        records = self._file(process, frame.file)
        records.add_entry(frame.function, process.number, identity)

    def _set_variable(self, process: Process, number: int, variable: Variable) -> str:
        former = process.variables.get(number)
        if former is not None:
            records = self._file(process, former.file)
            records.remove_variable(process.number, number, former)
        process.variables[number] = variable
        process.cleared_variables.pop(number, None)
        self._file(process, variable.file).add_variable(process.number, number, variable)
        return file_key(variable.file)

    def _forget(self, process: Process) -> None:
        del self._numbers[process.number]
        calls: list[Call] = [*process.modules.values(), *process.ops.values()]
        for call in calls:
            if call.file is not None:
                self._file(process, call.file).remove_call(process.number, call)
        for number, variable in process.variables.items():
            records = self._file(process, variable.file)
            records.remove_variable(process.number, number, variable)

    def _tell(self, changed: set[str], counted: set[str]) -> None:
        for listener in self._listeners:
            listener(frozenset(changed), frozenset(counted))


def _is_forward(frame: Frame) -> bool:
    return frame.function.rpartition(".")[2] == "forward"


def _rank(process: Process) -> int:
    return -1 if process.rank is None else process.rank


def _first(recorded: tuple[int, FileRecords | None]) -> int:
    return recorded[0]


def _place(call: Call) -> tuple[object, ...]:
    return (call.file, call.line, call.column, call.end_line, call.end_column)
