"""Finds a function's definition, as a tree that compiles to exactly the function's code."""

from __future__ import annotations
import __future__

import ast
import itertools
import linecache
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import CannotFollowError
from shapetrace._syntax import parsed, silently

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_FUTURE: Final = sum(
    {getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}
)


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A function's definition with all context that affects its compiled code."""

    module: ast.Module
    definition: Definition
    filename: str
    flags: int

    def compiled(self) -> types.CodeType:
        """The module's code, without a warning."""
        return compiled(self.module, self.filename, self.flags)


def source_of(function: types.FunctionType, code: types.CodeType) -> FunctionSource:
    """The definition that a function's code was compiled from; callers may change it."""
    name = function.__qualname__
    if code.co_name == "<lambda>":
        reason = "only what `def` defines can be followed"
        raise CannotFollowError(f"{name} is a lambda: {reason}", reason)
    filename = code.co_filename
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename, function.__globals__))
    if not text:
        reason = f"the source of {filename} is not there"
        raise CannotFollowError(f"cannot follow {name}: {reason}", reason)
    try:
        segments = list(_segments(text, code.co_firstlineno))
    except (SyntaxError, ValueError) as error:
        if is_asynchronous(error):
            raise
        raise _changed(name, filename) from None
    flags = code.co_flags & _FUTURE
    for segment in segments:
        for scopes in _ways_to(segment, code):
            source = FunctionSource(
                _pruned(scopes, _imports(text)), _definition(scopes), filename, flags
            )
            try:
                found = find_code(source.compiled(), lambda each: bool(each == code))
            except (SyntaxError, ValueError) as error:
                if is_asynchronous(error):
                    raise
                continue
            if found is not None:
                return source
    raise _changed(name, filename)


def compiled(module: ast.Module, filename: str, flags: int) -> types.CodeType:
    """The code of a tree, without a warning. Of the flags, those of `__future__` count."""
    code = silently(lambda name: compile(module, name, "exec", flags & _FUTURE, dont_inherit=True))
    return _named(code, filename)


def find_code(
    code: types.CodeType, accepts: Callable[[types.CodeType], bool]
) -> types.CodeType | None:
    """The first code object that is accepted, of this one and those in it."""
    if accepts(code):
        return code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found = find_code(constant, accepts)
            if found is not None:
                return found
    return None


def first_line(definition: _Scope) -> int:
    """The line that the code of a definition begins on, which is that of its first decorator."""
    return min(node.lineno for node in [definition, *definition.decorator_list])


def _changed(name: str, filename: str) -> CannotFollowError:
    reason = (
        f"it does not run what is in {filename}; "
        "was the file changed, or the function rewritten by another tool?"
    )
    return CannotFollowError(f"cannot follow {name}: {reason}", reason)


def _segments(text: str, line: int) -> Iterator[ast.Module]:
    """The statements of a file that span a line, each as a new tree with the same lines."""
    # Not splitlines, which also splits at form feeds and other characters.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for statement in _outline(text).body:
        start = min([statement.lineno, *(each.lineno for each in _decorators(statement))])
        end = statement.end_lineno or start
        if start <= line <= end:
            yield parsed("\n" * (start - 1) + "\n".join([*lines[start - 1 : end], ""]))


def _decorators(statement: ast.stmt) -> list[ast.expr]:
    return statement.decorator_list if isinstance(statement, _Scope) else []


@lru_cache(maxsize=16)
def _outline(text: str) -> ast.Module:
    return parsed(text)


@lru_cache(maxsize=16)
def _imports(text: str) -> list[ast.stmt]:
    """The imports of a module, none of those in functions or classes."""
    found: list[ast.stmt] = []
    pending: list[ast.AST] = [_outline(text)]
    while pending:
        node = pending.pop()
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if isinstance(node, ast.Import | ast.ImportFrom) and not future:
            found.append(node)
        elif not isinstance(node, _Scope | ast.expr):
            pending += ast.iter_child_nodes(node)
    return found


def _ways_to(tree: ast.AST, code: types.CodeType) -> Iterator[list[_Scope]]:
    """The definitions that may match the code, each with those around it, the outermost first."""
    pending: list[tuple[ast.AST, list[_Scope]]] = [(tree, [])]
    while pending:
        node, around = pending.pop()
        if isinstance(node, _Scope):
            around = [*around, node]
            if (
                not isinstance(node, ast.ClassDef)
                and node.name == code.co_name
                and first_line(node) == code.co_firstlineno
            ):
                yield around
        pending += ((child, around) for child in ast.iter_child_nodes(node))


def _pruned(scopes: list[_Scope], imports: list[ast.stmt]) -> ast.Module:
    """A module with nothing but its imports and these definitions.

    Imports matter, as the compiler treats calls such as `torch.relu` differently if `torch` was
    imported. Functions keep their bodies, which decide about closures; of classes only the name
    matters.
    """
    for outer, inner in itertools.pairwise(scopes):
        if isinstance(outer, ast.ClassDef):
            outer.body = [inner]
    return ast.Module(body=[*imports, scopes[0]], type_ignores=[])


def _definition(scopes: list[_Scope]) -> Definition:
    last = scopes[-1]
    assert not isinstance(last, ast.ClassDef)
    return last


def _named(code: types.CodeType, filename: str) -> types.CodeType:
    return code.replace(
        co_filename=filename,
        co_consts=tuple(
            _named(each, filename) if isinstance(each, types.CodeType) else each
            for each in code.co_consts
        ),
    )
