"""Builds new nodes of a function's tree.

If a statement is on one line, the hooks after it are on that line too, so that a stepping debugger
does not stop at them. Otherwise they have no line: the compiler gives an instruction without one
the line of that before it, and none at all where paths meet.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any, Final, TypeAlias

Location: TypeAlias = dict[str, Any]

NOWHERE: Final[Location] = {
    "lineno": -1,
    "end_lineno": -1,
    "col_offset": -1,
    "end_col_offset": -1,
}

_NUMBERS: Final = itertools.count()


class HookNodes:
    """Builds nodes for hooks. Text constants stand for the hooks until the code is compiled."""

    def __init__(self, gate: object, bound: object, line: int) -> None:
        self._line: Final = line
        self.objects: Final[dict[object, object]] = {}
        self._gate: Final = self._marker(gate)
        self._bound: Final = self._marker(bound)

    def _marker(self, value: object) -> str:
        marker = f"<hook {next(_NUMBERS)} of shapetrace>"
        self.objects[marker] = value
        return marker

    def _constant(self, value: object, where: Location) -> ast.Constant:
        return ast.Constant(self._marker(value), **where)

    def open(self, where: Location) -> ast.expr:
        """An expression: whether hooks are called, which they are not in torch's graphs."""
        gate = ast.Constant(self._gate, **where)
        return ast.Compare(ast.Constant(0, **where), [ast.In()], [gate], **where)

    def call(self, hook: object, arguments: list[ast.expr], where: Location) -> ast.expr:
        """A call of a hook, which is not reached where torch makes a graph."""
        return ast.Call(self._constant(hook, where), arguments, [], **where)

    def statement(
        self,
        hook: object,
        arguments: list[ast.expr],
        where: Location,
        condition: ast.expr | None = None,
    ) -> ast.stmt:
        """A statement that calls a hook, if a condition holds."""
        called = ast.Expr(self.call(hook, arguments, where), **where)
        return ast.If(condition or self.open(where), [called], [], **where)

    def names_first(self, names: list[str]) -> ast.stmt:
        """A statement without effect that makes the compiler number the variables in this order."""
        used: list[ast.stmt] = [ast.Expr(variable(name), **NOWHERE) for name in names]
        return ast.If(ast.Constant(False, **NOWHERE), used, [], **NOWHERE)

    def through(
        self,
        hook: object,
        value: ast.expr,
        others: list[ast.expr],
        before: Location,
        after: Location,
    ) -> ast.expr:
        """An expression whose value goes through a hook; in torch's graphs, through an identity."""
        first, rest = (ast.arg(name, **NOWHERE) for name in ("value", "others"))
        nothing = ast.Lambda(
            ast.arguments([], [first], rest, [], [], None, []),
            variable("value", before),
            **(NOWHERE | {"lineno": self._line, "end_lineno": self._line}),
        )
        function = ast.IfExp(self.open(before), self._constant(hook, before), nothing, **before)
        return ast.Call(function, [value, *others], [], **after)

    def condition(self, hook: object, arguments: list[ast.expr], where: Location) -> ast.expr:
        """An expression that calls a hook and is always true."""
        shut = ast.UnaryOp(ast.Not(), self.open(where), **where)
        called = ast.Tuple([self.call(hook, arguments, where)], ast.Load(), **where)
        return ast.BoolOp(ast.Or(), [shut, called], **where)

    def is_bound(self, name: str, where: Location) -> ast.expr:
        """An expression: whether a variable is bound, as far as hooks noted.

        False in torch's graphs.
        """
        bound = ast.Constant(self._bound, **where)
        return ast.Compare(ast.Constant(name, **where), [ast.In()], [bound], **where)

    def if_bound(self, name: str, where: Location) -> ast.expr:
        """A variable if it is bound, else the gate.

        No call, nor one after it without a line: the compiler of Python 3.13 copies places with
        calls but no line to each way that leads there, and forgets what follows them.
        """
        gate = ast.Constant(self._gate, **where)
        return ast.IfExp(self.is_bound(name, where), variable(name, where), gate, **where)

    def operation(self, gate: object, where: Location) -> ast.stmt:
        """A hook that needs no values.

        It has no branches: the compiler copies the end of a function to each way that leads there,
        and gives it the line that it is reached from.
        """
        first, second = (self._constant(gate, where) for _ in range(2))
        return ast.Expr(ast.BinOp(first, ast.BitOr(), second, **where), **where)

    def body(
        self, hook: object, arguments: list[str], body: list[ast.stmt], where: Location
    ) -> ast.stmt:
        """A body that runs once, with the hook's result on the stack until the body is left."""
        unheard = ast.Tuple([ast.Tuple([], ast.Load(), **where)], ast.Load(), **where)
        values = [
            variable(name, where) if name else ast.Constant(None, **where) for name in arguments
        ]
        entered = self.call(hook, values, where)
        token = ast.IfExp(self.open(where), entered, unheard, **where)
        return ast.For(ast.Tuple([], ast.Store(), **where), token, body, [], **where)


def variable(name: str, where: Location = NOWHERE) -> ast.expr:
    """Reading a variable."""
    return ast.Name(name, ast.Load(), **where)


def location(node: ast.expr | ast.stmt | ast.pattern | ast.excepthandler) -> Location:
    """Where a node is."""
    return {key: getattr(node, key) for key in NOWHERE}


def line_of(node: ast.expr | ast.stmt | ast.pattern) -> Location:
    """The location of a node that is all on one line."""
    return location(node) if node.lineno == node.end_lineno else NOWHERE


def ending(node: ast.expr | ast.stmt) -> Location:
    """The line of a node's last instruction, if known."""
    match node:
        case ast.Assign(targets=[*_, target]) | ast.Delete(targets=[*_, target]):
            return line_of(target)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return line_of(target)
        case ast.Expr(value=ast.IfExp() | ast.BoolOp()):
            return NOWHERE
        case ast.Expr(value=inner):
            return ending(inner)
        case ast.IfExp() | ast.BoolOp() | ast.NamedExpr() | ast.Compare():
            return line_of(node)
        case ast.Call(func=ast.Attribute(end_lineno=int(line))):
            return NOWHERE | {"lineno": line, "end_lineno": line}
        case ast.expr():
            return NOWHERE | {"lineno": node.lineno, "end_lineno": node.lineno}
    return line_of(node)


def beginning(node: ast.expr) -> Location:
    """The location of the part of an expression that is evaluated first."""
    while True:
        match node:
            case ast.IfExp(test=inner) | ast.BinOp(left=inner) | ast.Compare(left=inner):
                node = inner
            case ast.Call(func=inner) | ast.UnaryOp(operand=inner) | ast.BoolOp(values=[inner, *_]):
                node = inner
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Await(value=inner):
                node = inner
            case ast.NamedExpr(value=inner) | ast.Starred(value=inner) | ast.YieldFrom(value=inner):
                node = inner
            case ast.Yield(value=ast.expr() as inner) | ast.FormattedValue(value=inner):
                node = inner
            case (
                ast.Tuple(elts=[inner, *_]) | ast.List(elts=[inner, *_]) | ast.Set(elts=[inner, *_])
            ):
                node = inner
            case ast.Dict(keys=[ast.expr() as inner, *_]) | ast.JoinedStr(values=[inner, *_]):
                node = inner
            case _:
                return location(node)
