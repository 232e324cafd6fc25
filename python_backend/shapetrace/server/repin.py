"""Finding a call that is pinned in one run of a program again in the next one."""

from __future__ import annotations

from dataclasses import dataclass

from shapetrace.events.model import ModuleCall
from shapetrace.server.processes import Process, Session


@dataclass(frozen=True, slots=True)
class PinKey:
    """A call by what it is called in every run: which one of a module, and made in which."""

    order: int
    """Of the session that it was pinned in: an older one is no next run."""
    rank: int | None
    position: int
    """Which process it is of those without a rank that recorded anything."""
    number: int = 0
    """Which call of the module; 0 where a whole process is pinned."""
    modules: tuple[tuple[str, str], ...] = ()
    """Path and class of the module, and of those that it was called in, from the inside out."""

    def find(self, session: Session) -> tuple[int, int] | None:
        """The process and the call; None as long as that is not there."""
        for process in session.processes.values():
            if (process.rank, _position(process)) == (self.rank, self.position):
                call = self._find_call(process)
                return None if call is None else (process.number, call)
        return None

    def _find_call(self, process: Process) -> int | None:
        if not self.modules:
            return 0 if process.nesting.children(None) else None
        found = [
            process.modules[identity]
            for identity in process.named.get(self.modules[0], ())
            if identity in process.nesting
        ]
        calls = [call for call in found if _modules(process, call.id) == self.modules] or found
        calls.sort(key=lambda call: call.call)
        exact = [call.id for call in calls if call.call == self.number]
        if exact:
            return exact[0]
        # Calls with the same shapes are one: the number may be that of a later one of these.
        if sum(process.count(call) or 1 for call in found) < self.number:
            return None
        return next((call.id for call in reversed(calls) if call.call < self.number), None)


def pin_key_of(process: Process, call: int) -> PinKey:
    """How to find a call again, or a whole process with 0 for the call."""
    module = process.modules.get(call)
    return PinKey(
        order=process.session.order,
        rank=process.rank,
        position=_position(process),
        number=0 if module is None else module.call,
        modules=() if module is None else _modules(process, call),
    )


def _position(process: Process) -> int:
    """Its number among the processes of its session that are like it and recorded anything."""
    alike = [
        each
        for each in process.session.processes.values()
        if each.rank == process.rank and (each.ops or each.modules)
    ]
    return alike.index(process) if process in alike else -1


def _modules(process: Process, call: int) -> tuple[tuple[str, str], ...]:
    calls = map(process.modules.get, (call, *process.nesting.above(call)))
    return tuple((each.path, each.class_name) for each in calls if isinstance(each, ModuleCall))
