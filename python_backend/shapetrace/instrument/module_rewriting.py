"""Puts hooks into a module's code, so that functions are followed as soon as they are defined.

`following` changes existing functions; this changes the code of the module that will define them.
So all functions have hooks from their first call on, decorated and nested ones too. The module's
own statements can be followed as well.
"""

from __future__ import annotations

import ast
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import _getframe
from typing import Final, NamedTuple, TypeAlias

from shapetrace._asynchronous import clean
from shapetrace._dynamo import Bystander, stand_by
from shapetrace._exception_table import catching_everywhere
from shapetrace._syntax import parsed
from shapetrace.instrument.fitting import first_location, fits, wanted_by, with_objects
from shapetrace.instrument.hooked_calls import Following
from shapetrace.instrument.hooks import HookPlan, HookSite, Leaving
from shapetrace.instrument.interface import Interest, Listener
from shapetrace.instrument.nodes import NOWHERE, Location
from shapetrace.instrument.rewriting import Rewriting
from shapetrace.instrument.source import Definition, compiled, first_line

MODULE: Final = "<module>"
"""The name of a module's code."""

_NOT_WHAT_RUNS: Final = (
    "its source is not what runs; was the file changed, or rewritten by another tool?"
)

_Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

Choice: TypeAlias = Sequence[tuple[Interest, Listener]]
"""Which listener follows a function, and what it asks for."""
Choose: TypeAlias = Callable[[str, ast.Module | Definition, types.CodeType], Choice]
"""Called with the qualified name of each function (or `<module>`), its definition and its code."""


class Origin(NamedTuple):
    """The origin of a code with hooks."""

    code: types.CodeType
    """The code without hooks."""
    compiled: types.CodeType
    """The code without hooks whose nested functions have hooks: for TorchDynamo."""
    inside: tuple[tuple[tuple[str, ...], Following], ...]
    """The listeners of the function and of nested functions, with the path to each."""


@dataclass(frozen=True, slots=True)
class FollowedModule:
    """The code to run in place of a module's own."""

    code: types.CodeType
    followings: tuple[tuple[Listener, Following], ...]
    problems: tuple[tuple[str, str], ...]
    """Functions that cannot be followed, and why."""


_ORIGINS: Final[weakref.WeakKeyDictionary[types.CodeType, Origin]] = weakref.WeakKeyDictionary()


def origin_of(code: types.CodeType) -> Origin:
    """The origin of a function's code that got hooks together with its module."""
    return _ORIGINS.get(code) or Origin(code, code, ())


class _HookedCode(Bystander):
    """Has TorchDynamo compile a function's original code.

    It caches the result with the code that runs, which keeps its hooks, so this is never undone.
    """

    def original(self, value: object) -> object:
        """The code without hooks."""
        return origin_of(value).compiled if isinstance(value, types.CodeType) else value


_HOOKED_CODE: Final = _HookedCode()


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.Module | Definition]]:
    """A module and all functions in it, with their qualified names."""
    yield MODULE, tree
    for around in _definitions(tree, ()):
        if not isinstance(around[-1], ast.ClassDef):
            yield _qualified(around), around[-1]


def nested_definitions(
    definition: Definition, name: str, code: types.CodeType
) -> Iterator[tuple[tuple[str, ...], str, Definition, types.CodeType]]:
    """A function and its nested functions: path, qualified name and code of each."""
    codes = _codes_in(code)
    yield (), name, definition, code
    for around in _definitions(definition, ()):
        node = around[-1]
        if not isinstance(node, ast.ClassDef):
            inner = f"{name}.<locals>.{_qualified(around)}"
            own = codes.get((node.name, first_line(node)))
            if own is not None:
                yield tuple(each.name for each in around), inner, node, own


def follow_module(
    text: str, code: types.CodeType, module: str, choose: Choose
) -> FollowedModule | None:
    """A module's code with the hooks that are asked for; None if none are."""
    refused: dict[str, str] = {}
    while True:
        attempt = _Attempt(text, code, module, choose, refused)
        if not attempt.chosen:
            return FollowedModule(code, (), tuple(refused.items())) if refused else None
        if not refused and not attempt.is_what_runs():
            return FollowedModule(code, (), ((MODULE, _NOT_WHAT_RUNS),))
        found = attempt.code()
        if found is not None:
            followings = tuple(one for each in attempt.chosen for one in each.heard)
            return FollowedModule(found, followings, tuple(refused.items()))


class _Chosen(NamedTuple):
    name: str
    definition: ast.Module | Definition
    own: types.CodeType
    around: tuple[_Scope, ...]
    """The function and the functions and classes around it, the outermost first."""
    heard: list[tuple[Listener, Following]]

    @property
    def followings(self) -> list[Following]:
        return [following for _, following in self.heard]


class _Attempt:
    """One attempt, on a fresh tree; functions that fail are refused in the next attempt."""

    def __init__(
        self,
        text: str,
        code: types.CodeType,
        module: str,
        choose: Choose,
        refused: dict[str, str],
    ) -> None:
        self._original: Final = code
        self._module: Final = module
        self._refused: Final = refused
        self._tree: Final = parsed(text)
        self._objects: Final[dict[object, object]] = {}
        self._definitions: Final = list(_definitions(self._tree, ()))
        self.chosen: Final = list(self._choose(choose))

    def _choose(self, choose: Choose) -> Iterator[_Chosen]:
        codes = _codes_in(self._original)
        is_refused = MODULE in self._refused
        choice = () if is_refused else choose(MODULE, self._tree, self._original)
        if choice:
            yield _Chosen(MODULE, self._tree, self._original, (), _followings(choice))
        for around in self._definitions:
            node, name = around[-1], _qualified(around)
            if isinstance(node, ast.ClassDef) or name in self._refused:
                continue
            own = codes.get((node.name, first_line(node)))
            choice = () if own is None else choose(name, node, own)
            if own is not None and choice:
                yield _Chosen(name, node, own, around, _followings(choice))

    def is_what_runs(self) -> bool:
        """Return whether the source compiles to the code that is to be replaced."""
        return self._compiled() == self._original

    def code(self) -> types.CodeType | None:
        """The module's code with hooks; None if a function in it has to be refused."""
        for each in self.chosen:
            self._rewrite(each)
        try:
            plain = self._compiled()
        except SyntaxError as error:
            for each in self._around(error.lineno):
                self._refused[each.name] = f"it cannot be compiled with hooks: {error.msg}"
            return None
        before = len(self._refused)
        codes = _codes_in(plain)
        for each in self.chosen:
            own = each.own
            found = codes[own.co_name, own.co_firstlineno] if own is not self._original else plain
            if not fits(found, own):
                self._refused[each.name] = "its code with hooks is not of the same kind"
        if len(self._refused) > before:
            return None
        result = with_objects(plain, self._objects)
        self._remember(result)
        return result

    def _around(self, line: int | None) -> list[_Chosen]:
        """The chosen functions around a line; all for None."""
        nodes = [(each, each.definition) for each in self.chosen]
        found = [
            each
            for each, node in nodes
            if not isinstance(node, ast.Module)
            and line is not None
            and node.lineno <= line <= (node.end_lineno or line)
        ]
        return found or self.chosen

    def _compiled(self) -> types.CodeType:
        return compiled(self._tree, self._original.co_filename, self._original.co_flags)

    def _rewrite(self, chosen: _Chosen) -> None:
        definition, own, followings = chosen.definition, chosen.own, chosen.followings
        stand_in = _stand_in(own, self._module)
        names = wanted_by(followings)
        returns = any(each.interest.returns for each in followings)
        if isinstance(definition, ast.Module):
            plan = HookPlan(stand_in, 1, followings)
            of_module = ModuleRewriting(definition, plan, names, returns)
            of_module.rewrite_module(first_location(own))
            self._objects.update(of_module.objects)
        else:
            plan = HookPlan(stand_in, definition.lineno, followings)
            rewriting = Rewriting(definition, plan, names, returns)
            rewriting.rewrite(first_location(own), own.co_varnames)
            self._objects.update(rewriting.objects)
        plan.finish()

    def _remember(self, module: types.CodeType) -> None:
        """Note the origin of each function that has hooks or defines one that has."""
        inside: dict[_Scope, dict[tuple[str, ...], list[Following]]] = {}
        for each in self.chosen:
            for number, scope in enumerate(each.around, 1):
                way = tuple(beyond.name for beyond in each.around[number:])
                inside.setdefault(scope, {}).setdefault(way, each.followings)
        old, new = _codes_in(self._original), _codes_in(module)
        functions = {
            (scope.name, first_line(scope)): found
            for scope, found in inside.items()
            if not isinstance(scope, ast.ClassDef)
        }
        hooked = {key: new[key] for key in functions if key in old and key in new}
        for key, code in hooked.items():
            ways = tuple((way, each) for way, heard in functions[key].items() for each in heard)
            _ORIGINS[code] = Origin(old[key], _defining(old[key], hooked), ways)
        if hooked:
            stand_by(_HOOKED_CODE)


class ModuleRewriting(Rewriting):
    """Rewrites the statements of a module, whose variables any code may delete."""

    def __init__(
        self, module: ast.Module, plan: HookPlan, names: frozenset[str] | None, returns: bool
    ) -> None:
        self._tree: Final = module
        futures = [each for each in module.body if _is_future(each)]
        documented = ast.get_docstring(module, clean=False) is not None
        self._head: Final = module.body[: documented + len(futures)]
        body = module.body[len(self._head) :] or [ast.Pass(**NOWHERE)]
        nobody = ast.arguments([], [], None, [], [], None, [])
        definition = ast.FunctionDef("module", nobody, body, [], lineno=1)
        super().__init__(definition, plan, names, returns=False)
        self._possible.update(self._wanted)  # Other code may store to them, too.
        self._tells_end: Final = returns

    def rewrite_module(self, first: Location) -> None:
        """Change the module. Its first instruction that has a line is at `first`."""
        body, _ = self._block(self._definition.body, frozenset())
        if self._tells_end:
            body.append(self._hooks.operation(Leaving(self._plan), NOWHERE))
        # Stop here: the loop would jump back to its begin.
        body.append(ast.Break(**NOWHERE))
        hooked = self._hooks.body(HookSite(self._plan, calls=True).enter, [""], body, first)
        self._tree.body = [*self._head, hooked]

    def _look(
        self,
        stored: list[tuple[str, int]],
        changes: bool,
        line: int,
        sure: frozenset[str],
        where: Location,
        *,
        raised: bool = False,
    ) -> tuple[list[ast.stmt], frozenset[str]]:
        marks, _ = self._marks(stored, changes, line, self._steady)
        if not marks:
            return [], sure
        # The frame to find is the module's, below that of the hook itself.
        site = GlobalSite(self._plan, marks, depth=2)
        look = site.look_at_namespace_after_raise if raised else site.look
        return [self._hooks.statement(look, [], where)], sure

    def _forget(self, names: set[str], where: Location) -> list[ast.stmt]:
        return []


class GlobalSite(HookSite):
    """A place in a module's own code; values are read from its namespace."""

    __slots__ = ()

    @property
    def look(self) -> Callable[..., object]:
        """The hook after variables were assigned, or may have changed."""
        return self.look_at_namespace

    @catching_everywhere
    def look_at_namespace(self) -> object:
        """Variables were assigned, or may have changed."""
        try:
            return self.look_at_all(*self._values_in(_getframe(1)))
        except BaseException as error:
            clean(error)
            raise

    @catching_everywhere
    def look_at_namespace_after_raise(self) -> object:
        """A block was left by an exception."""
        try:
            frame = _getframe(1)
            self.tell_after_raise(frame, tuple(self._values_in(frame)))
            return self
        except BaseException as error:
            clean(error)
            raise

    def _values_in(self, frame: types.FrameType) -> list[object]:
        missing, find = self.plan.gate, frame.f_globals.get
        return [find(name, missing) for name, _, _ in self.marks]


def _definitions(node: ast.AST, around: tuple[_Scope, ...]) -> Iterator[tuple[_Scope, ...]]:
    """All functions and classes, each after those that it is defined in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Scope):
            yield (*around, child)
            yield from _definitions(child, (*around, child))
        elif not isinstance(child, ast.expr):
            yield from _definitions(child, around)


def _qualified(around: tuple[_Scope, ...]) -> str:
    """The name that a function gives itself: ``Class.method``, ``outer.<locals>.inner``."""
    parts = [
        f"{scope.name}.<locals>" if isinstance(scope, Definition) else scope.name
        for scope in around[:-1]
    ]
    return ".".join([*parts, around[-1].name])


def _codes_in(code: types.CodeType) -> dict[tuple[str, int], types.CodeType]:
    """All code in a module's, by name and first line."""
    found: dict[tuple[str, int], types.CodeType] = {}
    pending = [code]
    while pending:
        each = pending.pop()
        found[each.co_name, each.co_firstlineno] = each
        pending += (inner for inner in each.co_consts if isinstance(inner, types.CodeType))
    return found


def _defining(
    code: types.CodeType, functions: Mapping[tuple[str, int], types.CodeType]
) -> types.CodeType:
    """A code that defines other functions than its own, by name and first line."""
    constants = tuple(
        functions.get((each.co_name, each.co_firstlineno)) or _defining(each, functions)
        if isinstance(each, types.CodeType)
        else each
        for each in code.co_consts
    )
    return code.replace(co_consts=constants)


def _stand_in(code: types.CodeType, module: str) -> types.FunctionType:
    """A stand-in for the function in reports before it exists; it is never called."""
    cells = tuple(types.CellType() for _ in code.co_freevars)
    return types.FunctionType(code, {"__name__": module}, None, None, cells)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _followings(choice: Choice) -> list[tuple[Listener, Following]]:
    return [(listener, Following(interest, listener, _nothing)) for interest, listener in choice]


def _nothing(following: Following) -> None:
    """Its hooks stay where they are, and do nothing."""
