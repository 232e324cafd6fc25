"""Which calls were made in the rounds of one loop, and when that was.

Of a call that was made again and again a trace knows when it was made first. What differs in a
later round comes after all that differs in the first one, wherever in the loop that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shapetrace.comparing.call_groups import CallGroup
from shapetrace.comparing.comparison import Event
from shapetrace.comparing.matching import CallPair
from shapetrace.events.model import Container, ModuleCall, Tensor

_Line: TypeAlias = tuple[str | None, int | None]


@dataclass(slots=True)
class Loop:
    """The loop that a call is in."""

    end: float
    """When its first round was over."""
    rounds: int
    around: Loop | None = None
    """The loop around that one."""

    def moment(self, call: int, calls: int) -> tuple[float, int] | None:
        """When one of so many calls was made, and in which round; None: in the first."""
        number = -(-call * self.rounds // calls)
        if self.around is not None:
            outer = self.around.moment(number, self.rounds)
            if outer is not None:
                return outer
        return (self.end, number) if number > 1 else None


def loops_of(
    rows: Sequence[CallPair], parent: Event | None, around: Loop | None
) -> list[Loop | None]:
    """For each of the rows below one call, the loop that it is in.

    What was called as often as what is around it is in the loop of that. A module that was called
    more often is in a loop with what follows it, until another module shows that this is over; else
    all that stand together and were called equally often are one.
    """
    outer = 1 if parent is None else parent.count or 1
    groups = [row.a or row.b for row in rows]
    counts = [_calls(group, outer) for group in groups]
    last = {_line(group): at for at, group in enumerate(groups) if counts[at] > outer}
    found: list[Loop | None] = []
    position = 0
    while position < len(rows):
        count = counts[position]
        if count <= outer:
            found.append(around)
            position += 1
            continue
        after = _end_of_loop(groups, counts, position, outer, last)
        ends = [row.a.bounds[0] for row in rows[position:after] if row.a is not None]
        end = max(ends, default=0.0) - 0.5
        found += [Loop(end, count, around)] * (after - position)
        position = after
    return found


def _calls(group: CallGroup | None, outer: int) -> int:
    """How often a group was reached; where each of its variants was in each round, that often."""
    if group is None:
        return 1
    if all(node.event.count == outer for node in group.nodes):
        return outer
    return group.calls


def _end_of_loop(
    groups: Sequence[CallGroup | None],
    counts: Sequence[int],
    start: int,
    outer: int,
    last: Mapping[_Line, int],
) -> int:
    """Where the loop ends that begins at a row; ``last`` is where each line is last repeated."""
    count = counts[start]
    end = start
    seen: dict[str, bool] = {}
    while end < len(groups) and counts[end] == count:
        if _is_module(groups[end]):
            if _is_elsewhere(groups[end], count, count, seen):
                return end
            seen[_path(groups[end])] = _trains(groups[end])
        end += 1
    if not any(_is_module(group) for group in groups[start:end]):
        return end
    at = end
    while at < len(groups):
        calls = counts[at]
        if calls <= outer:
            # The first round alone makes the state of an optimizer, on the line of its steps.
            if last.get(_line(groups[at]), -1) < at:
                break
        elif _is_module(groups[at]) and _is_elsewhere(groups[at], calls, count, seen):
            break
        else:
            end = at + 1
        at += 1
    return end


def _is_elsewhere(
    group: CallGroup | None, calls: int, count: int, begun: Mapping[str, bool]
) -> bool:
    """Whether a module call is in another loop than those before it: of an evaluation, say."""
    trains = begun.get(_path(group))
    if trains is None:
        return calls % count != 0 and count % calls != 0
    return calls != count or trains != _trains(group)


def _path(group: CallGroup | None) -> str:
    return group.event.path if group is not None and isinstance(group.event, ModuleCall) else ""


def _trains(group: CallGroup | None) -> bool:
    """Return whether a gradient may flow through what a call returned."""
    pending = [] if group is None else list(group.event.outputs)
    while pending:
        value = pending.pop()
        if isinstance(value, Tensor) and value.requires_grad:
            return True
        if isinstance(value, Container):
            pending += value.items
    return False


def _is_module(group: CallGroup | None) -> bool:
    return group is not None and isinstance(group.event, ModuleCall)


def _line(group: CallGroup | None) -> _Line:
    return (None, None) if group is None else (group.event.file, group.event.line)
