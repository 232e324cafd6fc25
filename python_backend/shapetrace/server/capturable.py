"""Which value a place in the source means: a variable, what is in it, or what is returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from shapetrace.server.source_structure import Function, Scope, Structure

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAMING = (*_FUNCTIONS, ast.MatchAs, ast.MatchStar, ast.ExceptHandler)
"""What has a name beside its expressions."""
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_LOCALS = ".<locals>."
_MADE_IN = frozenset({"__init__", "__new__", "__post_init__"})
"""Functions that are over before a model is called."""


@dataclass(frozen=True)
class Capturable:
    """A value of a method, of a function in one, or of a module that an attribute holds."""

    text: str
    """As it is written in the source."""
    owner: str
    """The class whose method it is, by its qualified name."""
    function: tuple[str, ...]
    """The method, and the functions in it; empty for a module."""
    names: tuple[str, ...] = ()
    """The variable and what is in it; empty for what the function returns."""
    attribute: tuple[str, ...] = ()
    """What of ``self`` it is, where that may be a module: ``self.layers[0]``."""
    is_called: bool = False
    """Whether that attribute is called here."""


def capturable_at(structure: Structure, line: int, column: int) -> Capturable | None:
    """What a place means; None where that is nothing that a path can name."""
    path = structure.path(line, column)
    function = _function_around(structure, path)
    innermost = path[-1] if path else None
    if isinstance(innermost, ast.ClassDef):
        return _of_class(structure, innermost)
    if function is None:
        return None
    owner, names = _names_of(function)
    if owner is None:
        return None
    for index in range(len(path) - 1, -1, -1):
        node = path[index]
        if node is function.node:
            break
        found = _of_expression(structure, owner, names, path[: index + 1])
        if found is not None:
            return found
        if isinstance(node, ast.stmt):
            return _of_statement(structure, owner, names, node)
    return _returned(owner, names)


def capturable_of_statement(structure: Structure, line: int, column: int) -> Capturable | None:
    """What the statement at a place is there for: the name that it stores, or what it returns."""
    path = structure.path(line, column)
    function = _function_around(structure, path)
    statement = next((node for node in reversed(path) if isinstance(node, ast.stmt)), None)
    if function is None or statement is None:
        return None
    owner, names = _names_of(function)
    if owner is None or statement is function.node:
        return None
    return _of_statement(structure, owner, names, statement)


def line_of(structure: Structure, owner: str, names: tuple[str, ...]) -> int | None:
    """Where a function of a class begins, or a variable of it is stored first."""
    for taken in range(len(names), 0, -1):
        wanted = (owner, names[:taken])
        for function in structure.functions:
            of_class, own = _names_of(function)
            if (of_class, own) == wanted:
                rest = names[taken:]
                stored = _first_store(function.node, rest[0]) if rest else None
                return stored or function.node.lineno
    return None


def owner_of(function: Function) -> str | None:
    """The class that a function is a method of, or is in one of."""
    return _names_of(function)[0]


def _function_around(structure: Structure, path: list[ast.AST]) -> Function | None:
    """The innermost function that a place is in, with its head."""
    for node in reversed(path):
        if isinstance(node, _FUNCTIONS):
            return next(each for each in structure.functions if each.node is node)
    return None


def _names_of(function: Function) -> tuple[str | None, tuple[str, ...]]:
    """The class that a function belongs to, and its name behind those of functions around it."""
    parts = function.qualified_name.split(_LOCALS)
    methods = [index for index, part in enumerate(parts) if "." in part]
    if not methods:
        return None, ()
    owner, _, method = parts[methods[-1]].rpartition(".")
    inner = parts[methods[-1] + 1 :]
    return _LOCALS.join([*parts[: methods[-1]], owner]), (method, *inner)


def _of_class(structure: Structure, node: ast.ClassDef) -> Capturable | None:
    """What the modules of a class return."""
    for function in structure.functions:
        owner, _ = _names_of(function)
        if owner is not None and function.node in node.body:
            return Capturable(node.name, owner, ())
    return None


def _of_expression(
    structure: Structure,
    owner: str,
    names: tuple[str, ...],
    path: list[ast.AST],
) -> Capturable | None:
    """What a name, or a chain of attributes and items, stands for."""
    node = path[-1]
    if isinstance(node, ast.arg):
        return _variable(owner, names, (node.arg,), node.arg)
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    above = path[-2] if len(path) > 1 else None
    is_called = isinstance(above, ast.Call) and above.func is node
    chain = _chain(node)
    if chain is None:
        return None
    first, *rest = chain
    text = ast.unparse(node)
    is_self = first == _self_of(structure, owner, names)
    if is_self and rest:
        attribute = tuple(rest)
        if is_called and _has_method(structure, owner, attribute):
            return Capturable(f"{text}()", owner, attribute)
        return Capturable(text, owner, names, tuple(chain), attribute, is_called)
    if is_called and rest:
        # What is called is a method of the value.
        return None
    if is_self:
        return Capturable(text, owner, ())
    for depth in range(len(names), 0, -1):
        around = _method_of(structure, owner, names[:depth])
        if around is None or first not in _locals_of(around.node):
            continue
        if is_called:
            inner = (*names[:depth], first)
            return _returned(owner, inner) if _method_of(structure, owner, inner) else None
        return _variable(owner, names[:depth], tuple(chain), text)
    return None


def _of_statement(
    structure: Structure,
    owner: str,
    names: tuple[str, ...],
    node: ast.stmt,
) -> Capturable | None:
    """The first name that a statement stores, or what the function returns by it."""
    match node:
        case ast.Return():
            return _returned(owner, names)
        case ast.Assign(targets=targets):
            stored: list[ast.expr] = targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            stored = [target]
        case ast.For(target=target) | ast.AsyncFor(target=target):
            stored = [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            stored = [item.optional_vars for item in items if item.optional_vars is not None]
        case ast.Expr(value=ast.Call(func=called)):
            return _of_expression(structure, owner, names, [node.value, called])
        case _:
            return None
    for target in stored:
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                return _variable(owner, names, (each.id,), each.id)
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                return _of_expression(structure, owner, names, [each])
    return None


def _variable(
    owner: str, names: tuple[str, ...], chain: tuple[str, ...], text: str
) -> Capturable | None:
    return None if names[0] in _MADE_IN else Capturable(text, owner, names, chain)


def _returned(owner: str, names: tuple[str, ...]) -> Capturable | None:
    return None if names[0] in _MADE_IN else Capturable(f"{names[-1]}()", owner, names)


def _chain(node: ast.AST) -> list[str] | None:
    """``batch["ids"].mask`` as names; None where it is not made of attributes and plain items."""
    found: list[str] = []
    while True:
        match node:
            case ast.Name(id=name):
                return [name, *reversed(found)]
            case ast.Attribute(value=inner, attr=name):
                found.append(name)
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() | int() as key)):
                found.append(str(key))
            case _:
                return None
        node = inner


def _method_of(structure: Structure, owner: str, names: tuple[str, ...]) -> Function | None:
    wanted = (owner, names)
    return next((each for each in structure.functions if _names_of(each) == wanted), None)


def _has_method(structure: Structure, owner: str, names: tuple[str, ...]) -> bool:
    return len(names) == 1 and _method_of(structure, owner, names) is not None


def _self_of(structure: Structure, owner: str, names: tuple[str, ...]) -> str | None:
    """What the method that a function is, or is in, calls the module."""
    method = _method_of(structure, owner, names[:1])
    if method is None or any(map(_is_static, method.node.decorator_list)):
        return None
    positional = [*method.node.args.posonlyargs, *method.node.args.args]
    return positional[0].arg if positional else None


def _is_static(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod")


def _locals_of(node: Scope) -> frozenset[str]:
    """The names that a function stores, its arguments and its functions."""
    found = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    for each in _own_nodes(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, _NAMING) and each.name:
            found.add(each.name)
    return frozenset(found)


def _first_store(node: Scope, name: str) -> int | None:
    """The first line of a function that stores a name, or has it as an argument."""
    lines = [
        each.lineno
        for each in [*ast.walk(node.args), *_own_nodes(node)]
        if (isinstance(each, ast.arg) and each.arg == name)
        or (isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store))
    ]
    return min(lines, default=None)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a function, without what is in the functions and classes in it."""
    pending = list(ast.iter_child_nodes(node))
    while pending:
        inner = pending.pop()
        yield inner
        if not isinstance(inner, _SCOPES):
            pending.extend(ast.iter_child_nodes(inner))
