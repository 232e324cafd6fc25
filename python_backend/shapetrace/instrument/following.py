"""Follows functions: gives them code with hooks, and gives them back their own."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any, Final

from shapetrace._asynchronous import surely
from shapetrace._errors import CannotFollowError
from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding, module_lock
from shapetrace.instrument.codes import give_hooks, take_hooks
from shapetrace.instrument.fitting import first_location, fits, wanted_by, with_objects
from shapetrace.instrument.hooked_calls import Following
from shapetrace.instrument.hooks import HookPlan
from shapetrace.instrument.interface import Interest, Listener
from shapetrace.instrument.module_rewriting import origin_of
from shapetrace.instrument.rewriting import Rewriting
from shapetrace.instrument.source import Definition, find_code, first_line, source_of

__all__ = ["Following", "follow"]

_LOCK: Final = module_lock()
_FOLLOWED: Final[dict[types.FunctionType, _Followed]] = {}


@leaving_surely
def follow(function: Callable[..., Any], interest: Interest, listener: Listener) -> Following:
    """Report a function's calls to a listener, until the following is stopped."""
    if not isinstance(function, types.FunctionType):
        raise CannotFollowError(f"{function!r} is not a function that was defined in Python")
    following: Following | None = None
    try:
        with holding(_LOCK):
            followed = _FOLLOWED.get(function) or _Followed(function)
            following = Following(interest, listener, followed.remove)
            followed.add(following)
        return following
    except BaseException:  # if the program raised it, the function may be followed already
        if following is not None:
            surely(following.stop)
        raise


def own_code(function: types.FunctionType) -> types.CodeType:
    """The code that a function has without hooks."""
    followed = _FOLLOWED.get(function)
    return origin_of(function.__code__).code if followed is None else followed.code


class _Followed:
    """A function that has followers."""

    def __init__(self, function: types.FunctionType) -> None:
        self._function: Final = function
        self._given: Final = function.__code__
        self._origin: Final = origin_of(function.__code__)
        self._followings: list[Following] = []

    @property
    def code(self) -> types.CodeType:
        """The code without hooks."""
        return self._origin.code

    def add(self, following: Following) -> None:
        """Add a listener; after an exception, ``remove`` undoes it."""
        self._followings = [*self._followings, following]
        self._apply(self._followings)

    @leaving_surely
    def remove(self, following: Following) -> None:
        """Remove a listener; can be repeated after an interruption."""
        with holding(_LOCK):
            rest = [each for each in self._followings if each is not following]
            if len(rest) < len(self._followings):
                self._apply(rest)
                self._followings = rest

    def _apply(self, followings: list[Following]) -> None:
        if followings:
            inside = [each for each in self._origin.inside if each[1].is_active]
            inside += ((each.interest.nested, each) for each in followings)
            hooked = _rewritten(self._function, self.code, inside)
            give_hooks(self._function, self._given, hooked, self._step_aside)
            _FOLLOWED[self._function] = self
        else:
            take_hooks(self._function, self._given)
            _FOLLOWED.pop(self._function, None)

    def _step_aside(self) -> None:
        for following in self._followings:
            following.step_aside()


def _rewritten(
    function: types.FunctionType,
    code: types.CodeType,
    followings: list[tuple[tuple[str, ...], Following]],
) -> types.CodeType:
    """A function's code with hooks for all listeners, in it and in nested functions."""
    source = source_of(function, code)
    objects: dict[object, object] = {}
    for nested in sorted({way for way, _ in followings}):
        listening = [following for way, following in followings if way == nested]
        for definition in _nested(source.definition, nested, function):
            objects |= _rewrite(function, code, definition, listening)
    try:
        module = source.compiled()
    except SyntaxError as error:
        raise CannotFollowError(
            f"cannot follow {function.__qualname__}: {error.msg}", error.msg
        ) from None
    line = first_line(source.definition)
    found = find_code(
        module, lambda each: each.co_name == code.co_name and each.co_firstlineno == line
    )
    if found is None or not fits(found, code):
        reason = "its code with hooks is not of the same kind"
        raise CannotFollowError(f"cannot follow {function.__qualname__}: {reason}", reason)
    return with_objects(found, objects)


def _rewrite(
    function: types.FunctionType,
    code: types.CodeType,
    definition: Definition,
    followings: list[Following],
) -> dict[object, object]:
    line = first_line(definition)
    own = find_code(
        code, lambda each: each.co_name == definition.name and each.co_firstlineno == line
    )
    if own is None:
        return {}
    plan = HookPlan(function, definition.lineno, followings)
    returns = any(following.interest.returns for following in followings)
    rewriting = Rewriting(definition, plan, wanted_by(followings), returns)
    rewriting.rewrite(first_location(own), own.co_varnames)
    plan.finish()
    return rewriting.objects


def _nested(
    definition: Definition, way: tuple[str, ...], function: types.FunctionType
) -> list[Definition]:
    found: list[ast.AST] = [definition]
    for name in way:
        found = [inner for outer in found for inner in _defined(outer, name)]
    functions = [each for each in found if isinstance(each, Definition)]
    if not functions:
        raise CannotFollowError(
            f"no function {'.'.join(way)} is defined in {function.__qualname__}"
        )
    return functions


def _defined(outer: ast.AST, name: str) -> list[ast.AST]:
    found: list[ast.AST] = []
    pending = [*ast.iter_child_nodes(outer)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == name:
                found.append(node)
        elif not isinstance(node, ast.expr):
            pending += ast.iter_child_nodes(node)
    return found
