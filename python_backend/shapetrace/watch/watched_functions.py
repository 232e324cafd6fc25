"""Follows functions for the watched names, and notes what became of each name."""

from __future__ import annotations

import ast
import os
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Final, Protocol, TypeAlias

from shapetrace._asynchronous import is_asynchronous
from shapetrace._dynamo import TO_SEE_IT_ALL, regions_begun
from shapetrace.instrument import Following
from shapetrace.instrument.interface import Hooks, Interest, Listener
from shapetrace.instrument.module_rewriting import MODULE, Choice, follow_module
from shapetrace.instrument.scopes import assigned
from shapetrace.instrument.source import Definition
from shapetrace.watch.existing import follow_existing, functions_in
from shapetrace.watch.territory import Territory
from shapetrace.watch.unseen_names import Place, Sources, line_of_missing
from shapetrace.watch.wanted import Wanted

Listen: TypeAlias = Callable[[Place, CodeType, tuple[Wanted, ...]], Listener]
"""Makes a listener for names in one function, or in a module."""


@dataclass(slots=True)
class _Found:
    """What was found for one name."""

    places: list[Place] = field(default_factory=list)
    reached: Flag = field(default_factory=lambda: _flag())
    followings: list[Following] = field(default_factory=list)


class Watching:
    """Follows variables wherever the user's code assigns them.

    With ``apart``, each name has its own listener, and can be dropped by itself.
    """

    def __init__(
        self,
        wanted: Iterable[Wanted],
        territory: Territory,
        listen: Listen,
        *,
        apart: bool = False,
    ) -> None:
        self._territory: Final = territory
        self._listen: Final = listen
        self._apart: Final = apart
        self._found: Final = {each: _Found() for each in wanted}
        self._sources: Final[Sources] = {}
        self._regions_before: Final = regions_begun()
        self.problems: Final[dict[str, None]] = {}
        """What cannot be followed, and why."""

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """All watched names."""
        return tuple(self._found)

    def prepared(self, code: CodeType, module: str, text: Callable[[], str | None]) -> CodeType:
        """The code to run in place of a module's own, often the same. Never raises."""
        try:
            if not self._found or not self._territory.has(module, code.co_filename):
                return code
            source = text()
            return code if source is None else self._followed(code, module, source)
        except Exception as error:
            if is_asynchronous(error):
                raise
            self._note(code.co_filename, f"{type(error).__name__}: {error}")
            return code

    def add(self, wanted: Iterable[Wanted]) -> None:
        """Watch more names, in modules loaded from now on and in existing functions."""
        new = [each for each in wanted if each not in self._found]
        for each in new:
            self._found[each] = _Found()
        if not new:
            return
        roots = frozenset(each.root for each in new)
        for function in list(functions_in(self._territory.has)):
            try:
                self._follow(function, new, roots)
            except Exception as error:
                if is_asynchronous(error):
                    raise
                self._note(function.__qualname__, f"{type(error).__name__}: {error}")

    def drop(self, wanted: Wanted) -> None:
        """Stop watching a name."""
        found = self._found.pop(wanted, None)
        for following in found.followings if found is not None else ():
            following.stop()

    def missing(self, wanted: Wanted, where: str = "") -> str | None:
        """Explain a name without reports; None if there are some."""
        found = self._found[wanted]
        if found.reached[0]:
            return None
        return line_of_missing(wanted, found.places, dict(self._sources), where)

    def lines(self, where: str = "") -> list[str]:
        """The lines to print at the end: what cannot be followed, and names without reports."""
        missing = (self.missing(each, where) for each in self.wanted)
        aside = regions_begun() - self._regions_before
        count = f"{aside:,} calls of it"
        compiled = f"stepped around what torch.compile has compiled ({count}); {TO_SEE_IT_ALL}"
        return [
            *dict(self.problems),
            *(line for line in missing if line is not None),
            *([compiled] if aside else ()),
        ]

    def _followed(self, code: CodeType, module: str, text: str) -> CodeType:
        file = code.co_filename
        self._sources[file] = (module, text)
        if not any(each.root in text for each in self._found):
            return code
        chosen: dict[tuple[str, int], Choice] = {}

        def choose(function: str, node: ast.Module | Definition, own: CodeType) -> Choice:
            line = 1 if isinstance(node, ast.Module) else node.lineno
            key = (function, line)
            if key not in chosen:
                place = Place(function, file, line)
                chosen[key] = self._choice(place, module, node, own, self.wanted)
            return chosen[key]

        followed = follow_module(text, code, module, choose)
        if followed is None:
            return code
        for function, reason in followed.problems:
            self._note(file if function == MODULE else function, reason)
        self._keep(followed.followings)
        return followed.code

    def _follow(
        self, function: types.FunctionType, wanted: list[Wanted], roots: frozenset[str]
    ) -> None:
        """Follow an existing function."""
        module, file = function.__module__ or "", function.__code__.co_filename

        def choose(name: str, node: ast.Module | Definition, own: CodeType) -> Choice:
            line = 1 if isinstance(node, ast.Module) else node.lineno
            return self._choice(Place(name, file, line), module, node, own, wanted)

        followings, problem = follow_existing(function, roots, choose)
        self._keep(followings)
        if problem is not None:
            self._note(function.__qualname__, problem)

    def _choice(
        self,
        place: Place,
        module: str,
        node: ast.Module | Definition,
        code: CodeType,
        wanted: Iterable[Wanted],
    ) -> Choice:
        names = assigned(node)
        here = [
            each
            for each in wanted
            if each.root in names
            and each.is_in(place.function, module)
            and (each.is_variable or each.is_mentioned(node))
        ]
        groups = [[each] for each in here] if self._apart else [here] if here else []
        return [self._heard(place, code, tuple(group)) for group in groups]

    def _heard(
        self, place: Place, code: CodeType, wanted: tuple[Wanted, ...]
    ) -> tuple[Interest, Listener]:
        found = [self._found[each] for each in wanted]
        for each in found:
            if place not in each.places:
                each.places.append(place)
        roots = frozenset(each.root for each in wanted)
        interest = Interest(roots, merges=False, returns=True)
        return interest, _Reached(self._listen(place, code, wanted), found)

    def _keep(self, followings: Iterable[tuple[Listener, Following]]) -> None:
        for listener, following in followings:
            if isinstance(listener, _Reached):
                for found in listener.found:
                    found.followings.append(following)

    def _note(self, what: str, reason: str) -> None:
        self.problems[f"{os.path.basename(what)} is not watched: {reason}"] = None


class _Reached:
    """A listener that also notes the first call."""

    def __init__(self, listener: Listener, found: list[_Found]) -> None:
        self.found: Final = found
        self._listener: Final = listener

    def hooks(self) -> Hooks:
        """The listener's hooks; compiled functions are reported at the end."""
        own = self._listener.hooks()
        return replace(
            own,
            entered=own.entered and self._noting(own.entered),
            entered_by=own.entered_by and self._noting(own.entered_by),
            entered_with=own.entered_with and self._noting(own.entered_with),
            stepped_aside=None,
        )

    def _noting(self, entered: Callable[..., object]) -> Callable[..., object]:
        found = self.found

        def noted(*call: object) -> object:
            for each in found:
                each.reached[0] = 1
            return entered(*call)

        return noted


class Flag(Protocol):
    """A byte."""

    def __getitem__(self, number: int, /) -> int:
        """The value."""
        ...

    def __setitem__(self, number: int, value: int, /) -> None:
        """Give it a value."""
        ...


def _flag() -> Flag:
    """A byte shared with forked processes: a call in one of them counts for all."""
    try:
        import mmap

        return mmap.mmap(-1, 1)
    except (ImportError, OSError) as error:
        if is_asynchronous(error):
            raise
        return bytearray(1)
