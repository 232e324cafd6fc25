"""The nesting of calls in one process, updated with each call."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from shapetrace.events.model import Op
from shapetrace.server.file_records import Call


class Nesting:
    """The calls of a process below the calls that they were made in, in order of appearance.

    None stands for what is made in no other call.
    """

    def __init__(self, *calls: Mapping[int, Call]) -> None:
        self._calls = calls
        """Where calls are found by their numbers; not by way of the process, which has this."""
        self._children: dict[int | None, list[int]] = {}
        self._parents: dict[int, int | None] = {}
        self._changes: dict[int | None, int] = {}
        self._early: dict[int, list[Call]] = {}
        """Calls that came before what they were made in."""
        self.version = 0
        """Grows with each change."""

    def add(self, call: Call) -> None:
        """Note a call, new or changed, and what it was made in."""
        while True:
            identity = call.id
            around = self._around(call)
            parent = None if around is None else around.id
            is_known = identity in self._parents
            if is_known and self._parents[identity] != parent:
                self._remove(identity)
                is_known = False
            if not is_known:
                self._parents[identity] = parent
                _insert(self._children.setdefault(parent, []), identity)
            self._changes[parent] = self._changes.get(parent, 0) + 1
            self.version += 1
            if identity in self._early:
                for inside in self._early.pop(identity):
                    self.add(inside)
            # All of what is around a call that is known is known as well.
            if is_known or around is None or parent in self._parents:
                return
            call = around

    def _around(self, call: Call) -> Call | None:
        """The call that another was made in; for a kernel it is the op that it ran for."""
        for identity in (call.parent, call.module if isinstance(call, Op) else None):
            if identity is not None and identity != call.id:
                for calls in self._calls:
                    if identity in calls:
                        return calls[identity]
                self._early.setdefault(identity, []).append(call)
        return None

    def clear(self) -> None:
        """Forget everything."""
        self._children.clear()
        self._parents.clear()
        self._early.clear()
        self.version += 1
        for parent in self._changes:
            self._changes[parent] += 1

    def __contains__(self, identity: int) -> bool:
        return identity in self._parents

    def children(self, parent: int | None) -> Sequence[int]:
        """The calls below a call, in order of appearance."""
        return self._children.get(parent, ())

    def changes(self, parent: int | None) -> int:
        """Grows with each change of what was made in a call."""
        return self._changes.get(parent, 0)

    def above(self, identity: int) -> Iterator[int]:
        """The calls around a call, from the inside to the outermost."""
        seen = {identity}
        parent = self._parents.get(identity)
        while parent is not None and parent not in seen:
            yield parent
            seen.add(parent)
            parent = self._parents.get(parent)

    def _remove(self, identity: int) -> None:
        parent = self._parents.pop(identity)
        self._children[parent].remove(identity)
        self._changes[parent] = self._changes.get(parent, 0) + 1


def _insert(identities: list[int], identity: int) -> None:
    # Nearly always the newest is the last.
    if not identities or identities[-1] < identity:
        identities.append(identity)
    else:
        identities.insert(bisect_left(identities, identity), identity)
