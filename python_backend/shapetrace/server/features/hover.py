"""Hover: the story of the expression under the mouse.

The smallest recorded expression there wins; a name is looked for among the inputs of the call that
it is passed to, and then where it was assigned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shapetrace.events.model import Container, Op, Tensor, Value, Variable
from shapetrace.server.definitions import Definition, definition_of, first_line
from shapetrace.server.features.code_lens import told_of
from shapetrace.server.file_records import Call, Expression, Key, asks_for_truth, is_mutable
from shapetrace.server.ranges import SourceRange, byte_column, editor_column, range_of
from shapetrace.server.statement_values import bound_variables
from shapetrace.server.statements import Statement
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from shapetrace.views.owners import CallInModule, ValueInModule
from shapetrace.views.shapes import holds_tensor, value_text
from shapetrace.views.tooltips import (
    calls_story,
    code,
    details_text,
    escaped,
    name_lines,
    name_story,
    paragraphs,
    quoted,
)

_TRANSPARENT = (
    ast.Constant,
    ast.Dict,
    ast.FormattedValue,
    ast.JoinedStr,
    ast.List,
    ast.Set,
    ast.Slice,
    ast.Starred,
    ast.Tuple,
)
"""Who points at one of these may mean what it is part of."""


_NOT_REACHED = "From an earlier call. It is not known whether this call gets here."

_NOT_ENTERED = "From earlier calls. This call has not run here yet."


@dataclass(frozen=True, slots=True)
class Tooltip:
    """Markdown on a range of the document, in the editor's columns."""

    markdown: str
    start: tuple[int, int]
    end: tuple[int, int]


def hover(
    view: DocumentView, store: TraceStore, line: int, units: int, encoding: str = "utf-16"
) -> Tooltip | None:
    """The tooltip of the expression at a position of the document."""
    source_line = view.source_line(line)
    if source_line is None:
        return None
    column = byte_column(view.document.lines[line], units, encoding)
    statement = view.structure.at(source_line, column)
    if statement is None or not view.is_whole(statement.range):
        return None
    found = _Teller(view, store, statement).at(source_line, column)
    if found is None:
        return None
    where, markdown = found
    offset = line - source_line
    start, end = (
        (at + offset, editor_column(view.document.lines[at + offset], bytes_, encoding))
        for at, bytes_ in (where.start, where.end)
    )
    return Tooltip(markdown, start, end)


def statement_story(view: DocumentView, store: TraceStore, where: SourceRange) -> str:
    """The tooltip of the statement that a hint belongs to."""
    statement = view.structure.at(where.line, where.column)
    if statement is None or statement.range != where:
        return ""
    return _Teller(view, store, statement).whole()


class _Teller:
    """Tells of one statement."""

    def __init__(self, view: DocumentView, store: TraceStore, statement: Statement) -> None:
        self._view = view
        self._store = store
        self._statement = statement

    def at(self, line: int, column: int) -> tuple[SourceRange, str] | None:
        """The story at a position, and what of the source it is about."""
        path = self._view.structure.path(line, column)
        around = [each for each in self._expressions() if each.range.touches(line, column)]
        around.sort(key=lambda expression: _extent(expression.range))
        node = path[-1] if path else None
        story = None
        if isinstance(node, ast.arg):
            story = self._parameter(node, path)
        elif isinstance(node, ast.Name):
            story = self._name(node, path, around)
        elif isinstance(node, ast.Attribute):
            story = self._attribute(node, around)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            story = self._function(node, line, column)
        if story is not None:
            return story
        for expression in around if not path else _meant(path, around):
            told = self._told(expression.calls.items())
            if told:
                return expression.range, self._story(expression, told)
        return None

    def _story(self, expression: Expression, told: Sequence[CallInModule]) -> str:
        """All calls of an expression, the selected ones first."""
        notes = self._notes(expression.calls)
        if expression.is_before:
            notes.append(_NOT_REACHED)
        every = self._view.records.base.expression(expression.range)
        calls = {} if every is None else every.calls
        rest = ((key, call) for key, call in calls.items() if key not in expression.calls)
        return calls_story(told, notes, others=self._told(rest))

    def whole(self) -> str:
        """All that the statement's hint is made of."""
        facts = self._view.facts(self._statement)
        is_head = self._statement.kind == "parameters"
        note = "" if not facts.is_before else _NOT_ENTERED if is_head else _NOT_REACHED
        parts: list[str] = []
        lines: list[str] = []
        values: list[Value] = []
        for part, known in zip(
            (*self._statement.parts, *self._statement.named),
            (*facts.values, *facts.named),
            strict=True,
        ):
            expression = self._expression(part.value)
            if known and expression is not None and not part.path:
                told = self._told(expression.calls.items())
                parts.append(self._story(expression, told))
            elif known:
                lines.extend(name_lines(part.name or "", known))
                values.extend(known)
        if lines:
            details = details_text(values, is_of_one=len(lines) == 1)
            parts.insert(0, paragraphs([code(lines), details, note]))
        if facts.errors:
            failed = (
                (key, call)
                for expression in self._expressions()
                for key, call in expression.calls.items()
                if call.error in facts.errors and call.direct
            )
            parts.append(calls_story(self._told(failed), [note]))
        return "\n\n---\n\n".join(dict.fromkeys(parts))

    def _expressions(self) -> Iterator[Expression]:
        """The recorded expressions in the statement."""
        where = self._statement.range
        for expression in self._view.records.expressions(where.line, where.end_line):
            if where.contains(expression.range):
                yield expression

    def _expression(self, where: SourceRange | None) -> Expression | None:
        found = None if where is None else self._view.records.expression(where)
        return found if found is not None and any(found.values) else None

    def _told(self, calls: Iterable[tuple[Key, Call]]) -> list[CallInModule]:
        """The calls that say what an expression is worth, or why it has no value."""
        told: list[CallInModule] = []
        for (number, _), call in calls:
            process = self._store.process(number)
            if process is None or not call.direct:
                continue
            owner = call.module if isinstance(call, Op) else None
            module = None if owner is None else process.modules.get(owner)
            told.append(CallInModule(call, process.count(call), module, self._store.label(process)))
        # That the truth of a comparison was asked for is no news.
        news = [each for each in told if not asks_for_truth(each.call)]
        return news or told

    def _notes(self, keys: Iterable[Key]) -> list[str]:
        """Notes on code that was not recorded in the processes that made some calls."""
        processes = [
            self._store.process(number) for number in dict.fromkeys(key[0] for key in keys)
        ]
        return list(
            dict.fromkeys(
                f"Recording pauses: {escaped(entry.where)}"
                for process in processes
                for entry in (() if process is None else process.coverage)
                if entry.reason == "settled"
            )
        )

    def _name(
        self, node: ast.Name, path: Sequence[ast.AST], around: Sequence[Expression]
    ) -> tuple[SourceRange, str] | None:
        where = range_of(node)
        if not isinstance(node.ctx, ast.Load):
            return self._bound(where, node.id, Definition(node.id, where), "")
        if _is_called(node, path):
            return None
        definition = definition_of(path)
        for expression in around:
            inputs = list(_inputs_named(expression, node.id))
            if inputs:
                origin = "" if definition is None else self._origin(definition)
                note = _NOT_REACHED if expression.is_before else ""
                return self._named(where, node.id, inputs, origin, note)
        if definition is None:
            return None
        origin = self._origin(definition)
        variables = bound_variables(definition, self._view.records)
        if any(is_mutable(each.tensor) for _, each in variables):
            origin = f"{origin}, may have changed since"
        return self._bound(where, node.id, definition, origin)

    def _parameter(self, node: ast.arg, path: Sequence[ast.AST]) -> tuple[SourceRange, str] | None:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        owner = next((each for each in reversed(path) if isinstance(each, functions)), None)
        if owner is None:
            return None
        title = "<lambda>" if isinstance(owner, ast.Lambda) else owner.name
        where = range_of(node)
        name = SourceRange(
            where.line, where.column, where.line, where.column + len(node.arg.encode())
        )
        definition = Definition(node.arg, name, title, first_line(owner))
        return self._bound(name, node.arg, definition, self._origin(definition))

    def _attribute(
        self, node: ast.Attribute, around: Sequence[Expression]
    ) -> tuple[SourceRange, str] | None:
        """A parameter such as ``self.scale``, where it goes into the smallest call around it."""
        where = range_of(node)
        if not around or not around[0].range.contains(where) or around[0].range == where:
            return None
        ending = f".{ast.unparse(node).partition('.')[2]}"
        found: list[tuple[int, Tensor]] = []
        for (process, _), call in around[0].calls.items():
            owned = {each for each in _input_tensors(call) if f".{each.name}".endswith(ending)}
            if len(owned) != 1:
                return None
            found.append((process, owned.pop()))
        paths = ", ".join(dict.fromkeys(quoted(tensor.name or "") for _, tensor in found))
        note = _NOT_REACHED if around[0].is_before else ""
        return self._named(where, ast.unparse(node), found, paths, note)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, line: int, column: int
    ) -> tuple[SourceRange, str] | None:
        """The name of a function that module calls ran: all of these calls."""
        function = self._view.structure.function_at(node.lineno)
        name = self._view.structure.function_name(node)
        if function is None or function.node is not node or not name.touches(line, column):
            return None
        told = told_of(self._view, self._store, function)
        return (name, calls_story(told, named=False)) if told else None

    def _named(
        self,
        where: SourceRange,
        name: str,
        found: Iterable[tuple[int, Value]],
        origin: str,
        note: str,
    ) -> tuple[SourceRange, str] | None:
        """A name with the values that it had where it was used, and in which processes."""
        had = list(dict.fromkeys(found))
        values = tuple(dict.fromkeys(value for _, value in had))
        if not any(map(holds_tensor, values)):
            return None
        processes = ((self._store.process(number), value) for number, value in had)
        held = [
            ValueInModule(value, process=self._store.label(process))
            for process, value in processes
            if process is not None
        ]
        return where, paragraphs([name_story(name, values, origin, held), note])

    def _bound(
        self, where: SourceRange, name: str, definition: Definition, origin: str
    ) -> tuple[SourceRange, str] | None:
        """A name with its values, those of the selected calls first."""
        note = self._note_on(definition)
        every = dict(bound_variables(definition, self._view.records.base))
        bound = dict(bound_variables(definition, self._view.records))
        if note and not bound:
            bound = every  # As the hint does, which marks them.
        place = where if definition.function is not None else definition.target
        hinted = {value_text(value) for value in self._hinted(place)}
        if hinted:
            # In a loop, only the stores of the selected call.
            bound = {key: each for key, each in bound.items() if value_text(each.tensor) in hinted}
        rest = {key: variable for key, variable in every.items() if key not in bound}
        values = tuple(dict.fromkeys(each.tensor for each in bound.values()))
        if not any(map(holds_tensor, values)):
            return None
        story = name_story(name, values, origin, self._held(bound), self._held(rest))
        return where, paragraphs([story, note])

    def _note_on(self, definition: Definition) -> str:
        """Where the assignment or the parameter says what was before, that it does."""
        if definition.function is not None:
            is_known = self._view.records.was_entered(definition.name, definition.declared)
            return "" if is_known else _NOT_ENTERED
        records, target = self._view.records, definition.target
        held = records.held((target,))
        if held is not None and held.is_fresh:
            return ""
        assignment = self._view.structure.at(target.line, target.column)
        if assignment is None:
            return ""
        parts = (*assignment.parts, *assignment.named)
        is_own = any(target in part.targets for part in parts)
        if not is_own and held is None:  # of a comprehension
            is_before = records.is_in_doubt(definition.name, target, (), is_stale=True)
        else:
            is_before = self._view.facts(assignment).is_before
        return _NOT_REACHED if is_before else ""

    def _hinted(self, target: SourceRange) -> tuple[Value, ...]:
        """The values that the hint shows for an assigned name; empty for other names."""
        statement = self._view.structure.at(target.line, target.column) or self._statement
        facts = self._view.facts(statement)
        parts = zip(
            (*statement.parts, *statement.named), (*facts.values, *facts.named), strict=True
        )
        return next((known for part, known in parts if target in part.targets), ())

    def _held(self, variables: Mapping[Key, Variable]) -> list[ValueInModule]:
        held: list[ValueInModule] = []
        for (number, _), variable in variables.items():
            process = self._store.process(number)
            if process is not None:
                module = process.modules.get(variable.module or 0)
                held.append(ValueInModule(variable.tensor, module, self._store.label(process)))
        return held

    def _origin(self, definition: Definition) -> str:
        if definition.function is None:
            now = self._view.document_line(definition.target.line)
            return "" if now is None else f"assigned in line {now + 1}"
        if definition.function == "<lambda>":
            return "parameter of a lambda"
        return f"parameter of {quoted(definition.function)}"


def _meant(path: Sequence[ast.AST], around: Sequence[Expression]) -> Iterator[Expression]:
    """The recorded expressions around a position that a user can mean who points there.

    Not the call that is made with ``math.sqrt(n)`` by who points at that, as it is something else.
    """
    for depth in range(len(path) - 1, 0, -1):
        node = path[depth]
        if not isinstance(node, ast.expr):
            continue
        where = range_of(node)
        # A call in a chain of several lines begins at its method's name for Python.
        yield from (
            each for each in around if each.range.end == where.end and where.contains(each.range)
        )
        if isinstance(node, (ast.Name, ast.Attribute)):
            parent = path[depth - 1]
            is_callee = isinstance(parent, ast.Call) and parent.func is node
            if not is_callee and not isinstance(parent, ast.Attribute):
                return
        elif not isinstance(node, _TRANSPARENT):
            return


def _extent(where: SourceRange) -> tuple[int, int]:
    """Less for smaller ranges, of those around one position."""
    lines = where.end_line - where.line
    return (lines, where.end_column - where.column if lines == 0 else 0)


def _is_called(node: ast.Name, path: Sequence[ast.AST]) -> bool:
    parent = path[-2] if len(path) > 1 else None
    return isinstance(parent, ast.Call) and parent.func is node


def _inputs_named(expression: Expression, name: str) -> Iterator[tuple[int, Value]]:
    """The tensors of a name that went into the calls of an expression, and in which processes."""
    for (process, _), call in expression.calls.items():
        for tensor in _input_tensors(call):
            if tensor.name == name:
                yield process, tensor


def _input_tensors(call: Call) -> Iterator[Tensor]:
    pending: list[Value] = [*call.inputs]
    while pending:
        value = pending.pop(0)
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Container):
            pending.extend(value.items)
