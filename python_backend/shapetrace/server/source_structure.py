"""The statements of a source file, where they are, and the functions they are in."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from shapetrace.server.plain_lines import plain_statements
from shapetrace.server.ranges import SourceRange, range_of
from shapetrace.server.statements import (
    BLOCKS,
    Statement,
    kind_of,
    named_inside,
    parts_of,
    returns_tuple,
)

Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
"""A function with a body of statements."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_COMPOUND = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.TryStar,
    ast.Match,
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
)


@dataclass(frozen=True)
class Function:
    """A function of the source."""

    qualified_name: str
    """As Python has it: ``Net.forward``, ``outer.<locals>.inner``."""
    node: Scope
    first: int
    """The first line with its decorators."""
    last: int

    @cached_property
    def returns(self) -> tuple[ast.Return, ...]:
        """Its own returns of a value, without those of functions in it."""
        return tuple(
            node
            for node in _statement_nodes(self.node, inside_functions=False)
            if isinstance(node, ast.Return) and node.value is not None
        )


@dataclass(frozen=True)
class Block:
    """The statements below a head: under a condition, in a loop or in a `with`."""

    range: SourceRange
    certain: tuple[SourceRange, ...]
    """The statements of it that always run if it runs to its end."""
    others: tuple[SourceRange, ...]
    """The blocks of which none is run where this one is."""
    handlers: tuple[SourceRange, ...]
    """The blocks that are run where this one ends with an error."""


class Structure:
    """The statements of one source text, which is read when it is asked for."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self._text = text

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None where the text is not valid Python."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self._text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """All statements, in the order in which they begin."""
        if self.tree is None:
            return tuple(plain_statements(self.lines))
        found = [self._statement(node) for node in _statement_nodes(self.tree)]
        return tuple(sorted(found, key=lambda statement: statement.range))

    def ending_on(self, line: int) -> Sequence[Statement]:
        """The statements, and heads of statements, that end on a line."""
        return self._by_end.get(line, ())

    def covering(self, line: int) -> Statement | None:
        """The last statement, or head of one, that has a part on a line."""
        index = bisect_right(self._starts, (line, 1 << 30)) - 1
        if index >= 0 and self.statements[index].range.end_line >= line:
            return self.statements[index]
        return None

    def at(self, line: int, column: int) -> Statement | None:
        """The statement, or head of one, that a position is in."""
        index = bisect_right(self._starts, (line, column))
        # They do not overlap: only the last that begins before can reach so far, or the one before
        # it where the position is right between the two.
        for statement in reversed(self.statements[max(index - 2, 0) : index]):
            if statement.range.touches(line, column):
                return statement
        return None

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """All functions that are defined with ``def``, each before those in it."""
        found: list[Function] = []
        pending: list[tuple[ast.AST, str]] = [] if self.tree is None else [(self.tree, "")]
        while pending:
            node, prefix = pending.pop()
            inside = [(child, prefix) for child in _blocks_of(node)]
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                name = f"{prefix}{node.name}"
                suffix = "." if isinstance(node, ast.ClassDef) else ".<locals>."
                inside = [(child, name + suffix) for child in _blocks_of(node)]
                if isinstance(node, _FUNCTIONS):
                    last = node.end_lineno or node.lineno
                    found.append(Function(name, node, _beginning(node)[0], last))
            pending.extend(reversed(inside))
        return tuple(found)

    def function_at(self, line: int) -> Function | None:
        """The innermost function that a line is in."""
        around = (each for each in self.functions if each.first <= line <= each.last)
        return max(around, key=lambda each: each.first, default=None)

    def is_in_function(self, line: int) -> bool:
        """Return whether a line is in a function."""
        index = bisect_right(self._outermost, (line, 1 << 30)) - 1
        return index >= 0 and line <= self._outermost[index][1]

    def function_name(self, node: Scope) -> SourceRange:
        """The place of a function's name in its head."""
        line = self.lines[node.lineno - 1].encode("utf-8", "surrogatepass")
        name = node.name.encode("utf-8", "surrogatepass")
        start = max(line.find(name, node.col_offset + len("def ")), node.col_offset)
        return SourceRange(node.lineno, start, node.lineno, start + len(name))

    def path(self, line: int, column: int) -> list[ast.AST]:
        """The parts of the syntax tree that a position is in, from the outermost to the innermost.

        A position right behind a word belongs to it, unless another part begins there.
        """
        path: list[ast.AST] = []
        inner: ast.AST | None = self.tree
        while inner is not None:
            path.append(inner)
            inner = _child_at(inner, (line, column))
        return path

    def blocks_around(self, line: int, column: int) -> Iterator[Block]:
        """The blocks of a function that a position is in, from the inside out, without its body."""
        for node in reversed(self.path(line, column)):
            if isinstance(node, _FUNCTIONS):
                return
            blocks = list(_bodies_of(node))
            own = [each for each in blocks if _range_of(each).touches(line, column)]
            if own:
                is_choice = isinstance(node, (ast.If, ast.Match))
                others = [each for each in blocks if each is not own[0]] if is_choice else []
                handlers: list[Sequence[ast.stmt]] = []
                if isinstance(node, (ast.Try, ast.TryStar)) and own[0] is node.body:
                    handlers = [each.body for each in node.handlers]
                yield Block(
                    range=_range_of(own[0]),
                    certain=tuple(self._certain(own[0])),
                    others=tuple(map(_range_of, others)),
                    handlers=tuple(map(_range_of, handlers)),
                )

    def is_in_loop(self, line: int, column: int) -> bool:
        """Return whether a position is in a loop of its function."""
        for node in reversed(self.path(line, column)):
            if isinstance(node, _FUNCTIONS):
                return False
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                return True
        return False

    def is_in_class(self, line: int, column: int) -> bool:
        """Return whether a position is in the body of a class, which has names of its own."""
        for node in reversed(self.path(line, column)):
            if isinstance(node, (ast.ClassDef, *_FUNCTIONS)):
                return isinstance(node, ast.ClassDef)
        return False

    def _certain(self, body: Sequence[ast.stmt]) -> Iterator[SourceRange]:
        """The statements and heads that run whenever a block runs to its end."""
        for node in body:
            if isinstance(node, _COMPOUND):
                yield self._head(node, range_of(node))
            else:
                yield range_of(node)
            if isinstance(node, (ast.With, ast.AsyncWith)):
                yield from self._certain(node.body)

    @cached_property
    def _outermost(self) -> list[tuple[int, int]]:
        """The first and last lines of the functions that are in no other."""
        found: list[tuple[int, int]] = []
        for first, last in sorted((each.first, each.last) for each in self.functions):
            if not found or first > found[-1][1]:
                found.append((first, last))
        return found

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        return [statement.range.start for statement in self.statements]

    @cached_property
    def _by_end(self) -> dict[int, list[Statement]]:
        found: dict[int, list[Statement]] = {}
        for statement in self.statements:
            found.setdefault(statement.range.end_line, []).append(statement)
        return found

    def _statement(self, node: ast.stmt) -> Statement:
        whole = range_of(node)
        if isinstance(node, _COMPOUND):
            whole = self._head(node, whole)
        named = tuple(named_inside(node)) if self._may_name(whole) else ()
        return Statement(
            kind=kind_of(node),
            range=whole,
            parts=tuple(parts_of(node)),
            named=named,
            is_tuple=returns_tuple(node),
            function=node.name if isinstance(node, Scope) else None,
            declared=_beginning(node)[0],
        )

    def _head(self, node: ast.stmt, whole: SourceRange) -> SourceRange:
        """The range of ``if ...:`` or ``def ...:`` alone."""
        if isinstance(node, ast.Match):
            first: ast.AST = node.cases[0].pattern
        else:
            first = getattr(node, "body")[0]  # noqa: B009 (whatever has a head has one)
        line, column = _beginning(first)
        end = whole.start
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, BLOCKS) and not _is_decorator(node, child):
                end = max(end, *map(_end, ast.walk(child)))
        # The head ends with the colon, which may be on a later line than anything in it.
        for number in range(end[0], line + 1):
            text = self.lines[number - 1].encode("utf-8", "surrogatepass")
            begin = end[1] if number == end[0] else 0
            limit = column if number == line else len(text)
            code = text[begin:limit].split(b"#")[0]
            colon = code.rfind(b":") if number == line else code.find(b":")
            if colon >= 0:
                return SourceRange(whole.line, whole.column, number, begin + colon + 1)
        return SourceRange(whole.line, whole.column, *end)

    def _may_name(self, where: SourceRange) -> bool:
        return any(":=" in line for line in self.lines[where.line - 1 : where.end_line])


def _child_at(node: ast.AST, position: tuple[int, int]) -> ast.AST | None:
    """The child of a node that a position is in, or that is a name which ends there."""
    ending: ast.AST | None = None
    for child in ast.iter_child_nodes(node):
        if not hasattr(child, "lineno"):
            # Some kinds of nodes have no place of their own: that of their parts is theirs.
            if _child_at(child, position) is not None:
                return child
        elif _beginning(child) <= position < _end(child):
            return child
        elif _end(child) == position and _ends_in_word(child):
            ending = child
    return ending


def _ends_in_word(node: ast.AST) -> bool:
    if isinstance(node, (ast.Name, ast.Attribute, ast.Constant, ast.arg)):
        return True
    last = (child for child in ast.iter_child_nodes(node) if _end(child) == _end(node))
    return any(map(_ends_in_word, last))


def _statement_nodes(top: ast.AST, *, inside_functions: bool = True) -> Iterator[ast.stmt]:
    """The statements in a node, and it itself if it is one."""
    pending: list[ast.AST] = [top]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        if inside_functions or node is top or not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            pending.extend(_blocks_of(node))


def _blocks_of(node: ast.AST) -> list[ast.AST]:
    """The statements, handlers and cases right below a node."""
    if not isinstance(node, (ast.Module, ast.excepthandler, ast.match_case, *_COMPOUND)):
        return []
    names = ("body", "handlers", "orelse", "finalbody", "cases")
    return [child for name in names for child in getattr(node, name, None) or ()]


def _bodies_of(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    """The blocks right below a node; each case of a choice has one of its own."""
    if not isinstance(node, _COMPOUND):
        return
    for owner in (node, *getattr(node, "cases", ()), *getattr(node, "handlers", ())):
        for name in ("body", "orelse", "finalbody"):
            body: list[ast.stmt] = getattr(owner, name, None) or []
            if body:
                yield body


def _range_of(body: Sequence[ast.stmt]) -> SourceRange:
    return SourceRange(*_beginning(body[0]), *_end(body[-1]))


def _beginning(node: ast.AST) -> tuple[int, int]:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    line: int = getattr(node, "lineno", 1)
    column: int = getattr(node, "col_offset", 0)
    return min([(line, column), *((each.lineno, each.col_offset - 1) for each in decorators)])


def _end(node: ast.AST) -> tuple[int, int]:
    line: int = getattr(node, "end_lineno", 0)
    column: int = getattr(node, "end_col_offset", 0)
    return (line, column)


def _is_decorator(node: ast.stmt, child: ast.AST) -> bool:
    return child in getattr(node, "decorator_list", ())
