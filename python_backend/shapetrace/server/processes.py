"""The data of one debug session and of each of its processes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from shapetrace.events.model import Coverage, Frame, ModuleCall, Op, Run, Trace, Variable
from shapetrace.events.update import Source
from shapetrace.server.file_records import Call, FileRecords
from shapetrace.server.nesting import Nesting
from shapetrace.server.requested import Requested
from shapetrace.transport.messages import NumberedStop, ProcessInfo
from shapetrace.transport.requested import (
    CAPTURED,
    WATCHED,
    CapturedValue,
    RunningCall,
    WatchedChange,
)

ProcessKey: TypeAlias = Hashable
"""Names one process, among those of all sessions."""

_NO_RUN = Run(
    argv=(), python="", torch=None, pid=0, rank=None, world_size=None, started="", files={}
)


@dataclass(slots=True)
class Process:
    """The data of one process of a session."""

    number: int
    session: Session
    about: object
    """How it introduced itself."""
    run: Run = _NO_RUN
    frames: dict[int, Frame] = field(default_factory=dict)
    modules: dict[int, ModuleCall] = field(default_factory=dict)
    ops: dict[int, Op] = field(default_factory=dict)
    variables: dict[int, Variable] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    """The number of calls, where it has grown since the call itself was sent."""
    cleared: dict[int, int] = field(default_factory=dict)
    """The number of calls that were cleared away, of those that have not been made since."""
    cleared_variables: dict[int, Variable] = field(default_factory=dict)
    coverage: tuple[Coverage, ...] = ()
    sources: dict[str, Source] = field(default_factory=dict)
    outdated: dict[str, FileRecords] = field(default_factory=dict)
    """By file key, what was recorded in versions of files that a later process found changed."""
    entries: dict[int, Frame] = field(default_factory=dict)
    """For each module call the frame of the program's function that it began with."""
    named: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    """The module calls of each module, by its path and class."""
    captured: Requested[CapturedValue] = field(default_factory=lambda: Requested(CAPTURED))
    """Its captured values."""
    watched: Requested[WatchedChange] = field(default_factory=lambda: Requested(WATCHED))
    """How its watched variables changed."""
    watched_calls: dict[int, RunningCall] = field(default_factory=dict)
    """The running calls of functions with watched variables."""
    stop: NumberedStop | None = None
    """The last stop that the editor asked about."""
    is_running: bool = True
    nesting: Nesting = field(init=False)
    """All calls but those that were cleared away, below what they were made in."""

    def __post_init__(self) -> None:
        self.nesting = Nesting(self.ops, self.modules)

    @property
    def rank(self) -> int | None:
        """Which of a group of processes it is, where it is in one."""
        if self.run.rank is None and isinstance(self.about, ProcessInfo):
            return self.about.rank
        return self.run.rank

    @property
    def label(self) -> str:
        """Its label among the processes of its session."""
        if self.rank is not None:
            return f"rank {self.rank}"
        pid = self.about.pid if isinstance(self.about, ProcessInfo) else self.run.pid
        return f"process {pid}"

    def call(self, identity: int) -> Call | None:
        """An op or a module call."""
        return self.ops.get(identity) or self.modules.get(identity)

    def count(self, call: Call) -> int | None:
        """The current count of the calls that an event represents."""
        return self.counts.get(call.id, call.count)

    def trace(self) -> Trace:
        """Everything since it was cleared, as one trace."""
        calls: list[Call] = [*self.modules.values(), *self.ops.values()]
        calls.sort(key=lambda call: call.id)
        shown = self._shown(calls)
        counted = [
            replace(call, count=self.counts[call.id]) if call.id in self.counts else call
            for call in calls
            if call.id in shown
        ]
        digests = {path: source.digest for path, source in sorted(self.sources.items())}
        return Trace(
            run=replace(self.run, files=digests),
            modules=tuple(call for call in counted if isinstance(call, ModuleCall)),
            ops=tuple(call for call in counted if isinstance(call, Op)),
            frames=tuple(self.frames.values()),
            variables=tuple(
                variable
                for number, variable in self.variables.items()
                if number not in self.cleared_variables
            ),
            coverage=self.coverage,
        )

    def _shown(self, calls: list[Call]) -> set[int]:
        """The calls that were made since all was cleared, and what they were made in."""
        shown: set[int] = set()
        pending = [call.id for call in calls if call.id not in self.cleared and call.count != 0]
        while pending:
            identity = pending.pop()
            call = self.call(identity)
            if call is not None and identity not in shown:
                shown.add(identity)
                around = (call.parent, call.module if isinstance(call, Op) else None)
                pending.extend(each for each in around if each is not None)
        return shown


@dataclass(slots=True, eq=False)
class Session:
    """A debug session: the processes it started, and what they recorded in each file."""

    identity: str
    order: int
    processes: dict[ProcessKey, Process] = field(default_factory=dict)
    files: dict[str, FileRecords] = field(default_factory=dict)
    """By file key."""
    is_over: bool = False
    """Whether no process is expected any more."""

    @property
    def is_running(self) -> bool:
        """Whether a process of it goes on."""
        return any(each.is_running for each in self.processes.values())

    @property
    def is_watching(self) -> bool:
        """Whether variables are watched in a process of it, or were."""
        return any(each.watched.requests for each in self.processes.values())

    @property
    def is_finished(self) -> bool:
        """Whether nothing more can come of it."""
        return self.is_over and not self.is_running
