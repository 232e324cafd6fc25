"""Reports calls and changes of variables of followed functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from sys import _getframe
from time import perf_counter
from types import CodeType, FrameType
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import catching_everywhere, covering_jumps
from shapetrace._frames import frame_of_program, let_go
from shapetrace._pending_exceptions import raise_later
from shapetrace.events.followed import (
    CONTAINER,
    KIND,
    REMOVED,
    VALUES,
    CallBegan,
    CallEnded,
    FollowedValue,
    FollowingNote,
    NamedValue,
    VariableChanged,
)
from shapetrace.events.model import Other
from shapetrace.instrument.hidden_twins import hidden_twin
from shapetrace.instrument.interface import Hooks, requests_by_variable
from shapetrace.variables import calls
from shapetrace.variables.calls import Running, around, label, running
from shapetrace.variables.describing import NONE, describe
from shapetrace.variables.differences import NO_PARTS, differences, parts_of
from shapetrace.variables.followed_names import FollowedName
from shapetrace.variables.loaded import Tensors, loaded_tensors
from shapetrace.variables.memories import Memory, PlainMemory, remember
from shapetrace.variables.outlets import Outlets, complain, telling
from shapetrace.variables.rendering import call_key, change_key, end_key, names_key
from shapetrace.variables.resolving import MISSING, resolve
from shapetrace.variables.tensor_memories import TensorMemory
from shapetrace.variables.value_statistics import with_statistics

_VALUES: Final = (VALUES,)
_NOTHING: Final = PlainMemory(None)
_REMOVED: Final = FollowedValue(REMOVED, Other("removed"))


_tensors: Tensors | None = None


def _load_tensors() -> Tensors | None:
    """Load the needed parts of torch, once the program has imported it."""
    global _tensors
    _tensors = loaded_tensors()
    return _tensors


@dataclass(frozen=True, slots=True)
class Followed:
    """One followed name and its options."""

    name: FollowedName
    stats: bool = False
    tolerance: float | None = None


class CallState:
    """State of a running call. It is freed when the call ends in any way."""

    __slots__ = ("began", "is_over", "key", "listener", "memories", "running", "thread")

    def __init__(
        self,
        listener: VariableListener,
        key: int,
        running: tuple[CodeType, Running],
        thread: str | None,
    ) -> None:
        self.listener = listener
        self.running = running
        self.key = key
        self.thread = thread
        self.memories: dict[str | int, Memory] = {}
        """Remembered values by key."""
        self.is_over = True
        """Whether its end was reported, or its beginning was not."""
        self.began = 0.0

    @catching_everywhere
    def __del__(self) -> None:
        try:
            self._forget()
            # The constructor may have been interrupted.
            if not getattr(self, "is_over", True) and not sys.is_finalizing():
                self.listener.left(self, _getframe(1))
        except BaseException as error:
            if is_asynchronous(error):
                self._forget()  # The interruption may have come before that.
                later = raise_later(error)
                del later
            elif isinstance(error, RecursionError):
                self.listener.missing = error.with_traceback(None)
            else:
                raise

    def _forget(self) -> None:
        key = getattr(self, "key", None)
        if key is not None and running.get(key) is self.running:
            del running[key]


class VariableListener:
    """Listens to one function."""

    def __init__(
        self,
        code: CodeType,
        function: str,
        line: int,
        everything: tuple[Followed, ...],
        outlets: Outlets,
        stats: bool,
        flavor: str | None = None,
        unseen: Callable[[Any], Any] | None = None,
    ) -> None:
        """``unseen`` wraps all that is called, so that a debugger does not look at it."""
        self._code = code
        self._unseen = unseen
        self._state_kind = CallState if unseen is None else hidden_twin(CallState)
        self._function = function
        self._line = line
        self._file = os.path.abspath(code.co_filename)
        self._outlets = outlets
        self._stats = stats
        self._parameters = calls.parameters_of(code)
        self._names = names_key(function, self._parameters)
        self._flavor = flavor or calls.flavor_of(code)
        self._has_failed = False
        self.missing: Exception | None = None
        """Reasons why something was not reported, printed once there is room on the stack."""
        self._is_async = self._flavor in ("coroutine", "async generator")
        self._of, self._only_whole = requests_by_variable(
            (each.name.root, number, each, not each.name.steps)
            for number, each in enumerate(everything)
        )
        """Followed names of each variable with the keys of their memories, and the variables that
        are followed only as a whole."""
        self._given = [(at, name) for at, name in enumerate(self._parameters) if name in self._of]
        self._outer = [name for name in code.co_freevars if name in self._of]
        """Variables of enclosing functions, which are bound already."""
        self._whole = {each.name.root for each in everything if not each.name.steps}

    def hooks(self) -> Hooks:
        """The hooks of this listener."""
        hooks = Hooks(
            self.looked_at,
            self.returned,
            entered_with=self.entered_with,
            looked_at_all=self.looked_at_all,
            deleted=self.deleted,
            stepped_aside=self.stepped_aside,
        )
        return hooks.each(self._unseen)

    def entered_with(self, frame: FrameType, arguments: tuple[object, ...]) -> CallState | None:
        """A call has begun."""
        try:
            return self._entered(frame, arguments)
        except Exception as error:
            self._fault(error)
            return None

    def stepped_aside(self) -> None:
        """A compiled region runs, where no function is followed."""
        text = f"{self._function}: calls of it in what torch.compile has compiled are not followed"
        self._outlets.tell(FollowingNote(text, self._function, self._file, self._line))

    def _fault(self, error: Exception) -> None:
        """Report an error of our own once; raise the program's again."""
        if is_asynchronous(error):
            raise error
        self.missing = error.with_traceback(None)  # its traceback would keep values alive
        if not self._has_failed and not isinstance(error, RecursionError):
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        complain(f"something is missing of {self._function}: {type(error).__name__}: {error}")
        self._has_failed = True

    def _entered(self, frame: FrameType, given: tuple[object, ...]) -> CallState | None:
        tensors = _tensors or _load_tensors()
        if telling.is_on or (tensors is not None and tensors.tracing() is not None):
            return None
        printing = self._outlets.alone or self._outlets.printing()
        outer, callers = around(frame)
        number = calls.next_number()
        if calls.is_new_process:
            calls.name_process()
        depth = 0 if outer is None else outer[1] + 1
        now = (frame.f_code, (number, depth))
        thread = label(self._is_async)
        state = self._state_kind(self, id(frame), now, thread)
        running[id(frame)] = now
        values = []
        numbers = []
        for value in given:
            described = NONE if value is None else describe(value)
            if self._stats:
                described = with_statistics(described, value)
            values.append(described)
            numbers.append(id(described))
        inner = self._begin(state, frame, given) if self._of else []
        for each in inner:
            numbers.append(id(each.value))
        if printing is not None:
            names = self._names
            if inner or len(values) != len(self._parameters):
                told = [*self._parameters[: len(values)], *(each.name for each in inner)]
                names = names_key(self._function, told)
            key = call_key(self._file, self._line, depth, thread, callers, names, numbers)
            if printing.again(key):
                state.is_over, state.began = False, perf_counter()
                return state
        named = [
            NamedValue(name, value, name in self._whole, True)
            for name, value in zip(self._parameters, values, strict=False)
        ]
        named += inner
        self._outlets.tell(
            CallBegan(
                call=number,
                parent=None if outer is None else outer[0],
                depth=depth,
                function=self._function,
                file=self._file,
                line=self._line,
                callers=callers,
                arguments=tuple(named),
                flavor=self._flavor,
                process=os.getpid(),
                thread=thread,
            )
        )
        state.is_over, state.began = False, perf_counter()
        return state

    @covering_jumps
    def _begin(
        self, state: CallState, frame: FrameType, given: tuple[object, ...]
    ) -> list[NamedValue]:
        """Remember the followed values that exist when the call begins."""
        inner: list[NamedValue] = []
        for at, name in self._given:
            whole = self._only_whole.get(name)
            if whole is not None:
                state.memories[name] = _remembered(given[at], whole)
            else:
                self._begin_with(state, name, given[at], inner)
        if self._outer:
            values = frame.f_locals
            try:
                for name in self._outer:
                    if name in values:
                        self._begin_with(state, name, values[name], inner)
            finally:
                let_go(values, frame)
        return inner

    def _begin_with(self, state: CallState, name: str, value: Any, inner: list[NamedValue]) -> None:
        for key, followed in self._of[name]:
            steps = followed.name.steps
            found = resolve(value, steps) if steps else value
            if found is MISSING:
                continue
            memory = state.memories[key] = _remembered(found, followed)
            if steps:
                looks = memory.described
                told = with_statistics(looks, found) if followed.stats else looks
                inner.append(NamedValue(followed.name.text, told, True, False))

    def looked_at(self, state: Any, name: str, value: Any, line: int, assigned: bool) -> None:
        """A variable was assigned, or its value may have changed."""
        for key, followed in self._of.get(name, ()):
            try:
                steps = followed.name.steps
                found = resolve(value, steps) if steps else value
                if found is MISSING:
                    gone = state.memories.pop(key, None)
                    if gone is not None and not assigned:
                        self._removed(state, followed, gone, line)
                    continue
                known = state.memories.get(key)
                if known is None or not known.is_still(found):
                    self._changed(state, key, followed, known, found, line)
            except Exception as error:
                self._fault(error)

    def deleted(self, state: Any, names: frozenset[str]) -> None:
        """Variables are deleted: their next value counts as the first."""
        for name in names:
            for key, _ in self._of.get(name, ()):
                state.memories.pop(key, None)

    @covering_jumps
    def looked_at_all(
        self,
        state: Any,
        marks: tuple[tuple[str, int, bool], ...],
        values: tuple[Any, ...],
        missing: object,
    ) -> None:
        """Several variables may have changed; most have not, which is seen here."""
        try:
            memories = state.memories
            tensors = _tensors or _load_tensors()
            is_quick = tensors is None or not tensors.function_modes()
            for index, (name, line, assigned) in enumerate(marks):
                value = values[index]
                if is_quick:
                    known = memories.get(name)  # the whole variable only
                    kind = type(known)
                    if kind is TensorMemory:
                        if known.reference() is value and value is not None:
                            if (
                                known.is_counted
                                and value._version == known.version
                                and known.torch.address_of(value) == known.address
                                and value.storage_offset() == known.offset
                            ):
                                continue
                        elif value is not missing:
                            followed = self._only_whole[name]
                            self._changed(state, name, followed, known, value, line)
                            continue
                    elif kind is PlainMemory and known.value is value:
                        continue
                if value is not missing:
                    self.looked_at(state, name, value, line, assigned)
        except Exception as error:
            self._fault(error)

    def _changed(
        self,
        state: CallState,
        key: str | int,
        followed: Followed,
        before: Memory | None,
        value: Any,
        line: int,
    ) -> None:
        after = state.memories[key] = _remembered(value, followed)
        name = followed.name.text
        if (
            type(before) is TensorMemory
            and type(after) is TensorMemory
            and before.described is after.described
            and before.layout is not None
            and before.layout is after.layout
            and before.content != after.content
            and followed.tolerance is None
        ):
            differs: tuple[str, ...] = _VALUES  # as below, for the most common case
        else:
            is_same_object = before is not None and before.is_of(value)
            differs = differences(before, after, is_same_object, followed.tolerance)
            if not differs:
                return
        looks = after.described
        told = with_statistics(looks, value) if followed.stats else looks
        former = None if before is None else before.described
        call, depth = state.running[1]
        printing = self._outlets.alone or self._outlets.printing()
        if printing is not None and printing.again(
            change_key(self._file, name, line, depth, state.thread, differs, former, told)
        ):
            return
        parts, more = NO_PARTS
        if after.described.kind == CONTAINER:
            parts, more = parts_of(before, after, followed.tolerance)
        self._outlets.tell(
            VariableChanged(
                call=call,
                depth=depth,
                name=name,
                file=self._file,
                line=line,
                before=former,
                after=told,
                differs=differs,
                parts=parts,
                more_parts=more,
                thread=state.thread,
            )
        )

    def _removed(self, state: CallState, followed: Followed, gone: Memory, line: int) -> None:
        """An item was removed from a variable that is the same object as before."""
        call, depth = state.running[1]
        self._outlets.tell(
            VariableChanged(
                call=call,
                depth=depth,
                name=followed.name.text,
                file=self._file,
                line=line,
                before=gone.described,
                after=_REMOVED,
                differs=(KIND,),
                thread=state.thread,
            )
        )

    def returned(self, state: Any, value: Any, line: int) -> None:
        """The call has returned."""
        state.is_over = True
        try:
            described = describe(value)
            if self._stats:
                described = with_statistics(described, value)
            self._end(state, "returned", described, line)
        except Exception as error:
            self._fault(error)

    def left(self, state: CallState, frame: FrameType) -> None:
        """The call has ended without returning: it has raised, or was dropped."""
        left = self._left if self._unseen is None else self._unseen(self._left)
        left(state, frame)

    def _left(self, state: CallState, frame: FrameType) -> None:
        try:
            state.is_over = True
            program = frame_of_program(frame)
            is_its_own = program is not None and id(program) == state.key
            line = (program.f_lineno if is_its_own and program else None) or self._line
            if is_its_own and program and self._of:
                self._look_at_last(state, program, line)
            outcome = "closed" if self._flavor != "function" else "raised"
            if self._flavor == "coroutine" and is_its_own:
                outcome = "raised"
            self._end(state, outcome, None, line)
            if self.missing is not None and not self._has_failed:
                self._complain(self.missing)
        except Exception as error:
            self._fault(error)

    @covering_jumps
    def _look_at_last(self, state: CallState, frame: FrameType, line: int) -> None:
        """Report changes by the line that raised: its variables still exist."""
        values = frame.f_locals
        try:
            for name in self._of:
                if name in values:
                    self.looked_at(state, name, values[name], line, False)
        finally:
            let_go(values, frame)

    def _end(self, state: CallState, outcome: str, value: FollowedValue | None, line: int) -> None:
        seconds = perf_counter() - state.began
        call, depth = state.running[1]
        printing = self._outlets.alone or self._outlets.printing()
        if printing is not None:
            key = end_key(self._file, line, depth, state.thread, self._flavor, outcome, None, value)
            if printing.again(key, seconds=seconds):
                return
        self._outlets.tell(
            CallEnded(
                call=call,
                depth=depth,
                function=self._function,
                file=self._file,
                line=line,
                outcome=outcome,
                value=value,
                seconds=seconds,
                flavor=self._flavor,
                thread=state.thread,
            )
        )


def _remembered(value: Any, followed: Followed) -> Memory:
    if value is None:
        return _NOTHING
    tensors = _tensors or _load_tensors()
    if tensors is not None and type(value) in tensors.plain and not tensors.function_modes():
        return TensorMemory(value, tensors, followed.tolerance is not None)
    return remember(value, followed.tolerance is not None)
