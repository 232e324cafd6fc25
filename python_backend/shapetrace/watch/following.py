"""Which functions are followed for what is watched, and what became of each name."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from types import CodeType
from typing import Final, Protocol, TypeAlias

from shapetrace.instrument.interface import Call, Interest, Listener
from shapetrace.instrument.modules import MODULE, Choice, follow_module
from shapetrace.instrument.scopes import assigned
from shapetrace.instrument.source import Definition
from shapetrace.watch.missing import Place, Sources, line_of_missing
from shapetrace.watch.territory import Territory
from shapetrace.watch.wanted import Wanted

Listen: TypeAlias = Callable[[Place, CodeType, tuple[Wanted, ...]], Listener]
"""Makes a listener for what is wanted in one function, or in a module."""


class Watching:
    """Follows the variables of one name wherever the user's code assigns them."""

    def __init__(self, wanted: tuple[Wanted, ...], territory: Territory, listen: Listen) -> None:
        self.wanted: Final = wanted
        self._territory: Final = territory
        self._listen: Final = listen
        self._places: Final[dict[Wanted, list[Place]]] = {each: [] for each in wanted}
        self._reached: Final = _flags(len(wanted))
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

    def lines(self, where: str = "") -> list[str]:
        """What there is to say in the end: what is not followed, and names that brought nothing."""
        missing = (
            line_of_missing(each, self._places[each], dict(self._sources), where)
            for number, each in enumerate(self.wanted)
            if not self._reached[number]
        )
        return [*dict(self._problems), *missing]

    def _followed(self, code: CodeType, module: str, text: str) -> CodeType:
        file = code.co_filename
        self._sources[file] = (module, text)
        if not any(each.root in text for each in self.wanted):
            return code
        chosen: dict[str, Choice] = {}

        def choose(function: str, node: ast.Module | Definition, own: CodeType) -> Choice:
            line = 1 if isinstance(node, ast.Module) else node.lineno
            key = f"{line}:{function}"
            if key not in chosen:
                chosen[key] = self._choice(Place(function, file, line), module, node, own)
            return chosen[key]

        followed = follow_module(text, code, module, choose)
        if followed is None:
            return code
        for function, reason in followed.problems:
            where = os.path.basename(file) if function == MODULE else function
            self._problems[f"{where} is not watched: {reason}"] = None
        return followed.code

    def _choice(
        self, place: Place, module: str, node: ast.Module | Definition, code: CodeType
    ) -> Choice:
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
        for each in here:
            self._places[each].append(place)
        roots = frozenset(each.root for each in here)
        listener = self._listen(place, code, tuple(here))
        numbers = [self.wanted.index(each) for each in here]
        return [(Interest(roots, returns=True), _Reached(listener, self._reached, numbers))]


class _Reached:
    """A listener that also notes that there was a call."""

    def __init__(self, listener: Listener, flags: _Flags, numbers: list[int]) -> None:
        self._listener: Final = listener
        self._flags: Final = flags
        self._numbers: Final = numbers
        self.looked_at = listener.looked_at
        self.looked_at_all = getattr(listener, "looked_at_all", None)
        self.returned = listener.returned

    def entered(self, call: Call) -> object | None:
        """A call has begun."""
        for number in self._numbers:
            self._flags[number] = 1
        return self._listener.entered(call)


class _Flags(Protocol):
    def __getitem__(self, number: int, /) -> int: ...

    def __setitem__(self, number: int, value: int, /) -> None: ...


def _flags(count: int) -> _Flags:
    """Bytes that forked processes share: what is reached in one of them is reached."""
    try:
        import mmap

        return mmap.mmap(-1, max(count, 1))
    except (ImportError, OSError):
        return bytearray(count)
