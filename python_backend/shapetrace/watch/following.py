"""Which functions are followed for what is watched, and what became of each name."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Final, TypeAlias

from shapetrace.instrument.interface import Call, Interest, Listener
from shapetrace.instrument.modules import MODULE, Choice, FollowedModule, follow_module
from shapetrace.instrument.scopes import assigned
from shapetrace.instrument.source import Definition
from shapetrace.watch.missing import Place, Sources, line_of_missing
from shapetrace.watch.territory import Territory
from shapetrace.watch.wanted import Wanted

Listen: TypeAlias = Callable[[tuple[str, ...]], Listener]
"""Makes a listener for variables of these names, as the user wrote them."""


@dataclass(slots=True)
class _Found:
    """What is known of one that is wanted."""

    places: list[Place] = field(default_factory=list)
    is_reached: bool = False


class Watching:
    """Follows the variables of one name wherever the user's code assigns them."""

    def __init__(self, wanted: tuple[Wanted, ...], territory: Territory, listen: Listen) -> None:
        self.wanted: Final = wanted
        self._territory: Final = territory
        self._listen: Final = listen
        self._found: Final = {each: _Found() for each in wanted}
        self._sources: Final[Sources] = {}
        self._problems: Final[dict[str, None]] = {}

    def prepared(self, code: CodeType, module: str, text: Callable[[], str | None]) -> CodeType:
        """What is to run in place of a module's code: often the same. Never raises."""
        try:
            if not self._territory.has(module, code.co_filename):
                return code
            source = text()
            if source is None:
                return code
            return self._followed(code, module, source)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self._problems[f"{code.co_filename} is not watched: {reason}"] = None
            return code

    def lines(self) -> list[str]:
        """What there is to say in the end: what is not followed, and names that brought nothing."""
        found = dict(self._found)
        missing = (
            line_of_missing(each, found[each].places, dict(self._sources))
            for each in self.wanted
            if not found[each].is_reached
        )
        return [*dict(self._problems), *missing]

    def _followed(self, code: CodeType, module: str, text: str) -> CodeType:
        file = code.co_filename
        self._sources[file] = (module, text)
        if not any(each.root in text for each in self.wanted):
            return code
        chosen: dict[str, Choice] = {}

        def choose(function: str, node: ast.Module | Definition) -> Choice:
            line = 1 if isinstance(node, ast.Module) else node.lineno
            key = f"{line}:{function}"
            if key not in chosen:
                chosen[key] = self._choice(Place(function, file, line), module, node)
            return chosen[key]

        followed: FollowedModule | None = follow_module(text, code, module, choose)
        if followed is None:
            return code
        for function, reason in followed.problems:
            where = os.path.basename(file) if function == MODULE else function
            self._problems[f"{where} is not watched: {reason}"] = None
        return followed.code

    def _choice(self, place: Place, module: str, node: ast.Module | Definition) -> Choice:
        names = assigned(node)
        here = [
            each
            for each in self.wanted
            if each.root in names
            and each.is_in(place.function, module)
            and (each.is_variable or each.is_mentioned(node))
        ]
        if not here:
            return ()
        found = [self._found[each] for each in here]
        for each in found:
            each.places.append(place)
        roots = frozenset(each.root for each in here)
        listener = self._listen(tuple(dict.fromkeys(each.name for each in here)))
        return [(Interest(roots, returns=True), _Reached(listener, found))]


class _Reached:
    """A listener that also notes that there was a call."""

    def __init__(self, listener: Listener, found: list[_Found]) -> None:
        self._listener: Final = listener
        self._found: Final = found
        self.looked_at = listener.looked_at
        self.looked_at_all = getattr(listener, "looked_at_all", None)
        self.returned = listener.returned

    def entered(self, call: Call) -> object | None:
        """A call has begun."""
        for each in self._found:
            each.is_reached = True
        return self._listener.entered(call)
