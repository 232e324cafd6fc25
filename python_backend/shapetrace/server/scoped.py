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
from shapetrace.server.file_records import Call, Expression, FileRecords, Key, is_finished
from shapetrace.server.held import Held, is_among
from shapetrace.server.ranges import SourceRange
from shapetrace.server.scope import INSIDE, OWN, Reach, Stand, module_of
from shapetrace.server.source_structure import Function, Structure
from shapetrace.server.uris import file_key

Known = TypeVar("Known")

_Place: TypeAlias = tuple[int, int]

_STANDING = -1
"""In place of the number of a recorded variable."""

MODULE = "<module>"
"""What Python calls the function that the code of a file itself is."""


class _Sieve:
    """Which calls count in one function."""

    def __init__(self, reach: Reach, level: int | None, stand: Stand | None) -> None:
        self.level = level
        """The level of the calls that count; None where all do."""
        self.stand = stand
        """How far it has come, where it is running and followed on its way."""
        self._reach = reach

    def admits(self, process: int, module: int | None) -> bool:
        """Whether what was made in a module call counts."""
        if self.level is None:
            return True
        if process != self._reach.scope.process:
            return False
        level = self._reach.level(module)
        return level == self.level or (self.level == INSIDE and level == OWN)


class ScopedRecords:
    """The records of a file, as far as they are in a scope."""

    def __init__(self, base: FileRecords, key: str, structure: Structure, reach: Reach) -> None:
        self.base = base
        """The records of all calls."""
        self.reach = reach
        self._key = key
        self._structure = structure
        self._sieves: dict[int, tuple[tuple[int, int], _Sieve]] = {}
        self._made: dict[Hashable, tuple[int, tuple[int, ...], Any]] = {}
        self._places: dict[str, tuple[int, list[_Place]]] = {}

    def module_calls(self, function: str) -> dict[Key, ModuleCall]:
        """The module calls in the scope that began with a function; all, where there are none."""
        every = self.base.module_calls(function)
        reach = self.reach
        levels: dict[Key, int] = {}
        for key in every:
            if key[0] == reach.scope.process:
                level = reach.level(key[1])
                if level is not None:
                    levels[key] = level
        if not levels or (reach.scope.call is None and reach.scope.function is not None):
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
        _ = self.reach.path
        made = self._made.get(key)
        changes = self.base.changes
        if made is not None and made[0] == changes and made[1][0] == self.reach.version:
            kept: Known = made[2]
            return kept
        function = self._structure.function_at(last)
        first = first if function is None else min(function.first, first)
        last = last if function is None else max(function.last, last)
        version = (self.reach.version, self.base.version(first, last, calls))
        value: Known = made[2] if made is not None and made[1] == version else make()
        self._made[key] = (changes, version, value)
        return value

    def expression(self, where: SourceRange) -> Expression | None:
        """The calls of exactly one expression that count."""
        found = self.base.expression(where)
        return None if found is None else self._scoped(found, self._sieve(where.line))

    def expressions(self, first: int, last: int) -> Iterator[Expression]:
        """The expressions with calls that begin on some lines, in the order of the source."""
        for found in self.base.expressions(first, last):
            yield self._scoped(found, self._sieve(found.range.line))

    def stored(self, where: SourceRange) -> Iterator[Value]:
        """The values that the name at one place was given there."""
        for _, variable in self.stored_variables(where):
            yield variable.tensor

    def stored_variables(self, where: SourceRange) -> Iterator[tuple[Key, Variable]]:
        """Like `stored`, but yields the recorded `Variable` with its key."""
        held = self.held((where,))
        if held is not None:
            yield self._variable(held, "assignment")
            return
        sieve = self._sieve(where.line)
        for key, variable in self.base.stored_variables(where):
            if sieve.admits(key[0], variable.module):
                yield key, variable

    def passed(self, name: str, function: str, line: int) -> Iterator[Value]:
        """The values of a parameter of the function that begins on a line."""
        for _, variable in self.passed_variables(name, function, line):
            yield variable.tensor

    def passed_variables(
        self, name: str, function: str, line: int
    ) -> Iterator[tuple[Key, Variable]]:
        """Like `passed`, but yields the recorded `Variable` with its key."""
        sieve = self._sieve(line)
        held = None if sieve.stand is None else sieve.stand.locals.passed(name, line)
        if held is not None:
            yield self._variable(held, "parameter")
            return
        for key, variable in self.base.passed_variables(name, function, line):
            if sieve.admits(key[0], variable.module):
                yield key, variable

    def was_entered(self, name: str, line: int) -> bool:
        """Whether what a running function was called with is known of this call, not of others."""
        sieve = self._sieve(line)
        stand = sieve.stand
        if stand is None or stand.locals.passed(name, line) is not None:
            return True
        if sieve.level is None:
            return False
        is_known = stand.locals.are_known
        if self.reach.has_begun_with(self._key, stand.function):
            return not is_known or not self._was_passed_several(name, line, sieve)
        # A module call may call it more than once, and the name holds something else by now.
        if is_known:
            return False
        return bool(stand.reached) and not self._was_passed_several(name, line, sieve)

    def _was_passed_several(self, name: str, line: int, sieve: _Sieve) -> bool:
        """Whether a parameter had different values in the calls that count."""
        values = {
            variable.tensor
            for key, variable in self.base.variables(line, line)
            if variable.kind == "parameter"
            and variable.name == name
            and sieve.admits(key[0], variable.module)
        }
        return len(values) > 1

    def held(self, targets: Sequence[SourceRange]) -> Held | None:
        """What a variable of a running function holds that was stored at one of some places."""
        stand = self._sieve(targets[0].line).stand if targets else None
        return None if stand is None else stand.locals.stored_at(targets)

    def is_in_doubt(
        self, name: str, target: SourceRange, told: Collection[Value], *, is_stale: bool = False
    ) -> bool:
        """Whether the variables of a running function speak against what is told of a store.

        Or do not speak for what was only seen of its variables some time ago (``is_stale``).
        """
        stand = self._sieve(target.line).stand
        if stand is None or not stand.locals.are_known:
            return False
        if is_stale:
            return True
        last = stand.locals.stored_last(target)
        if last is not None and not is_among(last.value, told):
            return True
        is_unbound = name in (stand.locals.unbound or ())
        return is_unbound and not self._structure.is_in_class(*target.start)

    def _variable(self, held: Held, kind: str) -> tuple[Key, Variable]:
        """What a variable holds, as it is recorded."""
        scope = self.reach.scope
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
            function=scope.function or "",
            module=scope.call,
            tensor=named(value, held.name) if isinstance(value, Tensor) else value,
            kind=kind,
        )
        return (scope.process, _STANDING), variable

    def was_reached(self, where: SourceRange, *, is_stored: bool = False) -> bool:
        """Whether a function that is running has come past a statement, as far as its calls tell.

        It has where a later call has been made or has begun, or one in the statement and it is
        elsewhere now. What was stored is seen at a later call only: until then it may be what was
        stored before.
        """
        stand = self._sieve(where.line).stand
        if stand is None:
            return True
        known = self._places.get(stand.function)
        if known is None or known[0] != self.base.changes:
            found = sorted(self._find_places(stand))
            known = self._places[stand.function] = (self.base.changes, found)
        places = known[1]
        if places and places[-1] >= where.end:
            return self._was_begun(where, places, stand)
        line = stand.line
        has_left = line is not None and not where.line <= line <= where.end_line
        is_known = not is_stored or self._is_run_once(where, stand)
        return is_known and has_left and _has_one(where, places)

    def _is_run_once(self, where: SourceRange, stand: Stand) -> bool:
        """Whether a module call comes by a statement once, so that all its values are alike."""
        is_own = self.reach.began_with() == (self._key, stand.function)
        return is_own and not self._structure.is_in_loop(*where.start)

    def _was_begun(self, where: SourceRange, places: Sequence[_Place], stand: Stand) -> bool:
        """Whether nothing tells that the blocks around a statement were passed by."""
        here = stand.line
        for block in self._structure.blocks_around(*where.start):
            if here is not None and block.range.line <= here <= block.range.end_line:
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
        sieve = self._sieve(where.line)
        return any(
            call.direct and sieve.admits(key[0], module_of(call))
            for expression in self.base.expressions(where.line, where.end_line)
            if where.contains(expression.range)
            for key, call in expression.calls.items()
        )

    def _find_places(self, stand: Stand) -> Iterator[_Place]:
        """Where a function made calls, itself or by functions that it called."""
        process = self.reach.process
        if stand in self.reach.scope.outer:
            yield from self._find_waiting(stand)
        for identity in stand.reached:
            call = process.call(identity)
            if call is None:
                continue
            if call.function == stand.function and file_key(call.file or "") == self._key:
                yield (call.line or 0, call.column or 0)
                continue
            frames = (process.frames.get(each) for each in reversed(call.stack))
            for frame in frames:
                if frame is not None and frame.function == stand.function:
                    yield (frame.line, frame.column or 0)
                    break

    def _find_waiting(self, stand: Stand) -> Iterator[_Place]:
        """Where a function that waits has made the module call that it waits for."""
        for identity in self.reach.path:
            call = self.reach.process.call(identity)
            if (
                call is not None
                and call.line == stand.line
                and call.function == stand.function
                and file_key(call.file or "") == self._key
            ):
                yield (stand.line or 0, call.column or 0)
                return

    def _scoped(self, found: Expression, sieve: _Sieve) -> Expression:
        if sieve.level is None and sieve.stand is None:
            return found
        calls = {
            key: call for key, call in found.calls.items() if sieve.admits(key[0], module_of(call))
        }
        scoped = Expression(found.range)
        # Of the calls in a loop, the one counts that the scope is, or is in.
        around = {key: call for key, call in calls.items() if self._is_around(key)}
        if sieve.stand is not None:
            reached = sieve.stand.reached
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
        return key[0] == self.reach.scope.process and key[1] in self.reach.path

    def _sieve(self, line: int) -> _Sieve:
        function = self._structure.function_at(line)
        first = 0 if function is None else function.first
        _ = self.reach.path
        made_at = (self.base.changes, self.reach.version)
        known = self._sieves.get(first)
        if known is None or known[0] != made_at:
            known = self._sieves[first] = (made_at, self._make_sieve(function))
        return known[1]

    def _make_sieve(self, function: Function | None) -> _Sieve:
        name = MODULE if function is None else function.qualified_name
        reach = self.reach
        stand = reach.stand_of(self._key, name)
        if function is None:
            # Its code runs once: what counts are the calls that lead to the scope.
            is_around = reach.is_called_from(self._key, name) or reach.scope.function is None
            counts = is_around and self._has_own_outside()
            return _Sieve(reach, reach.level(None) if counts else None, stand)
        levels: set[int] = set()
        for module in self._modules(function):
            level = reach.level(module)
            if level is not None:
                levels.add(level)
        if reach.began_with() != (self._key, name) and OWN in levels:
            levels.add(INSIDE)
            levels.discard(OWN)
        outermost = reach.level(None)
        if outermost in levels and not self._counts_outside(name):
            levels.discard(outermost)
        return _Sieve(reach, min(levels, default=None), stand)

    def _counts_outside(self, name: str) -> bool:
        """Whether what a function made in no module belongs to the scope."""
        scope = self.reach.scope
        is_pinned_process = scope.call is None and scope.function is None
        return is_pinned_process or self.reach.is_called_from(self._key, name)

    def _has_own_outside(self) -> bool:
        """Whether the process of the scope made anything in this file outside of functions."""
        lines = self.base.lines_of(self.reach.scope.process)
        return any(not self._structure.is_in_function(line) for line in lines)

    def _modules(self, function: Function) -> set[int | None]:
        """The module calls of the process in which anything was made in a function."""
        process = self.reach.scope.process
        found: set[int | None] = set()
        for expression in self.base.expressions(function.first, function.last):
            for key, call in expression.calls.items():
                if key[0] == process:
                    found.add(module_of(call))
        for key, variable in self.base.variables(function.first, function.last):
            if key[0] == process:
                found.add(variable.module)
        return found


def _has_one(where: SourceRange, places: Sequence[_Place]) -> bool:
    return any(where.start <= place < where.end for place in places)


def _over(calls: Mapping[Key, Call]) -> dict[Key, Call]:
    """Those of some calls that are over, and so have a value or an error."""
    return {key: call for key, call in calls.items() if is_finished(call) or call.error is not None}


Records: TypeAlias = FileRecords | ScopedRecords
"""What is known of a file: of all calls, or of those in a scope."""
