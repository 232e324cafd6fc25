"""Explains why nothing was reported for a watched name.

nothing that was loaded assigns 'vidoe'; did you mean video (in transform, pipeline.py:12)?
'video' is assigned in transform (pipeline.py:12), of which no call was seen
"""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from shapetrace._asynchronous import is_asynchronous
from shapetrace._syntax import parsed
from shapetrace.instrument.module_rewriting import MODULE, definitions
from shapetrace.instrument.scopes import assigned
from shapetrace.watch.wanted import Wanted

Sources: TypeAlias = dict[str, tuple[str, str]]
"""Module and text of each file."""

MOST_PLACES: Final = 3
"""Limit on the functions named in one line."""


@dataclass(frozen=True, slots=True)
class Place:
    """A function (or ``<module>``) that assigns a variable."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function} ({os.path.basename(self.file)}:{self.line})"


def line_of_missing(
    wanted: Wanted,
    places: Sequence[Place],
    sources: Mapping[str, tuple[str, str]],
    where: str = "",
) -> str:
    """One line that explains a name without reports; ``where`` says which processes saw no call."""
    if places:
        named = ", ".join(map(str, places[:MOST_PLACES]))
        more = len(places) - MOST_PLACES
        if more > 0:
            named += f" and {more:,} more"
        return f"{wanted.text!r} is assigned in {named}, of which no call was seen{where}"
    known = list(_variables(sources))
    if wanted.function is not None:
        functions = {place.function for place, _, _ in known}
        if not any(wanted.is_in(place.function, module) for place, _, module in known):
            said = f"no function {wanted.function!r} was loaded"
            near = difflib.get_close_matches(wanted.function, sorted(functions), 1)
            return f"{said}; did you mean {near[0]}?" if near else said
        known = [each for each in known if wanted.is_in(each[0].function, each[2])]
    name = wanted.name.text
    if not wanted.is_variable and any(wanted.root in names for _, names, _ in known):
        said = "nothing that was loaded mentions"
        if wanted.function is not None:
            said = f"{wanted.function} does not mention"
        return f"{said} {name!r} where {wanted.root} has a value"
    said = f"nothing that was loaded assigns {name!r}"
    if wanted.function is not None:
        said = f"{wanted.function} does not assign {name!r}"
    where_assigned: dict[str, tuple[Place, int]] = {}
    for place, names, _ in known:
        for each, line in names.items():
            where_assigned.setdefault(each, (place, line))
    near = difflib.get_close_matches(wanted.root, sorted(where_assigned), 1)
    if not near:
        return said
    place, line = where_assigned[near[0]]
    at = f"{os.path.basename(place.file)}:{line}"
    if place.function != MODULE:
        at = f"in {place.function}, {at}"
    return f"{said}; did you mean {near[0]} ({at})?"


def _variables(
    sources: Mapping[str, tuple[str, str]],
) -> Iterator[tuple[Place, dict[str, int], str]]:
    """Each function with the variables it assigns, and its module."""
    for file, (module, text) in sources.items():
        try:
            tree = parsed(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            if is_asynchronous(error):
                raise
            continue
        for name, node in definitions(tree):
            line = 1 if isinstance(node, ast.Module) else node.lineno
            yield Place(name, file, line), assigned(node), module
