"""In which module calls, and in which of several processes, something was so.

blocks.0, blocks.1 call 2
ranks 0, 2: blocks.0; rank 1: blocks.0, blocks.1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from shapetrace.events.model import ModuleCall, Op, Value
from shapetrace.views.styled import printable

MOST_PATHS: Final = 3
"""Modules that are named."""

_MOST_NAMES: Final = 4
"""Processes that are named."""


@dataclass(frozen=True, slots=True)
class CallInModule:
    """One call, how often it was made and in which module."""

    call: Op | ModuleCall
    count: int | None
    """None if the calls were not counted."""
    module: ModuleCall | None = None
    """The module that an op ran in."""
    process: str = ""
    """Which process made it, where there are several."""


@dataclass(frozen=True, slots=True)
class ValueInModule:
    """A value that a name had, and in which call of a module."""

    value: Value
    module: ModuleCall | None = None
    process: str = ""
    """Which process it was in, where there are several."""


_Titles: TypeAlias = Mapping[str, frozenset[str]]
"""Of something the modules that it is of, and for each the processes."""

_Numbers: TypeAlias = Mapping[tuple[str, str], set[int]]
"""By process and path which calls of a module there are."""


def owners_of(
    groups: Sequence[Sequence[CallInModule | ValueInModule]],
    besides: Sequence[CallInModule | ValueInModule] = (),
) -> list[str]:
    """For each of several groups what it is of, where that tells them apart.

    Processes are named if not all did the same, nor what is told ``besides``.
    """
    numbers: dict[tuple[str, str], set[int]] = {}
    for each in (each for group in groups for each in group):
        module = _module_of(each)
        if module is not None:
            numbers.setdefault((each.process, module.path), set()).add(module.call)
    titles = [_titles(group, numbers) for group in groups]
    every = [*titles, _titles(besides, numbers)]
    differ = len({names for each in every for names in each.values()}) > 1
    texts = [_owner(each, differ) for each in titles]
    is_telling = len(set(texts)) > 1 or len(texts) == 1
    return texts if is_telling else [""] * len(texts)


def processes_text(names: Iterable[str]) -> str:
    """``ranks 0, 1``: what several processes are called, each once."""
    distinct = sorted(dict.fromkeys(filter(None, names)), key=_number_at_end)
    kinds = {name.rpartition(" ")[0] for name in distinct}
    if len(distinct) < 2 or len(kinds) > 1:
        return ", ".join(distinct[:_MOST_NAMES])
    numbers = [name.rpartition(" ")[2] for name in distinct]
    plural = "ranks" if kinds == {"rank"} else "processes"
    if len(numbers) > _MOST_NAMES:
        return f"{len(numbers)} {plural}"
    return f"{plural} {', '.join(numbers)}"


def _titles(group: Sequence[CallInModule | ValueInModule], numbers: _Numbers) -> _Titles:
    found: dict[str, set[str]] = {}
    for each in group:
        module = _module_of(each)
        title = "" if module is None else module.path or module.class_name
        if module is not None and len(numbers.get((each.process, module.path), ())) > 1:
            title = f"{title} call {module.call}"
        found.setdefault(printable(title), set()).add(each.process)
    return {title: frozenset(names) for title, names in found.items()}


def _owner(titles: _Titles, is_process_named: bool) -> str:
    told = [title for title in titles if title or is_process_named]
    together: dict[str, list[str]] = {}
    for title in told[:MOST_PATHS]:
        processes = processes_text(titles[title]) if is_process_named else ""
        together.setdefault(processes, []).append(title)
    parts = [
        ": ".join(filter(None, [processes, ", ".join(filter(None, modules))]))
        for processes, modules in together.items()
    ]
    more = [f"{len(told) - MOST_PATHS} more"] if len(told) > MOST_PATHS else []
    return ", ".join(["; ".join(parts), *more])


def _module_of(each: CallInModule | ValueInModule) -> ModuleCall | None:
    if isinstance(each, CallInModule) and isinstance(each.call, ModuleCall):
        return each.call
    return each.module


def _number_at_end(name: str) -> tuple[int, str]:
    number = name.rpartition(" ")[2]
    return (int(number) if number.isdigit() else 0, name)
