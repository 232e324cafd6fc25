"""Whether a torch call was made by a function of Python's own that the program called.

``sum(tensors)`` adds step by step, ``list(map(layer, inputs))`` calls the layer: none of these
calls is what the expression is worth. Told from the source, and from what its names stand for.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from types import BuiltinFunctionType, FrameType
from typing import Any, TypeAlias

OF_PYTHON = ("builtins", "functools", "_functools", "itertools", "heapq", "_heapq")

WORTH_A_CALL = (
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Subscript,
    ast.Attribute,
    ast.AugAssign,
    ast.FormattedValue,
    ast.JoinedStr,
)

Place: TypeAlias = tuple[int | None, ...]


def was_called_back(frame: FrameType | None, func: Callable[..., Any]) -> bool:
    """Say whether the expression a frame is at is worth something else than ``func`` returned."""
    if frame is None:
        return False
    position = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    line, end_line, column, end_column = position
    place = (line, column, end_line, end_column)
    nodes = _nodes(_source(frame.f_code.co_filename)).get(place)
    name = getattr(func, "__name__", "")
    if name == "__get__":
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    if not nodes or (name == "__bool__" and not isinstance(nodes[-1], ast.Call)):
        return False
    node = nodes[-1]
    if not isinstance(node, WORTH_A_CALL):
        return True
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        return name != "__contains__"
    if not isinstance(node, ast.Call):
        return False
    callee = _stands_for(node.func, frame)
    own_name = getattr(callee, "__name__", "")
    is_pythons = getattr(callee, "__module__", None) in OF_PYTHON and (
        isinstance(callee, BuiltinFunctionType | type) or own_name == "reduce"
    )
    if callee is getattr:
        return False
    return is_pythons and name not in (own_name, f"__{own_name}__")


def _stands_for(node: ast.expr, frame: FrameType) -> object:
    """Look up what a name or a dotted name stands for in a frame; None for anything else."""
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if node.id in names:
                return names[node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        base = _stands_for(node.value, frame)
        if type(base).__name__ == "module":
            return getattr(base, node.attr, None)
    return None


def _source(path: str) -> str:
    """Read a file as it is now: the random programs are all written to the same one."""
    linecache.checkcache(path)
    return "".join(linecache.getlines(path))


@lru_cache(maxsize=8)
def _nodes(source: str) -> dict[Place, list[ast.AST]]:
    """Find the nodes of a program by the place they stand at, outer ones first."""
    found: dict[Place, list[ast.AST]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr | ast.stmt) and not isinstance(node, ast.Expr):
            place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
            found.setdefault(place, []).append(node)
    return found
