"""What is known of a statement: the values that it produced, and the errors that ended it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shapetrace.events.model import ErrorInfo, Value
from shapetrace.server.bindings import Binding, binding_of
from shapetrace.server.ranges import range_of
from shapetrace.server.records import FileRecords, is_finished, item_at
from shapetrace.server.statements import Part, Statement
from shapetrace.server.structure import Function, Structure
from shapetrace.views.shapes import holds_tensor, result_value, value_text

Written = TypeVar("Written")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one statement."""

    values: tuple[tuple[Value, ...], ...]
    """For each part of the statement the different values it had; empty where no tensor is known
    to be among them."""
    named: tuple[tuple[Value, ...], ...]
    """The same for what ``:=`` gave names to."""
    errors: tuple[ErrorInfo, ...]
    """The different errors that ended calls in it."""
    written: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What has been made of them for the editor before."""

    def once(self, key: Hashable, write: Callable[[], Written]) -> Written:
        """What was written under a key before, or is written now."""
        if key not in self.written:
            self.written[key] = write()
        found: Written = self.written[key]
        return found

    def __bool__(self) -> bool:
        return any(self.values) or any(self.named) or bool(self.errors)


def facts_of(statement: Statement, structure: Structure, records: FileRecords) -> Facts:
    """What a session recorded of a statement; made anew only where that has changed."""
    where = statement.range
    function = structure.function_at(where.line) if _returns_name(statement) else None
    return records.cached(
        where,
        statement.declared if function is None else function.first,
        where.end_line,
        lambda: _facts(statement, structure, function, records),
        "" if function is None else function.qualified_name,
    )


def _returns_name(statement: Statement) -> bool:
    return statement.kind == "return" and any(part.load is not None for part in statement.parts)


def _facts(
    statement: Statement, structure: Structure, function: Function | None, records: FileRecords
) -> Facts:
    errors: dict[ErrorInfo, None] = {}
    where = statement.range
    for expression in records.expressions(where.line, where.end_line):
        if where.contains(expression.range):
            errors.update(dict.fromkeys(expression.errors))
    values = tuple(_known(statement, part, records) for part in statement.parts)
    if function is not None:
        values = _with_returned_names(statement, structure, function, records, values)
    return Facts(
        values=values,
        named=tuple(_known(statement, part, records) for part in statement.named),
        errors=tuple(errors),
    )


def _known(statement: Statement, part: Part, records: FileRecords) -> tuple[Value, ...]:
    values = tuple(dict.fromkeys(_values(statement, part, records)))
    return values if any(map(holds_tensor, values)) else ()


def _values(statement: Statement, part: Part, records: FileRecords) -> Iterator[Value]:
    if statement.function is not None and part in statement.parts:
        yield from records.passed(part.name or "", statement.function, statement.declared)
        return
    for target in part.targets:
        yield from records.stored(target)
    expression = None if part.value is None else records.expression(part.value)
    for value in () if expression is None else expression.values:
        item = item_at(value, part.path)
        if item is not None:
            yield item


def bound_values(binding: Binding, records: FileRecords) -> tuple[Value, ...]:
    """The different values that an assignment gave to a name, or calls to a parameter."""
    return tuple(dict.fromkeys(value for _, value in bound_by_process(binding, records)))


def bound_by_process(binding: Binding, records: FileRecords) -> Iterator[tuple[int, Value]]:
    """All of them, each with the number of its process."""
    if binding.function is None:
        return records.stored_by_process(binding.target)
    return records.passed_by_process(binding.name, binding.function, binding.declared)


def _with_returned_names(
    statement: Statement,
    structure: Structure,
    function: Function,
    records: FileRecords,
    values: tuple[tuple[Value, ...], ...],
) -> tuple[tuple[Value, ...], ...]:
    """The values of names that are returned, where two sources agree on them.

    Nothing is recorded of ``return x`` itself. What ``x`` was assigned is known, and what the
    module returned whose ``forward`` this is; a hook may have changed that, or something else may
    have changed ``x``.
    """
    if len(function.returns) != 1:
        return values
    modules = records.module_calls(function.qualified_name).values()
    finished = [module for module in modules if is_finished(module)]
    returned = [result_value(module.outputs, module.result) for module in finished]
    completed: list[tuple[Value, ...]] = []
    for index, (part, known) in enumerate(zip(statement.parts, values, strict=True)):
        if part.load is not None and not known:
            path = (index,) if statement.is_tuple else ()
            items = {_text(item_at(value, path)) for value in returned}
            start = range_of(part.load)
            binding = binding_of(structure.path(start.line, start.column))
            bound = () if binding is None else bound_values(binding, records)
            if items == {_text(value) for value in bound} and any(map(holds_tensor, bound)):
                known = bound
        completed.append(known)
    return tuple(completed)


def _text(value: Value | None) -> str:
    return "" if value is None else value_text(value)
