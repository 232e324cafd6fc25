"""New pieces of a function's tree.

They have no line. The compiler gives an instruction without one the line of that before it, so that
a debugger that steps does not notice them; and none at all where ways meet.
"""

from __future__ import annotations

import ast
from typing import Any, Final, TypeAlias

Location: TypeAlias = dict[str, Any]

NOWHERE: Final[Location] = {
    "lineno": -1,
    "end_lineno": -1,
    "col_offset": -1,
    "end_col_offset": -1,
}


class Hooks:
    """Constants to be, which stand for themselves as texts until the code is compiled."""

    def __init__(self, gate: object, bound: object, line: int) -> None:
        self._line: Final = line
        self.objects: Final[dict[object, object]] = {}
        self._gate: Final = self._marker(gate)
        self._bound: Final = self._marker(bound)

    def _marker(self, value: object) -> str:
        marker = f"<hook {len(self.objects)} of shapetrace>"
        self.objects[marker] = value
        return marker

    def constant(self, value: object) -> ast.Constant:
        """An object as a constant."""
        return ast.Constant(self._marker(value), **NOWHERE)

    def open(self, where: Location = NOWHERE) -> ast.expr:
        """Whether hooks are called at all, which they are not where torch makes a graph."""
        gate = ast.Constant(self._gate, **where)
        return ast.Compare(ast.Constant(0, **where), [ast.In()], [gate], **where)

    def call(self, hook: object, arguments: list[ast.expr]) -> ast.expr:
        """Calling a hook, which is not reached where torch makes a graph."""
        return ast.Call(self.constant(hook), arguments, [], **NOWHERE)

    def statement(
        self, hook: object, arguments: list[ast.expr], condition: ast.expr | None = None
    ) -> ast.stmt:
        """A statement that calls a hook, if a condition holds."""
        called = ast.Expr(self.call(hook, arguments), **NOWHERE)
        return ast.If(condition or self.open(), [called], [], **NOWHERE)

    def names_first(self, names: list[str]) -> ast.stmt:
        """Nothing, but it has the compiler number the variables in this order."""
        used: list[ast.stmt] = [
            ast.Expr(ast.Name(name, ast.Load(), **NOWHERE), **NOWHERE) for name in names
        ]
        return ast.If(ast.Constant(False, **NOWHERE), used, [], **NOWHERE)

    def through(self, hook: object, value: ast.expr, *others: ast.expr) -> ast.expr:
        """An expression, the value of which goes through a hook.

        Where torch makes a graph a function takes the hook's place that does nothing.
        """
        first, rest = (ast.arg(name, **NOWHERE) for name in ("value", "others"))
        nothing = ast.Lambda(
            ast.arguments([], [first], rest, [], [], None, []),
            ast.Name("value", ast.Load(), **NOWHERE),
            lineno=self._line,
            end_lineno=self._line,
            col_offset=0,
            end_col_offset=0,
        )
        function = ast.IfExp(self.open(), self.constant(hook), nothing, **NOWHERE)
        return ast.Call(function, [value, *others], [], **NOWHERE)

    def condition(self, hook: object, arguments: list[ast.expr]) -> ast.expr:
        """A condition that always holds, and calls a hook."""
        shut = ast.UnaryOp(ast.Not(), self.open(), **NOWHERE)
        return ast.BoolOp(ast.Or(), [shut, self.call(hook, arguments)], **NOWHERE)

    def is_bound(self, name: str) -> ast.expr:
        """Whether a variable has a value, as far as was heard. Not so where torch makes a graph."""
        bound = ast.Constant(self._bound, **NOWHERE)
        return ast.Compare(ast.Constant(name, **NOWHERE), [ast.In()], [bound], **NOWHERE)

    def if_bound(self, name: str) -> ast.expr:
        """A variable if it has a value, else the gate.

        No call, nor one after it without a line: the compiler of Python 3.13 copies places with
        calls but no line to each way that leads there, and forgets what follows them.
        """
        value = ast.Name(name, ast.Load(), **NOWHERE)
        gate = ast.Constant(self._gate, **NOWHERE)
        return ast.IfExp(self.is_bound(name), value, gate, **NOWHERE)

    def leaving(self, where: Location) -> ast.stmt:
        """The hook before a return without a value.

        It has no branches: the compiler copies the end of a function to each way that leads there.
        """
        gate, again = (ast.Constant(self._gate, **where) for _ in range(2))
        return ast.Expr(ast.BinOp(gate, ast.BitOr(), again, **where), **where)

    def body(self, hook: object, arguments: list[ast.expr], body: list[ast.stmt], where: Location
    ) -> ast.stmt:
        """A body that runs once, with what a hook returns on the stack until it is left."""
        unheard = ast.Tuple([ast.Tuple([], ast.Load(), **where)], ast.Load(), **where)
        entered = ast.Call(ast.Constant(self._marker(hook), **where), arguments, [], **where)
        for argument in arguments:
            ast.copy_location(argument, entered)
        token = ast.IfExp(self.open(where), entered, unheard, **where)
        return ast.For(ast.Tuple([], ast.Store(), **where), token, body, [], **where)
