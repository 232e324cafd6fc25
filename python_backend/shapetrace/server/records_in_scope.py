"""What is known of a file's expressions in one scope, in the form of the records of all calls."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, TypeAlias, TypeVar

from shapetrace.events.model import ModuleCall, Tensor, Value, Variable
from shapetrace.events.rows import named
from shapetrace.events.stop import LocalVariable, StoppedFunction
from shapetrace.server.file_records import Call, Expression, FileRecords, Key, is_finished
from shapetrace.server.ranges import SourceRange
from shapetrace.server.scope import INSIDE, OWN, ScopePath, module_of
from shapetrace.server.source_structure import Function, Structure
from shapetrace.server.uris import file_key
from shapetrace.views.shapes import value_text

Known = TypeVar("Known")

_Place: TypeAlias = tuple[int, int]

_HELD = -1
"""In place of the number of a recorded variable."""

MODULE = "<module>"
"""What Python calls the function that the code of a file itself is."""


class ScopeFilter:
    """Which calls count in one function."""

    def __init__(
        self, scope_path: ScopePath, level: int | None, running: StoppedFunction | None
    ) -> None:
        self.level = level
        """The level of the calls that count; None where all do."""
        self.running = running
        """How far it has come, where it is running and followed on its way."""
        self._scope_path = scope_path

    def admits(self, process: int, module: int | None) -> bool:
        """Whether what was made in a module call counts."""
        if self.level is None:
            return True
        if process != self._scope_path.scope.process:
            return False
        level = self._scope_path.level(module)
        return level == self.level or (self.level == INSIDE and level == OWN)


class ScopedRecords:
    """The records of a file, as far as they are in a scope."""

    def __init__(
        self, base: FileRecords, key: str, structure: Structure, scope_path: ScopePath
    ) -> None:
        self.base = base
        """The records of all calls."""
        self.scope_path = scope_path
        self._key = key
        self._structure = structure
        self._filters: dict[int, tuple[int, ScopeFilter]] = {}
        self._made: dict[Hashable, tuple[int, int, Any]] = {}
        self._places: dict[str, tuple[int, list[_Place]]] = {}

    def module_calls(self, function: str) -> dict[Key, ModuleCall]:
        """The module calls in the scope that began with a function; all, where there are none."""
        every = self.base.module_calls(function)
        scope_path = self.scope_path
        levels: dict[Key, int] = {}
        for key in every:
            if key[0] == scope_path.scope.process:
                level = scope_path.level(key[1])
                if level is not None:
                    levels[key] = level
        if not levels or (scope_path.scope.call is None and scope_path.scope.stop is not None):
            return every
        nearest = min(levels.values())
        return {key: every[key] for key, level in levels.items() if level == nearest}

    @property
    def entered_functions(self) -> Iterable[str]:
        """The functions that module calls began with."""
        return self.base.entered_functions

    def cached(
        self, key: Hashable, first: int, last: int, make: Callable[[], Known], calls: str = ""
    ) -> Known:
        """What was made before, if nothing has changed in the function around some lines."""
        # That is looked at only if anything has changed in the file at all.
        made = self._made.get(key)
        changes = self.base.changes
        if made is not None and made[0] == changes:
            kept: Known = made[2]
            return kept
        function = self._structure.function_at(last)
        first = first if function is None else min(function.first, first)
        last = last if function is None else max(function.last, last)
        version = self.base.version(first, last, calls)
        value: Known = made[2] if made is not None and made[1] == version else make()
        self._made[key] = (changes, version, value)
        return value

    def expression(self, where: SourceRange) -> Expression | None:
        """The calls of exactly one expression that count."""
        found = self.base.expression(where)
        return None if found is None else self._scoped(found, self._filter(where.line))

    def expressions(self, first: int, last: int) -> Iterator[Expression]:
        """The expressions with calls that begin on some lines, in the order of the source."""
        for found in self.base.expressions(first, last):
            yield self._scoped(found, self._filter(found.range.line))

    def stored(self, where: SourceRange) -> Iterator[Value]:
        """The values that the name at one place was given there."""
        for _, variable in self.stored_variables(where):
            yield variable.tensor

    def stored_variables(self, where: SourceRange) -> Iterator[tuple[Key, Variable]]:
        """Like ``stored``, but yields the recorded variables with their keys."""
        held = self.held((where,))
        if held is not None:
            yield self._variable(held, "assignment")
            return
        scope_filter = self._filter(where.line)
        for key, variable in self.base.stored_variables(where):
            if scope_filter.admits(key[0], variable.module):
                yield key, variable

    def passed(self, name: str, function: str, line: int) -> Iterator[Value]:
        """The values of a parameter of the function that begins on a line."""
        for _, variable in self.passed_variables(name, function, line):
            yield variable.tensor

    def passed_variables(
        self, name: str, function: str, line: int
    ) -> Iterator[tuple[Key, Variable]]:
        """Like ``passed``, but yields the recorded variables with their keys."""
        scope_filter = self._filter(line)
        held = (
            None
            if scope_filter.running is None
            else scope_filter.running.locals.parameter(name, line)
        )
        if held is not None:
            yield self._variable(held, "parameter")
            return
        for key, variable in self.base.passed_variables(name, function, line):
            if scope_filter.admits(key[0], variable.module):
                yield key, variable

    def was_entered(self, name: str, line: int) -> bool:
        """Whether what a running function was called with is known of this call, not of others."""
        scope_filter = self._filter(line)
        running = scope_filter.running
        if running is None or running.locals.parameter(name, line) is not None:
            return True
        if scope_filter.level is None:
            return False
        is_known = running.locals.are_known
        if self.scope_path.has_begun_with(self._key, running.function):
            return not is_known or not self._was_passed_several(name, line, scope_filter)
        # A module call may call it more than once, and the name holds something else by now.
        if is_known:
            return False
        return bool(running.reached) and not self._was_passed_several(name, line, scope_filter)

    def _was_passed_several(self, name: str, line: int, scope_filter: ScopeFilter) -> bool:
        """Whether a parameter had different values in the calls that count."""
        values = {
            variable.tensor
            for key, variable in self.base.variables(line, line)
            if variable.kind == "parameter"
            and variable.name == name
            and scope_filter.admits(key[0], variable.module)
        }
        return len(values) > 1

    def held(self, targets: Sequence[SourceRange]) -> LocalVariable | None:
        """What a variable of a running function holds that was stored at one of some places."""
        running = self._filter(targets[0].line).running if targets else None
        return None if running is None else running.locals.assigned_at(targets)

    def is_in_doubt(
        self, name: str, target: SourceRange, told: Collection[Value], *, is_stale: bool = False
    ) -> bool:
        """Whether the variables of a running function speak against what is told of a store.

        Or do not speak for what was only seen of its variables some time ago (``is_stale``).
        """
        running = self._filter(target.line).running
        if running is None or not running.locals.are_known:
            return False
        if is_stale:
            return True
        last = running.locals.assigned_last_at(target)
        if last is not None and not is_among(last.value, told):
            return True
        is_unbound = name in (running.locals.unbound or ())
        return is_unbound and not self._structure.is_in_class(*target.start)

    def _variable(self, held: LocalVariable, kind: str) -> tuple[Key, Variable]:
        """What a variable holds, as it is recorded."""
        scope = self.scope_path.scope
        line, *rest = held.stores[0]
        column, end_line, end_column = rest or (None, None, None)
        value = held.value
        variable = Variable(
            name=held.name,
            file=self.base.path,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            function="" if scope.stop is None else scope.stop.own.function,
            module=scope.call,
            tensor=named(value, held.name) if isinstance(value, Tensor) else value,
            kind=kind,
        )
        return (scope.process, _HELD), variable

    def was_reached(self, where: SourceRange, *, is_stored: bool = False) -> bool:
        """Whether a function that is running has come past a statement, as far as its calls tell.

        It has where a later call has been made or has begun, or one in the statement and it is
        elsewhere now. What was stored is seen at a later call only: until then it may be what was
        stored before.
        """
        running = self._filter(where.line).running
        if running is None:
            return True
        known = self._places.get(running.function)
        if known is None or known[0] != self.base.changes:
            found = sorted(self._find_places(running))
            known = self._places[running.function] = (self.base.changes, found)
        places = known[1]
        if places and places[-1] >= where.end:
            return self._was_begun(where, places, running.line)
        line = running.line
        has_left = not where.line <= line <= where.end_line
        is_known = not is_stored or self._is_run_once(where, running)
        return is_known and has_left and _has_one(where, places)

    def _is_run_once(self, where: SourceRange, running: StoppedFunction) -> bool:
        """Whether a module call comes by a statement once, so that all its values are alike."""
        is_own = self.scope_path.began_with() == (self._key, running.function)
        return is_own and not self._structure.is_in_loop(*where.start)

    def _was_begun(self, where: SourceRange, places: Sequence[_Place], here: int) -> bool:
        """Whether nothing tells that the blocks around a statement were passed by."""
        for block in self._structure.blocks_around(*where.start):
            if block.range.line <= here <= block.range.end_line:
                return True
            if any(_has_one(each, places) for each in block.handlers):
                return _has_one(SourceRange(*where.end, *block.range.end), places)
            if _has_one(block.range, places):
                return True
            if any(_has_one(other, places) for other in block.others):
                return False
            if any(self._makes_calls(each) for each in block.certain):
                return False
        return True

    def _makes_calls(self, where: SourceRange) -> bool:
        """Whether calls like the one that is looked at have made any call in a statement."""
        scope_filter = self._filter(where.line)
        return any(
            call.direct and scope_filter.admits(key[0], module_of(call))
            for expression in self.base.expressions(where.line, where.end_line)
            if where.contains(expression.range)
            for key, call in expression.calls.items()
        )

    def _find_places(self, running: StoppedFunction) -> Iterator[_Place]:
        """Where a function made calls, itself or by functions that it called."""
        process = self.scope_path.process
        if running in self.scope_path.scope.functions[1:]:
            yield from self._find_waiting(running)
        for identity in running.reached:
            call = process.call(identity)
            if call is None:
                continue
            if call.function == running.function and file_key(call.file or "") == self._key:
                yield (call.line or 0, call.column or 0)
                continue
            frames = (process.frames.get(each) for each in reversed(call.stack))
            for frame in frames:
                if frame is not None and frame.function == running.function:
                    yield (frame.line, frame.column or 0)
                    break

    def _find_waiting(self, running: StoppedFunction) -> Iterator[_Place]:
        """Where a function that waits has made the module call that it waits for."""
        for identity in self.scope_path.calls:
            call = self.scope_path.process.call(identity)
            if (
                call is not None
                and call.line == running.line
                and call.function == running.function
                and file_key(call.file or "") == self._key
            ):
                yield (running.line, call.column or 0)
                return

    def _scoped(self, found: Expression, scope_filter: ScopeFilter) -> Expression:
        if scope_filter.level is None and scope_filter.running is None:
            return found
        calls = {
            key: call
            for key, call in found.calls.items()
            if scope_filter.admits(key[0], module_of(call))
        }
        scoped = Expression(found.range)
        # Of the calls in a loop, the one counts that the scope is, or is in.
        around = {key: call for key, call in calls.items() if self._is_around(key)}
        if scope_filter.running is not None:
            reached = scope_filter.running.reached
            done = {key: call for key, call in calls.items() if key[1] in reached}
            before = (_over(each) for each in (around, calls, found.calls))
            chosen = done or next(filter(None, before), calls)
            scoped.is_exact, scoped.is_before = True, not done
        elif around:
            chosen, scoped.is_exact = around, True
        else:
            chosen = calls
        for key, call in chosen.items():
            scoped.add(key, call)
        return scoped

    def _is_around(self, key: Key) -> bool:
        return key[0] == self.scope_path.scope.process and key[1] in self.scope_path.calls

    def _filter(self, line: int) -> ScopeFilter:
        function = self._structure.function_at(line)
        first = 0 if function is None else function.first
        known = self._filters.get(first)
        if known is None or known[0] != self.base.changes:
            known = self._filters[first] = (self.base.changes, self._make_filter(function))
        return known[1]

    def _make_filter(self, function: Function | None) -> ScopeFilter:
        name = MODULE if function is None else function.qualified_name
        scope_path = self.scope_path
        running = scope_path.running(self._key, name)
        if function is None:
            # Its code runs once: what counts are the calls that lead to the scope.
            is_around = scope_path.is_called_from(self._key, name) or scope_path.scope.stop is None
            counts = is_around and self._has_own_outside()
            return ScopeFilter(scope_path, scope_path.level(None) if counts else None, running)
        levels: set[int] = set()
        for module in self._modules(function):
            level = scope_path.level(module)
            if level is not None:
                levels.add(level)
        if scope_path.began_with() != (self._key, name) and OWN in levels:
            levels.add(INSIDE)
            levels.discard(OWN)
        outermost = scope_path.level(None)
        if outermost in levels and not self._counts_outside(name):
            levels.discard(outermost)
        return ScopeFilter(scope_path, min(levels, default=None), running)

    def _counts_outside(self, name: str) -> bool:
        """Whether what a function made in no module belongs to the scope."""
        scope = self.scope_path.scope
        is_pinned_process = scope.call is None and scope.stop is None
        return is_pinned_process or self.scope_path.is_called_from(self._key, name)

    def _has_own_outside(self) -> bool:
        """Whether the process of the scope made anything in this file outside of functions."""
        lines = self.base.lines_of(self.scope_path.scope.process)
        return any(not self._structure.is_in_function(line) for line in lines)

    def _modules(self, function: Function) -> set[int | None]:
        """The module calls of the process in which anything was made in a function."""
        process = self.scope_path.scope.process
        found: set[int | None] = set()
        for expression in self.base.expressions(function.first, function.last):
            for key, call in expression.calls.items():
                if key[0] == process:
                    found.add(module_of(call))
        for key, variable in self.base.variables(function.first, function.last):
            if key[0] == process:
                found.add(variable.module)
        return found


def is_among(value: Value, others: Collection[Value]) -> bool:
    """Whether a value would be written like one of some others."""
    text = value_text(value)
    return any(value_text(other) == text for other in others)


def _has_one(where: SourceRange, places: Sequence[_Place]) -> bool:
    return any(where.start <= place < where.end for place in places)


def _over(calls: Mapping[Key, Call]) -> dict[Key, Call]:
    """Those of some calls that are over, and so have a value or an error."""
    return {key: call for key, call in calls.items() if is_finished(call) or call.error is not None}


Records: TypeAlias = FileRecords | ScopedRecords
"""What is known of a file: of all calls, or of those in a scope."""
