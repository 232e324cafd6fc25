"""The records of one session for one source file, by line and by expression."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from shapetrace.events.model import Container, ErrorInfo, ModuleCall, Op, Value, Variable
from shapetrace.server.ranges import SourceRange
from shapetrace.server.watched_lines import WatchedLine
from shapetrace.transport.requested import WatchedChange
from shapetrace.views.shapes import result_value

Call: TypeAlias = Op | ModuleCall

Known = TypeVar("Known")

Key: TypeAlias = tuple[int, int]
"""The number of a process, and the number of a call or variable in it."""

_NO_ERRORS = frozenset({"GeneratorExit", "KeyboardInterrupt", "StopIteration", "SystemExit"})
"""Exceptions by which programs end a call on purpose."""


class Expression:
    """All calls that were made by one expression of the source."""

    is_exact = False
    """Whether names that are assigned its value have that one, whatever else is known of them."""

    is_before = False
    """Whether its calls were made before those that are selected."""

    def __init__(self, where: SourceRange) -> None:
        self.range = where
        self.calls: dict[Key, Call] = {}
        self._new: list[Call] = []
        self._values: dict[Value, None] = {}
        self._truths: dict[Value, None] = {}
        self._errors: dict[ErrorInfo, None] = {}

    def add(self, key: Key, call: Call) -> None:
        """Note a call, in place of what had its key before."""
        if key in self.calls:
            self._forget()
        else:
            self._new.append(call)
        self.calls[key] = call

    def remove(self, key: Key) -> None:
        """Forget a call."""
        if self.calls.pop(key, None) is not None:
            self._forget()

    @property
    def values(self) -> Iterable[Value]:
        """The different values that the expression is known to have had.

        Whether one was true is no further value: a condition stands where what it asks about does.
        """
        self._read()
        return (self._values or self._truths).keys()

    @property
    def errors(self) -> Iterable[ErrorInfo]:
        """The different errors that ended its calls."""
        self._read()
        return self._errors.keys()

    def _forget(self) -> None:
        self._new = []
        self._values.clear()
        self._truths.clear()
        self._errors.clear()
        self._is_whole = False

    _is_whole = True
    """Whether only the calls in ``_new`` have still to be read."""

    def _read(self) -> None:
        calls: Iterable[Call] = self._new if self._is_whole else self.calls.values()
        for call in calls:
            # What library code called says nothing: it may have handled the error.
            if not call.direct:
                continue
            if call.error is not None:
                if call.error.type not in _NO_ERRORS:
                    self._errors[call.error] = None
            elif is_finished(call):
                known = self._truths if asks_for_truth(call) else self._values
                known[result_value(call.outputs, call.result)] = None
        self._new = []
        self._is_whole = True


@dataclass(slots=True)
class Line:
    """The calls that began on one line."""

    expressions: dict[SourceRange, Expression]
    variables: dict[Key, Variable]
    version: int = 0
    """Grows with each change."""


class FileRecords:
    """Everything that one session recorded in one file, of all its processes."""

    def __init__(self, path: str, module: Callable[[Key], ModuleCall | None]) -> None:
        self.path = path
        self._module = module
        self._entered: dict[str, dict[Key, None]] = {}
        """For each function the module calls that began with it."""
        self._entered_versions: dict[str, int] = {}
        self.text: str | None = None
        """The source that ran; None where it is not known."""
        self.digest: str | None = None
        self._lines: dict[int, Line] = {}
        self._watched: dict[int, dict[str, WatchedLine]] = {}
        self._made: dict[Hashable, tuple[int, Any]] = {}
        self.changes = 0
        """Grows with each change."""

    @property
    def base(self) -> FileRecords:
        """The records of all calls, which these are."""
        return self

    def add_watched(self, process: int, change: WatchedChange) -> None:
        """Note that a watched variable has changed on a line."""
        event = change.event
        on_line = self._watched.setdefault(event.line, {})
        known = on_line.get(event.name)
        if known is None:
            known = on_line[event.name] = WatchedLine(event.name, change, process)
        known.add(process, change)
        self.changes += 1

    @property
    def has_watched(self) -> bool:
        """Whether a watched variable has changed anywhere in the file."""
        return bool(self._watched)

    def watched(self, line: int) -> Sequence[WatchedLine]:
        """The changes of watched variables on a line."""
        return tuple(self._watched.get(line, {}).values())

    def add_call(self, process: int, call: Call) -> None:
        """Note an op or a module call that was made in this file."""
        where = call_range(call)
        if where is None:
            return
        line = self._line(where.line)
        expression = line.expressions.get(where)
        if expression is None:
            expression = line.expressions[where] = Expression(where)
        expression.add((process, call.id), call)
        self._note(line)

    def remove_call(self, process: int, call: Call) -> None:
        """Forget a call, as it was noted."""
        where = call_range(call)
        line = None if where is None else self._lines.get(where.line)
        if line is not None and where is not None and where in line.expressions:
            line.expressions[where].remove((process, call.id))
            self._note(line)

    def add_entry(self, function: str, process: int, module: int) -> None:
        """Note which function a module call began with, or that the call has changed."""
        self._entered.setdefault(function, {})[process, module] = None
        self._entered_versions[function] = self._entered_versions.get(function, 0) + 1
        self.changes += 1

    def remove_entry(self, function: str, process: int, module: int) -> None:
        """Forget that a module call began with a function."""
        self._entered.get(function, {}).pop((process, module), None)
        self._entered_versions[function] = self._entered_versions.get(function, 0) + 1

    def module_calls(self, function: str) -> dict[Key, ModuleCall]:
        """The module calls that began with a function, in the order in which they were seen."""
        keys = self._entered.get(function, ())
        found = ((key, self._module(key)) for key in keys)
        return {key: module for key, module in found if module is not None}

    @property
    def entered_functions(self) -> Iterable[str]:
        """The functions that module calls began with."""
        return self._entered.keys()

    def add_variable(self, process: int, number: int, variable: Variable) -> None:
        """Note what a name held."""
        line = self._line(variable.line)
        line.variables[process, number] = variable
        self._note(line)

    def remove_variable(self, process: int, number: int, variable: Variable) -> None:
        """Forget what a name held."""
        line = self._lines.get(variable.line)
        if line is not None and line.variables.pop((process, number), None) is not None:
            self._note(line)

    def cached(
        self, key: Hashable, first: int, last: int, make: Callable[[], Known], calls: str = ""
    ) -> Known:
        """A value computed from some lines, cached until these change.

        And from the module calls that began with a function, if one is named.
        """
        version = self.version(first, last, calls)
        made = self._made.get(key)
        if made is None or made[0] != version:
            made = self._made[key] = (version, make())
        value: Known = made[1]
        return value

    def version(self, first: int, last: int, calls: str = "") -> int:
        """Grows with each change of what ``cached`` depends on."""
        lines = (self._lines[line] for line in range(first, last + 1) if line in self._lines)
        return self._entered_versions.get(calls, 0) + sum(line.version for line in lines)

    def expression(self, where: SourceRange) -> Expression | None:
        """The calls of exactly one expression."""
        line = self._lines.get(where.line)
        return None if line is None else line.expressions.get(where)

    def expressions(self, first: int, last: int) -> Iterator[Expression]:
        """The expressions with calls that begin on some lines, in the order of the source."""
        for number in range(first, last + 1):
            if number in self._lines:
                found = self._lines[number].expressions
                yield from (found[where] for where in sorted(found))

    def lines_of(self, process: int) -> Iterator[int]:
        """The lines on which anything of one process began."""
        for number, line in self._lines.items():
            calls = (key for each in line.expressions.values() for key in each.calls)
            if any(key[0] == process for key in chain(calls, line.variables)):
                yield number

    def variables(self, first: int, last: int) -> Iterator[tuple[Key, Variable]]:
        """The values of the names that are stored or declared on some lines."""
        for number in range(first, last + 1):
            if number in self._lines:
                yield from self._lines[number].variables.items()

    def stored(self, where: SourceRange) -> Iterator[Value]:
        """The values that the name at one place was given there."""
        for _, variable in self.stored_variables(where):
            yield variable.tensor

    def stored_variables(self, where: SourceRange) -> Iterator[tuple[Key, Variable]]:
        """Like `stored`, but yields the recorded `Variable` with its key."""
        for key, variable in self.variables(where.line, where.line):
            place = (variable.column, variable.end_line, variable.end_column)
            if place == where[1:] and variable.kind == "assignment":
                yield key, variable

    def passed(self, name: str, function: str, line: int) -> Iterator[Value]:
        """The values of a parameter of the function that begins on a line."""
        for _, variable in self.passed_variables(name, function, line):
            yield variable.tensor

    def passed_variables(
        self, name: str, function: str, line: int
    ) -> Iterator[tuple[Key, Variable]]:
        """Like `passed`, but yields the recorded `Variable` with its key."""
        for key, variable in self.variables(line, line):
            is_its = variable.function.rpartition(".")[2] == function
            if is_its and variable.name == name and variable.kind == "parameter":
                yield key, variable

    def was_reached(self, where: SourceRange, *, is_stored: bool = False) -> bool:
        """Return whether a statement has run; where all calls count, they all have been made."""
        return True

    def was_entered(self, name: str, line: int) -> bool:
        """Return whether a parameter of the function on a line is known in the selected call."""
        return True

    def held(self, targets: Sequence[SourceRange]) -> None:
        """The value of a variable of a running function; None unless a call is selected."""

    def is_in_doubt(
        self, name: str, target: SourceRange, told: Collection[Value], *, is_stale: bool = False
    ) -> bool:
        """Return whether the variables of a running function contradict the record of a store."""
        return False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was recorded."""
        return not self._lines and not self._watched

    def _note(self, line: Line) -> None:
        line.version += 1
        self.changes += 1

    def _line(self, number: int) -> Line:
        line = self._lines.get(number)
        if line is None:
            line = self._lines[number] = Line({}, {})
        return line


def call_range(call: Call) -> SourceRange | None:
    """The expression that made a call; None where its place is not exactly known."""
    if call.line is None or call.column is None or call.end_line is None or call.end_column is None:
        return None
    return SourceRange(call.line, call.column, call.end_line, call.end_column)


def is_finished(call: Call) -> bool:
    """Return whether a call has returned; one that still runs has no value yet."""
    return bool(call.outputs) or call.result is not None


def asks_for_truth(call: Call) -> bool:
    """Return whether a call asked whether a tensor is true."""
    return isinstance(call, Op) and call.name.endswith(".__bool__")


def item_at(value: Value, path: tuple[int, ...]) -> Value | None:
    """An item of an unpacked value; None if the value does not say which."""
    for index in path:
        if not isinstance(value, Container) or value.kind in ("dict", "set"):
            return None
        if value.length is not None or index >= len(value.items):
            return None
        value = value.items[index]
    return value


def picked(value: Value, key: int | str, is_attribute: bool) -> Value | None:
    """An item of a call's result, by its name or number; None if the value does not say which."""
    if not isinstance(value, Container):
        return None
    if isinstance(key, str):
        is_method = is_attribute and (value.kind == "dict" or hasattr(dict, key))
        if value.keys is None or key not in value.keys or is_method:
            return None
        return value.items[value.keys.index(key)]
    # By number only what has its items in that order, and all of them are known.
    return item_at(value, (key,)) if value.kind in ("tuple", "list") and key >= 0 else None


def is_mutable(value: Value) -> bool:
    """Return whether other items may be in a value later."""
    if not isinstance(value, Container):
        return False
    return value.kind not in ("tuple", "Size") or any(map(is_mutable, value.items))
