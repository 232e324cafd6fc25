"""Which calls were made in the rounds of one loop, and when that was.

Of a call that was made again and again a trace knows when it was made first. What differs in a
later round comes after all that differs in the first one, wherever in the loop that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shapetrace.comparing.matching import Row
from shapetrace.comparing.model import Event
from shapetrace.comparing.sites import Site
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


def loops_of(rows: Sequence[Row], parent: Event | None, around: Loop | None) -> list[Loop | None]:
    """For each of the rows below one call, the loop that it is in.

    What was called as often as what is around it is in the loop of that. A module that was called
    more often is in a loop with what follows it, until another module shows that this is over; else
    all that stand together and were called equally often are one.
    """
    outer = 1 if parent is None else parent.count or 1
    sites = [row.a or row.b for row in rows]
    counts = [_calls(site, outer) for site in sites]
    last = {_line(site): at for at, site in enumerate(sites) if counts[at] > outer}
    found: list[Loop | None] = []
    position = 0
    while position < len(rows):
        count = counts[position]
        if count <= outer:
            found.append(around)
            position += 1
            continue
        after = _end_of_loop(sites, counts, position, outer, last)
        ends = [row.a.bounds[0] for row in rows[position:after] if row.a is not None]
        end = max(ends, default=0.0) - 0.5
        found += [Loop(end, count, around)] * (after - position)
        position = after
    return found


def _calls(site: Site | None, outer: int) -> int:
    """How often a site was reached; where each of its variants was in each round, that often."""
    if site is None:
        return 1
    if all(node.event.count == outer for node in site.nodes):
        return outer
    return site.calls


def _end_of_loop(
    sites: Sequence[Site | None],
    counts: Sequence[int],
    start: int,
    outer: int,
    last: Mapping[_Line, int],
) -> int:
    """Where the loop ends that begins at a row; ``last`` is where each line is last repeated."""
    count = counts[start]
    end = start
    seen: dict[str, bool] = {}
    while end < len(sites) and counts[end] == count:
        if _is_module(sites[end]):
            if _is_elsewhere(sites[end], count, count, seen):
                return end
            seen[_path(sites[end])] = _trains(sites[end])
        end += 1
    if not any(_is_module(site) for site in sites[start:end]):
        return end
    at = end
    while at < len(sites):
        calls = counts[at]
        if calls <= outer:
            # The first round alone makes the state of an optimizer, on the line of its steps.
            if last.get(_line(sites[at]), -1) < at:
                break
        elif _is_module(sites[at]) and _is_elsewhere(sites[at], calls, count, seen):
            break
        else:
            end = at + 1
        at += 1
    return end


def _is_elsewhere(site: Site | None, calls: int, count: int, begun: Mapping[str, bool]) -> bool:
    """Whether a module call is in another loop than those before it: of an evaluation, say."""
    trains = begun.get(_path(site))
    if trains is None:
        return calls % count != 0 and count % calls != 0
    return calls != count or trains != _trains(site)


def _path(site: Site | None) -> str:
    return site.event.path if site is not None and isinstance(site.event, ModuleCall) else ""


def _trains(site: Site | None) -> bool:
    """Whether a gradient may flow through what a call returned."""
    pending = [] if site is None else list(site.event.outputs)
    while pending:
        value = pending.pop()
        if isinstance(value, Tensor) and value.requires_grad:
            return True
        if isinstance(value, Container):
            pending += value.items
    return False


def _is_module(site: Site | None) -> bool:
    return site is not None and isinstance(site.event, ModuleCall)


def _line(site: Site | None) -> _Line:
    return (None, None) if site is None else (site.event.file, site.event.line)
