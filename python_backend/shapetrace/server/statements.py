"""What each kind of statement produces.

    q, k = self.split(x)      two parts, the names q and k
    return self.out(y)        one part, the value of the expression
    for h in heads:           one part, the name h
    def f(self, x, mask):     parts for self, x and mask

Only what is produced is told here; whether anything is known of it is looked up elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from shapetrace.server.ranges import SourceRange, range_of

Kind: TypeAlias = Literal["assignment", "return", "expression", "head", "parameters"]

BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
"""The fields of statements that contain their bodies."""


@dataclass(frozen=True, slots=True)
class PickedItem:
    """An item of a call's result: ``model(x).logits``, ``model(x)["logits"]``."""

    call: SourceRange
    key: int | str
    is_attribute: bool


@dataclass(frozen=True, slots=True)
class StatementPart:
    """One of the things that a statement produces."""

    name: str | None
    """The variable that holds it."""
    targets: tuple[SourceRange, ...]
    """Where it is stored into variables; the same value each time."""
    value: SourceRange | None
    """The expression whose value it is, if there is one for it alone."""
    path: tuple[int, ...] = ()
    """Which item of the expression's value it is; empty for the value itself."""
    load: ast.expr | None = field(default=None, compare=False)
    """The expression, where it is nothing but a name."""
    item: PickedItem | None = None
    """The item of a call's result that the expression takes, if it does nothing else."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, or the head of one that has a body."""

    kind: Kind
    range: SourceRange
    parts: tuple[StatementPart, ...]
    """The parts that it produces."""
    named: tuple[StatementPart, ...] = ()
    """The names that ``:=`` assigns in it."""
    is_tuple: bool = False
    """Whether the parts are the items of one tuple."""
    function: str | None = None
    """The name of the function, where this is the head of one."""
    declared: int = 0
    """The first line of a function with its decorators; else of the statement."""


def kind_of(node: ast.stmt) -> Kind:
    """The kind of a statement."""
    match node:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return "assignment"
        case ast.Return():
            return "return"
        case ast.Expr():
            return "expression"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return "parameters"
    return "head"


def returns_tuple(node: ast.stmt) -> bool:
    """Return whether a statement returns several values side by side."""
    match node:
        case ast.Return(value=ast.Tuple(elts=elements)):
            return not _is_starred(elements)
    return False


def parts_of(node: ast.stmt) -> Iterator[StatementPart]:
    """The parts that a statement produces."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from _assigned(targets, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _assigned([target], value)
        case ast.AugAssign(target=target):
            names = (range_of(target),) if isinstance(target, ast.Name) else ()
            yield StatementPart(_name(target), names, range_of(node))
        case ast.Return(value=ast.Tuple(elts=elements)) if not _is_starred(elements):
            for element in elements:
                yield _value_part(element)
        case ast.Return(value=ast.expr() as value):
            yield _value_part(value)
        case ast.Expr(value=ast.Yield(value=ast.expr() as value)):
            yield _value_part(value)
        case ast.Expr(value=value):
            yield _value_part(value)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _unpacked(target, None, ())
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from _unpacked(item.optional_vars, None, ())
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            for argument in parameters_of(arguments):
                yield StatementPart(argument.arg, (range_of(argument),), None)


def parameters_of(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function in the order in which they are written."""
    starred = [each for each in (arguments.vararg,) if each is not None]
    double_starred = [each for each in (arguments.kwarg,) if each is not None]
    return [
        *arguments.posonlyargs,
        *arguments.args,
        *starred,
        *arguments.kwonlyargs,
        *double_starred,
    ]


def _assigned(targets: list[ast.expr], value: ast.expr) -> Iterator[StatementPart]:
    unpacking = next((each for each in targets if isinstance(each, (ast.Tuple, ast.List))), None)
    if unpacking is not None:
        yield from _unpacked(unpacking, value, ())
        return
    names = tuple(range_of(each) for each in targets if isinstance(each, ast.Name))
    name = next((_name(each) for each in targets if isinstance(each, ast.Name)), None)
    yield StatementPart(name, names, range_of(value), load=_lone_name(value), item=_item(value))


def _unpacked(
    target: ast.expr, value: ast.expr | None, path: tuple[int, ...]
) -> Iterator[StatementPart]:
    """The parts of an assignment target that may be a tuple."""
    if isinstance(target, ast.Starred):
        yield from _unpacked(target.value, None, ())
    elif isinstance(target, (ast.Tuple, ast.List)):
        elements = target.elts
        if isinstance(value, (ast.Tuple, ast.List)):
            alike = len(value.elts) == len(elements) and not path
            if alike and not _is_starred(elements) and not _is_starred(value.elts):
                for element, its_value in zip(elements, value.elts, strict=True):
                    yield from _unpacked(element, its_value, ())
                return
            value = None
        for index, element in enumerate(elements):
            # After a starred name, the index of an item is unknown.
            is_known = value is not None and not _is_starred(elements[: index + 1])
            yield from _unpacked(element, value if is_known else None, (*path, index))
    else:
        names = (range_of(target),) if isinstance(target, ast.Name) else ()
        its_range = None if value is None else range_of(value)
        load = None if value is None or path else _lone_name(value)
        yield StatementPart(
            ast.unparse(target), names, its_range, path if value is not None else (), load
        )


def _value_part(value: ast.expr) -> StatementPart:
    return StatementPart(
        _name(value), (), range_of(value), load=_lone_name(value), item=_item(value)
    )


def _item(value: ast.expr) -> PickedItem | None:
    match value:
        case ast.Attribute(value=ast.Call() as call, attr=name):
            return PickedItem(range_of(call), name, is_attribute=True)
        case ast.Subscript(
            value=ast.Call() as call, slice=ast.Constant(value=int() | str() as key)
        ):
            return PickedItem(range_of(call), key, is_attribute=False)
    return None


def named_inside(node: ast.stmt) -> Iterator[StatementPart]:
    """The names that ``:=`` assigns in a statement's own expressions."""
    pending: list[ast.AST] = [
        child for child in ast.iter_child_nodes(node) if not isinstance(child, BLOCKS)
    ]
    found: list[StatementPart] = []
    while pending:
        inner = pending.pop()
        if isinstance(inner, ast.Lambda):
            continue
        if isinstance(inner, ast.NamedExpr):
            target = range_of(inner.target)
            found.append(StatementPart(inner.target.id, (target,), range_of(inner.value)))
        pending.extend(ast.iter_child_nodes(inner))
    return iter(sorted(found, key=lambda part: part.targets))


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _lone_name(node: ast.expr) -> ast.expr | None:
    return node if isinstance(node, ast.Name) else None


def _is_starred(elements: list[ast.expr]) -> bool:
    return any(isinstance(element, ast.Starred) for element in elements)
