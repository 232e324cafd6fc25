"""Which assignments of a source file made tensors, watched line by line with ``sys.settrace``."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import torch

from tests.support.reference.calls import TensorFacts
from tests.support.reference.mode import facts_in

Assignment: TypeAlias = ast.Assign | ast.AugAssign | ast.AnnAssign


@dataclass(frozen=True)
class Target:
    """A name that an assignment statement binds."""

    file: str
    line: int
    end_line: int
    name: str


@dataclass
class LineWatch:
    """The values that assignment statements left in their targets."""

    tensors: dict[Target, set[TensorFacts]] = field(default_factory=lambda: defaultdict(set))
    containers: dict[Target, set[tuple[TensorFacts, ...]]] = field(
        default_factory=lambda: defaultdict(set)
    )
    """The tensors in tuples, lists and dicts, in order."""
    objects: set[Target] = field(default_factory=set)
    """Targets that held an object of some class, which may hold tensors in any way."""
    parameters: dict[Target, set[TensorFacts | tuple[TensorFacts, ...]]] = field(
        default_factory=lambda: defaultdict(set)
    )
    """The values of parameters when a function begins, by its first line."""
    executed: set[Target] = field(default_factory=set)
    """Every target whose statement ran to its end, whatever it was given."""

    @property
    def lines(self) -> dict[tuple[str, int], set[Target]]:
        """The tensor-assigning statements, each with the targets that held tensors."""
        statements: dict[tuple[str, int], set[Target]] = defaultdict(set)
        for target in self.tensors:
            statements[target.file, target.line].add(target)
        return statements


def assigned_names(statement: Assignment) -> tuple[str, ...]:
    """Return the plain names an assignment binds, looking into tuples."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return tuple(name for target in targets for name in _names(target))


def _names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _names(element)
    elif isinstance(target, ast.Starred):
        yield from _names(target.value)


def assignments_of(tree: ast.AST) -> Iterator[Assignment]:
    """Yield the assignment statements of a source file that give something a value."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)) or (
            isinstance(node, ast.AnnAssign) and node.value is not None
        ):
            yield node


class _File:
    """The assignment statements of one source file by line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.statements: dict[int, Assignment] = {}
        for statement in assignments_of(ast.parse(Path(path).read_bytes())):
            for line in range(statement.lineno, (statement.end_lineno or 0) + 1):
                self.statements[line] = statement


def _suspends(statement: Assignment) -> bool:
    """Say whether the function may be left in the middle of the statement."""
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) for node in ast.walk(statement)
    )


class _FrameWatch:
    """Follows one function call: after each statement, looks at what it assigned."""

    def __init__(self, file: _File, watch: LineWatch) -> None:
        self.file = file
        self.watch = watch
        self.running: Assignment | None = None

    def __call__(self, frame: FrameType, event: str, argument: Any) -> _FrameWatch:
        if event == "exception":
            self.running = None
        elif event in {"line", "return"}:
            following = self.file.statements.get(frame.f_lineno) if event == "line" else None
            ended = None if self.running is following else self.running
            if ended is not None and (event == "line" or not _suspends(ended)):
                self._look(frame, ended)
            self.running = following
        return self

    def _look(self, frame: FrameType, statement: Assignment) -> None:
        for name in assigned_names(statement):
            if name not in frame.f_locals:
                continue
            target = Target(
                self.file.path, statement.lineno, statement.end_lineno or statement.lineno, name
            )
            self.watch.executed.add(target)
            value = frame.f_locals[name]
            if isinstance(value, torch.Tensor):
                self.watch.tensors[target].update(facts_in(value))
            elif isinstance(value, (tuple, list, dict)):
                self.watch.containers[target].add(tuple(facts_in(value)))
            elif hasattr(value, "__dict__"):
                self.watch.objects.add(target)


@contextmanager
def watch_lines(paths: Iterable[str]) -> Iterator[LineWatch]:
    """Watch the functions of some source files while the block runs."""
    files = {path: _File(path) for path in paths}
    watch = LineWatch()

    def enter(frame: FrameType, event: str, argument: Any) -> _FrameWatch | None:
        code = frame.f_code
        file = files.get(code.co_filename)
        if file is None or not code.co_flags & inspect.CO_OPTIMIZED or code.co_name[0] == "<":
            return None
        for name, value in frame.f_locals.items():
            facts = tuple(facts_in(value))
            target = Target(file.path, code.co_firstlineno, code.co_firstlineno, name)
            if isinstance(value, torch.Tensor):
                watch.parameters[target].update(facts)
            elif facts:
                watch.parameters[target].add(facts)
        return _FrameWatch(file, watch)

    previous = sys.gettrace()
    sys.settrace(enter)
    try:
        yield watch
    finally:
        sys.settrace(previous)
