"""The values and errors of one statement: what a line can show."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shapetrace.events.model import ErrorInfo, Value, Variable
from shapetrace.server.definitions import Definition, definition_of
from shapetrace.server.file_records import Expression, Key, is_finished, item_at, picked
from shapetrace.server.ranges import range_of
from shapetrace.server.records_in_scope import Records, is_among
from shapetrace.server.source_structure import Function, Structure
from shapetrace.server.statements import Statement, StatementPart
from shapetrace.views.shapes import holds_tensor, result_value, value_text

Written = TypeVar("Written")


@dataclass(frozen=True, slots=True)
class StatementValues:
    """The values and errors of one statement."""

    values: tuple[tuple[Value, ...], ...]
    """For each part of the statement the different values it had; empty where no tensor is known
    to be among them."""
    named: tuple[tuple[Value, ...], ...]
    """The values of the names that ``:=`` assigned."""
    errors: tuple[ErrorInfo, ...]
    """The different errors that ended calls in it."""
    is_before: bool = False
    """Whether these are of earlier calls, as the selected call has not reached the line yet."""
    written: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """Texts made of these for the editor, cached."""

    def once(self, key: Hashable, write: Callable[[], Written]) -> Written:
        """Return the cached text for a key, or make it."""
        if key not in self.written:
            self.written[key] = write()
        found: Written = self.written[key]
        return found

    def __bool__(self) -> bool:
        return any(self.values) or any(self.named) or bool(self.errors)


def statement_values_of(
    statement: Statement, structure: Structure, records: Records
) -> StatementValues:
    """The recorded values of a statement, cached until they change."""
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
    statement: Statement, structure: Structure, function: Function | None, records: Records
) -> StatementValues:
    errors: dict[ErrorInfo, None] = {}
    errors_before: dict[ErrorInfo, None] = {}
    where = statement.range
    for expression in records.expressions(where.line, where.end_line):
        if where.contains(expression.range):
            its = errors_before if expression.is_before else errors
            its.update(dict.fromkeys(expression.errors))
    values = tuple(_known(statement, part, records) for part in statement.parts)
    if function is not None:
        values = _with_returned_names(statement, structure, function, records, values)
    named = tuple(_known(statement, part, records) for part in statement.named)
    told = zip((*statement.parts, *statement.named), (*values, *named), strict=True)
    known = [(part, its_values) for part, its_values in told if its_values]
    is_before = any(_is_before(statement, *each, records) for each in known)
    if is_before or not (known or errors):
        # If nothing is known of the selected call, the errors of others are shown.
        errors |= errors_before
        is_before = is_before or bool(errors_before)
    return StatementValues(values=values, named=named, errors=tuple(errors), is_before=is_before)


def _is_before(
    statement: Statement, part: StatementPart, values: tuple[Value, ...], records: Records
) -> bool:
    """Return whether the value of a part of a statement may be an earlier one."""
    where = statement.range
    if statement.kind == "parameters" and part in statement.parts:
        return not records.was_entered(part.name or "", statement.declared)
    held = records.held(part.targets)
    if held is not None and held.is_fresh:
        return False
    expression = None if part.value is None else records.expression(part.value)
    has_value = expression is not None and any(expression.values)
    called = None if part.item is None else records.expression(part.item.call)
    is_stored = not has_value and (called is None or not any(called.values))
    if held is None and (part.targets or is_stored):
        target = part.targets[0] if part.targets else where
        is_stale = is_stored and (bool(part.targets) or statement.kind == "return")
        if records.is_in_doubt(part.name or "", target, values, is_stale=is_stale):
            return True
    if expression is not None and has_value:
        items = [item_at(value, part.path) for value in expression.values]
        is_same = held is None or is_among(held.value, [it for it in items if it is not None])
        return expression.is_before or not is_same
    return not records.was_reached(where, is_stored=is_stored and bool(part.targets))


def _known(statement: Statement, part: StatementPart, records: Records) -> tuple[Value, ...]:
    values = tuple(dict.fromkeys(_values(statement, part, records)))
    return values if any(map(holds_tensor, values)) else ()


def _values(statement: Statement, part: StatementPart, records: Records) -> Iterator[Value]:
    if statement.function is not None and part in statement.parts:
        yield from records.passed(part.name or "", statement.function, statement.declared)
        return
    expression = None if part.value is None else records.expression(part.value)
    if expression is not None and _has_failed(expression):
        return  # What is known of the targets is of other calls.
    held = records.held(part.targets)
    if held is not None:
        yield held.value
        return
    if expression is None or not expression.is_exact or not any(expression.values):
        for target in part.targets:
            yield from records.stored(target)
    for value in () if expression is None else expression.values:
        item = item_at(value, part.path)
        if item is not None:
            yield item
    if expression is None and part.item is not None:
        called = records.expression(part.item.call)
        for value in () if called is None else called.values:
            item = picked(value, part.item.key, part.item.is_attribute)
            if item is not None:
                yield item


def _has_failed(expression: Expression) -> bool:
    """Return whether an error is all that is known of the selected call."""
    is_own = expression.is_exact and not expression.is_before
    return is_own and any(expression.errors) and not any(expression.values)


def bound_values(definition: Definition, records: Records) -> tuple[Value, ...]:
    """The different values that an assignment gave to a name, or calls to a parameter."""
    return tuple(dict.fromkeys(each.tensor for _, each in bound_variables(definition, records)))


def bound_variables(definition: Definition, records: Records) -> Iterator[tuple[Key, Variable]]:
    """Like `bound_values`, but yields the recorded `Variable` with its key."""
    if definition.function is None:
        return records.stored_variables(definition.target)
    return records.passed_variables(definition.name, definition.function, definition.declared)


def _with_returned_names(
    statement: Statement,
    structure: Structure,
    function: Function,
    records: Records,
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
            definition = definition_of(structure.path(start.line, start.column))
            bound = () if definition is None else bound_values(definition, records)
            if items == {_text(value) for value in bound} and any(map(holds_tensor, bound)):
                known = bound
        completed.append(known)
    return tuple(completed)


def _text(value: Value | None) -> str:
    return "" if value is None else value_text(value)
