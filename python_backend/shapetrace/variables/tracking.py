"""Has functions followed: each once, for any number of requests.

A function stays the same object; only its code is replaced. For functions that are defined again in
each call of another one, the code with hooks is made once.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from shapetrace._errors import CannotFollowError
from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding, module_lock
from shapetrace.events.followed import FollowingNote
from shapetrace.instrument import Following, Interest, follow, own_code
from shapetrace.instrument.scopes import variables_of
from shapetrace.instrument.source import source_of
from shapetrace.variables.followed_names import never_assigned
from shapetrace.variables.loaded import loaded_tensors
from shapetrace.variables.outlets import Outlet, Outlets, Printing
from shapetrace.variables.variable_listener import Followed, VariableListener

_LOCK: Final = module_lock()


@dataclass(frozen=True, slots=True)
class Request:
    """What to report of a function, and to which outlets."""

    everything: tuple[Followed, ...]
    outlets: tuple[Outlet, ...]
    stats: bool = False
    """Whether statistics of arguments and results are reported too."""


class Tracking:
    """One request that is being served."""

    def __init__(self, subject: _Subject, function: types.FunctionType, request: Request) -> None:
        self.request = request
        self._subject: _Subject | None = subject
        self._function = weakref.ref(function)

    @leaving_surely
    def stop(self) -> None:
        """End the request; the last one restores the function's own code."""
        with holding(_LOCK):
            subject, self._subject = self._subject, None
            function = self._function()
            if subject is not None and function is not None:
                subject.remove(self, function)

    def __enter__(self) -> Tracking:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


@leaving_surely
def track(function: Callable[..., Any], request: Request) -> Tracking:
    """Follow a function that was defined with ``def``."""
    if not isinstance(function, types.FunctionType):
        raise CannotFollowError(f"{function!r} is not a function that was defined in Python")
    loaded_tensors()
    with holding(_LOCK):
        subject = _subjects.get(function)
        if subject is None:
            subject = _Subject(function)
        tracking = Tracking(subject, function, request)
        subject.add(tracking, function)
        return tracking


class _Subject:
    """A followed function, with all its requests."""

    def __init__(self, function: types.FunctionType) -> None:
        self._code: Final = own_code(function)
        self._trackings: list[Tracking] = []
        self._following: Following | None = None
        is_inner = function.__qualname__.endswith(f"<locals>.{function.__name__}")
        self._is_shared = is_inner and function.__code__ is self._code

    def add(self, tracking: Tracking, function: types.FunctionType) -> None:
        self._apply([*self._trackings, tracking], function)

    def remove(self, tracking: Tracking, function: types.FunctionType) -> None:
        self._apply([each for each in self._trackings if each is not tracking], function)

    def _apply(self, trackings: list[Tracking], function: types.FunctionType) -> None:
        request = _merged([each.request for each in trackings])
        if self._is_shared:
            code = self._code if not trackings else _shared_code(function, self._code, request)
            function.__code__ = code
        else:
            following = _follow(function, self._code, request) if trackings else None
            former, self._following = self._following, following
            if former is not None:
                former.stop()
        if trackings:
            _subjects[function] = self
        else:
            _subjects.pop(function, None)
        self._trackings = trackings


_subjects: Final[weakref.WeakKeyDictionary[types.FunctionType, _Subject]] = (
    weakref.WeakKeyDictionary()
)
_shared: Final[dict[object, tuple[types.FunctionType, Request]]] = {}
"""Carriers of the code with hooks of nested functions, made once. Their requests are kept too, so
that the ids in the key stay unique."""


def _merged(requests: Iterable[Request]) -> Request:
    everything: dict[str, Followed] = {}
    outlets: list[Outlet] = []
    stats = False
    for request in requests:
        for each in request.everything:
            known = everything.get(each.name.text)
            if known is None or (known.tolerance is None and each.tolerance is not None):
                everything[each.name.text] = each
        outlets += [each for each in request.outlets if not _is_in(each, outlets)]
        stats = stats or request.stats
    return Request(tuple(everything.values()), tuple(outlets), stats)


def _is_in(outlet: Outlet, outlets: list[Outlet]) -> bool:
    return any(
        each is outlet
        or (isinstance(each, Printing) and isinstance(outlet, Printing) and each == outlet)
        for each in outlets
    )


def _shared_code(
    function: types.FunctionType, code: types.CodeType, request: Request
) -> types.CodeType:
    outlets = tuple(each if isinstance(each, Printing) else id(each) for each in request.outlets)
    key = (code, function.__qualname__, request.everything, request.stats, outlets)
    found = _shared.get(key)
    if found is None:
        # It has empty cells, so that it keeps nothing alive.
        cells = tuple(types.CellType() for _ in code.co_freevars)
        known = types.FunctionType(code, function.__globals__, function.__name__, None, cells)
        known.__qualname__ = function.__qualname__
        known.__module__ = function.__module__
        _follow(known, code, request)
        found = _shared[key] = (known, request)
    return found[0].__code__


def _follow(function: types.FunctionType, code: types.CodeType, request: Request) -> Following:
    outlets = Outlets(request.outlets)
    definition = source_of(function, code).definition
    variables = variables_of(definition)
    known, foreign = frozenset(variables.names), frozenset(variables.foreign)
    for each in request.everything:
        text = never_assigned(each.name, known, function.__qualname__, foreign)
        if text is not None:
            outlets.tell(
                FollowingNote(text, function.__qualname__, code.co_filename, definition.lineno)
            )
    listener = VariableListener(
        code,
        function.__qualname__,
        definition.lineno,
        request.everything,
        outlets,
        request.stats,
    )
    names = frozenset(each.name.root for each in request.everything)
    return follow(function, Interest(names, True, merges=False), listener)
