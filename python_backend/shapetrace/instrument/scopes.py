"""Finds a function's variables, and what each statement stores or may change."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from shapetrace.instrument.source import Definition

Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_MAY_CHANGE: Final = (
    ast.Call,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Subscript,
    ast.AugAssign,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
"""Nodes that may run code that changes an object in place."""

_ASKING: Final = frozenset(
    {"callable", "getattr", "hasattr", "id", "isinstance", "issubclass", "len", "type"}
)
"""Builtins that only inspect a value, unless the program has redefined their names."""

_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(slots=True)
class Variables:
    """The variables of one function, as its source calls them."""

    names: set[str] = field(default_factory=set)
    """Its own variables, its comprehensions', and those of outer functions that it stores to."""
    plain: set[str] = field(default_factory=set)
    """The names without the variables of comprehensions."""
    foreign: set[str] = field(default_factory=set)
    """The names declared global."""
    handled: set[str] = field(default_factory=set)
    """Names of `except ... as`, which are deleted at its end, however that is reached."""
    shared: set[str] = field(default_factory=set)
    """Names that other functions may delete, so that it is unknown when they are bound."""


def parameters(definition: Definition) -> list[ast.arg]:
    """All parameters of a function in the order in which they are written."""
    given = definition.args
    return [
        *given.posonlyargs,
        *given.args,
        *([given.vararg] if given.vararg else []),
        *given.kwonlyargs,
        *([given.kwarg] if given.kwarg else []),
    ]


def variables_of(definition: Definition) -> Variables:
    """The variables of a function."""
    found = Variables(plain={each.arg for each in parameters(definition)})
    within: set[int] = set()
    for node in _own(definition.body):
        match node:
            case ast.Global(names=names):
                found.foreign.update(names)
            case ast.Nonlocal(names=names):
                found.shared.update(names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.plain.add(node.name)
                found.shared.update(_deleted_within(node))
            case ast.ExceptHandler(name=str(name)):
                found.plain.add(name)
                found.handled.add(name)
            case ast.comprehension(target=target):
                within.update(id(each) for each in ast.walk(target))
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                (found.names if id(node) in within else found.plain).add(name)
            case _:
                found.plain.update(name for name, _ in _other_stores(node))
    found.plain -= found.foreign
    found.names = (found.names | found.plain) - found.foreign
    return found


def assigned(node: ast.Module | Definition) -> dict[str, int]:
    """The variables that a function or a module assigns, and the line where it first does.

    Parameters count; imports and definitions do not.
    """
    found: dict[str, int] = {}
    foreign: set[str] = set()
    if not isinstance(node, ast.Module):
        found.update((each.arg, node.lineno) for each in parameters(node))
    for each in _own(node.body):
        match each:
            case ast.Global(names=names) if not isinstance(node, ast.Module):
                foreign.update(names)
            case ast.Name(id=name, ctx=ast.Store(), lineno=line):
                found.setdefault(name, line)
            case ast.ExceptHandler() | ast.pattern():
                for name, line in _other_stores(each):
                    found.setdefault(name, line)
    return {name: line for name, line in found.items() if name not in foreign}


def stores(*nodes: ast.AST | None) -> list[tuple[str, int]]:
    """The names that targets, patterns or statements store to, with lines, in their order.

    Without walruses, comprehensions and nested statements, which are reported by themselves.
    """
    found: list[tuple[str, int]] = []
    for node in nodes:
        if node is None:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append((node.id, node.lineno))
        elif isinstance(node, ast.Tuple | ast.List | ast.Starred):
            found += stores(*ast.iter_child_nodes(node))
        elif isinstance(node, ast.pattern):
            found += stores(*(e for e in ast.iter_child_nodes(node) if isinstance(e, ast.pattern)))
            found += _other_stores(node)
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            found += _other_stores(node)
    return found


def stored(nodes: Iterable[ast.AST | None]) -> set[str]:
    """All names that nodes, or statements in them, may store to in any way."""
    found = set()
    declared: list[ast.AST] = []
    for node in _own(filter(None, nodes)):
        if isinstance(node, ast.AnnAssign) and node.value is None:
            declared.append(node.target)  # The compiler does not treat it as a variable.
        elif node in declared:
            continue
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        found.update(name for name, _ in _other_stores(node))
    return found


def stored_by_others(definition: Definition) -> set[str]:
    """The names that functions in a function may store to when they are called."""
    found: set[str] = set()
    for node in ast.walk(definition):
        if isinstance(node, ast.Nonlocal):
            found.update(node.names)
    return found


def deleted(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements may delete, those of `except ... as` included."""
    found = set()
    for node in _own(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def may_change(*nodes: ast.AST | None) -> bool:
    """Return whether expressions, or a statement without statements in it, may change an object."""
    for node in nodes:
        for each in _own([node] if node else []):
            if isinstance(each, _MAY_CHANGE) and not _only_asks(each):
                return True
            if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load):
                return True
    return False


def _only_asks(node: ast.AST) -> bool:
    """Return whether a call only inspects a value and its items.

    Like reading an attribute, it may run code of the value's class; changes by that code are seen
    later.
    """
    match node:
        case ast.Compare(ops=ops):
            return all(isinstance(each, ast.Is | ast.IsNot) for each in ops)
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _ASKING
    return False


def has_finally(definition: Definition) -> bool:
    """Return whether a `finally` may run between evaluating a returned value and returning it."""
    return any(getattr(node, "finalbody", None) for node in _own(definition.body))


def drops_returns(definition: Definition) -> bool:
    """Return whether a `finally` may be left by a jump, which drops a pending return."""
    finals = [getattr(node, "finalbody", []) for node in _own(definition.body)]
    return any(
        isinstance(node, ast.Break | ast.Continue) for final in finals for node in _own(final)
    )


def _own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes but those in nested functions, lambdas and classes; comprehensions count."""
    pending = [*nodes]
    pending.reverse()
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, _DEFINITIONS):
            children = outside(node)
        elif isinstance(node, ast.Lambda):
            children = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        else:
            children = [*ast.iter_child_nodes(node)]
        pending += reversed(children)


def outside(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.AST]:
    """The parts of a definition that the enclosing scope evaluates."""
    found: list[ast.AST] = [*node.decorator_list]
    if isinstance(node, ast.ClassDef):
        return [*found, *node.bases, *node.keywords]
    return [*found, *node.args.defaults, *filter(None, node.args.kw_defaults)]


def _deleted_within(definition: ast.AST) -> set[str]:
    declared: set[str] = set()
    found: set[str] = set()
    for node in ast.walk(definition):
        if isinstance(node, ast.Nonlocal):
            declared.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return declared & found


def _other_stores(node: ast.AST) -> list[tuple[str, int]]:
    """The names that a node stores to that are not expression nodes."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [(node.name, node.lineno)]
        case ast.Import(names=names):
            return [(each.asname or each.name.partition(".")[0], each.lineno) for each in names]
        case ast.ImportFrom(names=names):
            return [(each.asname or each.name, each.lineno) for each in names]
        case ast.ExceptHandler(name=str(name)):
            return [(name, node.lineno)]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [(name, node.lineno)]
        case ast.MatchMapping(rest=str(name)):
            return [(name, node.lineno)]
        case _ if type(node).__name__ == "TypeAlias":
            name = getattr(node, "name")  # noqa: B009 (its class is not there before Python 3.12)
            return [(name.id, name.lineno)]
    return []
