"""Where in the source something stands of which the bytecode does not tell just where.

An instruction that stores to two names tells of the first only where it stands, and one that stores
what a ``case`` captured tells where all of the pattern does. Until 3.13 those that iterate, or that
enter a context manager, tell where the whole statement does, and on 3.11 those of a condition.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Final, NamedTuple, TypeAlias

from shapetrace._syntax import parsed
from shapetrace.events.source_text import MOST_SOURCE
from shapetrace.recorder.steps import Range, is_module, is_within

_Node: TypeAlias = ast.stmt | ast.expr | ast.pattern


class _Group(NamedTuple):
    """What is bound together: the targets of one statement, or a pattern."""

    around: Range
    names: dict[str, Range]


class _Read(NamedTuple):
    """What the source of a function tells."""

    code: CodeType
    groups: list[_Group]
    parts: dict[Range, list[Range]]
    """What loops and comprehensions iterate over, what ``with`` enters, in order; conditions."""


class Bindings:
    """Reads the source of each function once."""

    def __init__(self) -> None:
        self._known: Final[dict[int, _Read]] = {}
        self._files: Final[dict[str, ast.Module | None]] = {}

    def range_of(self, code: CodeType, name: str, near: Range) -> Range | None:
        """Where a name stands that is bound with what stands at ``near``; None if not known."""
        groups = self._read(code).groups
        around = [each for each in groups if name in each.names and is_within(near, each.around)]
        innermost = max(around, key=lambda each: _start(each.around), default=None)
        return None if innermost is None else innermost.names[name]

    def part_of(self, code: CodeType, whole: Range, number: int) -> Range | None:
        """Where one part stands of those that a statement or comprehension begins with."""
        found = self._read(code).parts.get(whole, [])
        return found[number] if 0 <= number < len(found) else None

    def _read(self, code: CodeType) -> _Read:
        known = self._known.get(id(code))
        if known is None:
            tree = self._tree_of(code)
            nodes = [] if tree is None else list(ast.walk(tree))
            groups = list(_groups_in(nodes))
            known = self._known[id(code)] = _Read(code, groups, dict(_parts_in(nodes)))
        return known

    def _tree_of(self, code: CodeType) -> ast.Module | None:
        """A tree with the function in it, at the lines and columns of its file."""
        linecache.checkcache(code.co_filename)
        lines = linecache.getlines(code.co_filename)
        first = code.co_firstlineno
        last = max((end or 0 for _, end, _, _ in code.co_positions()), default=first)
        part = lines[first - 1 : last]
        if part and not is_module(code):
            # What is indented needs something around it.
            above = "if 1:\n" if part[0][:1].isspace() else "\n"
            tree = _parsed("\n" * (first - 2) + above * (first > 1) + "".join(part))
            if tree is not None:
                return tree
        if code.co_filename not in self._files:
            is_large = sum(map(len, lines)) > MOST_SOURCE
            self._files[code.co_filename] = None if is_large else _parsed("".join(lines))
        return self._files[code.co_filename]


def _parsed(text: str) -> ast.Module | None:
    try:
        return parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parts_in(nodes: list[ast.AST]) -> Iterator[tuple[Range, list[Range]]]:
    for node in nodes:
        match node:
            case ast.For() | ast.AsyncFor():
                yield _range(node), [_range(node.iter)]
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                yield _range(node), [_range(each.iter) for each in node.generators]
            case ast.With() | ast.AsyncWith():
                yield _range(node), [_range(each.context_expr) for each in node.items]
            case ast.If() | ast.While() | ast.Assert() | ast.IfExp():
                yield _range(node), [_range(node.test)]


def _groups_in(nodes: list[ast.AST]) -> Iterator[_Group]:
    for node in nodes:
        match node:
            case ast.Assign():
                yield _group(node, node.targets)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                yield _group(node.target, [node.target])
            case ast.withitem(optional_vars=ast.expr() as target):
                yield _group(target, [target])
            case ast.match_case():
                yield _group(node.pattern, [node.pattern])


def _group(around: _Node, targets: Sequence[_Node]) -> _Group:
    names: dict[str, Range] = {}
    for target in targets:
        for node in ast.walk(target):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.MatchAs(name=str(name), pattern=None):
                    names[name] = _range(node)
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    # Before the name may be a pattern, or a star.
                    _, line, _, end = _range(node)
                    names.setdefault(name, (line, line, end - len(name.encode()), end))
                case ast.MatchMapping(rest=str(name)):
                    names.setdefault(name, _range(node))
    return _Group(_range(around), names)


def _start(place: Range) -> tuple[int, int]:
    return place[0], place[2]


def _range(node: _Node) -> Range:
    end_line, end_column = node.end_lineno, node.end_col_offset
    assert end_line is not None
    assert end_column is not None
    return node.lineno, end_line, node.col_offset, end_column
