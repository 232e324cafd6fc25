"""Which assignment gave a name the value that it has at a place, where there is no doubt.

The one assignment is looked for that runs each time before the place is reached, with none in
between. Loops, branches, ``nonlocal`` and so on put that in doubt, and then there is no answer; so
do methods that change a tensor's own shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shapetrace.server.ranges import SourceRange, range_of

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)

_TRANSPARENT = frozenset(
    {"autocast", "device", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"}
)
"""Contexts of torch's that never swallow an error, so that what is in them has run behind them."""


_RESHAPING = frozenset(
    {
        *("as_strided_", "resize_", "resize_as_", "set_", "squeeze_", "swapaxes_", "swapdims_"),
        *("t_", "transpose_", "unsqueeze_", "data"),
    }
)
"""Methods that change a tensor's own shape, and what may be assigned to for it to change."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a name got its value."""

    name: str
    target: SourceRange
    """The name as written there."""
    function: str | None = None
    """The function whose parameter it is; None for what was assigned."""
    declared: int = 0
    """The first line of that function."""


def definition_of(path: Sequence[ast.AST]) -> Definition | None:
    """The definition of the name at the end of a path of nodes that begins at the module."""
    name = path[-1]
    if not isinstance(name, ast.Name) or not isinstance(name.ctx, ast.Load):
        return None
    for depth in range(len(path) - 2, -1, -1):
        scope = path[depth]
        if isinstance(scope, _COMPREHENSIONS):
            within = _in_comprehension(scope, path[depth + 1], name.id)
            if within is not None:
                return within.definition
        elif isinstance(scope, ast.Lambda):
            return _parameter(scope, name.id) if path[depth + 1] is scope.body else None
        elif isinstance(scope, ast.ClassDef):
            return None
        elif isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            is_inside = isinstance(scope, ast.Module) or path[depth + 1] in scope.body
            return _in_scope(scope, path[depth:], name.id) if is_inside else None
    return None


@dataclass(frozen=True, slots=True)
class _Within:
    """That a comprehension has the name to itself; the definition only where it is certain."""

    definition: Definition | None


def _in_comprehension(scope: ast.AST, inner: ast.AST, name: str) -> _Within | None:
    generators: list[ast.comprehension] = getattr(scope, "generators", [])
    targets = [node for each in generators for node in ast.walk(each.target) if _stores(node, name)]
    if not targets:
        return None
    first = generators[0]
    if inner is first or inner in generators or len(targets) > 1:
        # In the generators themselves the name may still be the one outside.
        return _Within(None)
    target = targets[0]
    assert isinstance(target, ast.Name)
    return _Within(Definition(name, range_of(target)))


def _in_scope(scope: ast.AST, path: Sequence[ast.AST], name: str) -> Definition | None:
    if _is_shared(scope, name) or _may_reshape(scope):
        return None
    statements = [node for node in path if isinstance(node, (ast.stmt, *_HANDLERS))]
    for depth in range(len(statements) - 1, -1, -1):
        inner = statements[depth]
        if inner is scope:
            return _parameter(inner, name) if isinstance(inner, _FUNCTIONS) else None
        below = statements[depth + 1] if depth + 1 < len(statements) else None
        owner: ast.AST = statements[depth - 1] if depth else scope
        found = _own_binding(inner, below, name)
        if found is not None:
            return found.definition
        if isinstance(inner, _HANDLERS):
            # An error may have come from anywhere in what was tried.
            if isinstance(owner, _TRIES) and _stores_in(owner.body, name):
                return None
            continue
        block = _block(owner, inner)
        if block is None:
            return None
        for before in reversed(block[: block.index(inner)]):
            if any(_all_stores(before, name)):
                return _certain(before, name)
        if isinstance(owner, _TRIES) and block is not owner.body and _stores_in([owner], name):
            return None
    return None


_HANDLERS = (ast.excepthandler, ast.match_case)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TRIES = (ast.Try, ast.TryStar)


def _own_binding(statement: ast.AST, below: ast.AST | None, name: str) -> _Within | None:
    """Whether a statement around the place, or the one it is in, has a say in the name."""
    is_head = below is None
    if isinstance(statement, _LOOPS):
        if not isinstance(statement, ast.While) and is_head:
            return None
        stores = list(_all_stores(statement, name))
        if not stores:
            return None
        if isinstance(statement, ast.While) or below not in statement.body:
            return _Within(None)
        return _Within(_lone_target(statement.target, stores, name))
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [each.optional_vars for each in statement.items if each.optional_vars]
        stores = [store for each in targets for store in _all_stores(each, name)]
        if not stores:
            return _doubt(statement, name)
        return _Within(None if is_head else _lone_target(targets[0], stores, name))
    if isinstance(statement, (*_HANDLERS, ast.Match)):
        stores = list(_all_stores(statement, name))
        return _Within(None) if stores else None
    return _doubt(statement, name)


def _doubt(statement: ast.AST, name: str) -> _Within | None:
    """A name given by ``:=`` in the head of a statement, before or behind the place."""
    children = ast.iter_child_nodes(statement)
    heads = (each for each in children if not isinstance(each, (ast.stmt, *_HANDLERS)))
    named = (node for head in heads for node in ast.walk(head) if isinstance(node, ast.NamedExpr))
    return _Within(None) if any(node.target.id == name for node in named) else None


def _lone_target(target: ast.expr, stores: list[ast.AST], name: str) -> Definition | None:
    found = [node for node in ast.walk(target) if _stores(node, name)]
    if len(stores) != 1 or len(found) != 1 or not isinstance(found[0], ast.Name):
        return None
    return Definition(name, range_of(found[0]))


def _certain(statement: ast.stmt, name: str) -> Definition | None:
    """The one place in a statement that has run where a name is assigned for certain."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        if not all(_is_transparent(item.context_expr) for item in statement.items):
            return None
        for inner in reversed(statement.body):
            if any(_all_stores(inner, name)):
                return _certain(inner, name)
        return None
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return None
    stores = list(_all_stores(statement, name))
    if len(stores) != 1 or not isinstance(stores[0], ast.Name):
        return None
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return None
    value = statement.value
    if value is not None and any(node is stores[0] for node in ast.walk(value)):
        return None
    return Definition(name, range_of(stores[0]))


def _parameter(function: Function, name: str) -> Definition | None:
    arguments = function.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in (*listed, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.arg == name:
            title = "<lambda>" if isinstance(function, ast.Lambda) else function.name
            return Definition(name, range_of(argument), title, first_line(function))
    return None


def first_line(node: ast.AST) -> int:
    """The line on which a function begins with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    line: int = getattr(node, "lineno", 1)
    return min([line, *(decorator.lineno for decorator in decorators)])


def _block(owner: ast.AST, statement: ast.AST) -> list[ast.stmt] | None:
    for field in _BLOCKS:
        block: list[ast.stmt] | ast.expr | None = getattr(owner, field, None)
        if isinstance(block, list) and statement in block:
            return block
    return None


def _is_shared(scope: ast.AST, name: str) -> bool:
    """Return whether code outside of a scope, or in a function inside it, may assign the name."""
    is_module = isinstance(scope, ast.Module)
    for node in ast.walk(scope):
        if isinstance(node, ast.Nonlocal) or (is_module and isinstance(node, ast.Global)):
            if name in node.names:
                return True
        elif isinstance(node, ast.Global) and name in node.names:
            return True
    return False


def _may_reshape(scope: ast.AST) -> bool:
    """Return whether anything in a scope changes a tensor's own shape: it may be this one."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _RESHAPING
        and (node.attr.endswith("_") or isinstance(node.ctx, ast.Store))
        for node in ast.walk(scope)
    )


def _stores_in(block: Sequence[ast.stmt], name: str) -> bool:
    return any(True for statement in block for _ in _all_stores(statement, name))


def _all_stores(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """Everything in a piece of a scope that binds a name, or takes its value away."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, _SCOPES):
            if getattr(current, "name", None) == name:
                yield current
            # Their bodies are scopes of their own; the expressions around these are not.
            for field in ("decorator_list", "bases", "keywords"):
                pending.extend(getattr(current, field, ()))
            pending.extend(filter(None, [getattr(current, "args", None)]))
            continue
        if isinstance(current, _COMPREHENSIONS):
            inside = (each for each in ast.walk(current) if isinstance(each, ast.NamedExpr))
            yield from (each.target for each in inside if each.target.id == name)
            continue
        if _stores(current, name):
            yield current
        pending.extend(ast.iter_child_nodes(current))


def _stores(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Name(id=found, ctx=ast.Store() | ast.Del()):
            return found == name
        case ast.ExceptHandler(name=found) | ast.MatchAs(name=found) | ast.MatchStar(name=found):
            return found == name
        case ast.MatchMapping(rest=found):
            return found == name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return any(_imported(alias) in (name, "*") for alias in aliases)
    return False


def _imported(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_transparent(context: ast.expr) -> bool:
    called = context.func if isinstance(context, ast.Call) else context
    match called:
        case ast.Attribute(attr=title) | ast.Name(id=title):
            return title in _TRANSPARENT
    return False
