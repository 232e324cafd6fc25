"""What is done when a followed function begins, a variable may have changed, a call returns."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from inspect import CO_VARARGS, CO_VARKEYWORDS
from time import perf_counter
from types import CodeType, FrameType
from typing import Any, Final

from shapetrace.events.followed import (
    CONTAINER,
    VALUES,
    CallBegan,
    CallEnded,
    Caller,
    FollowedValue,
    NamedValue,
    VariableChanged,
)
from shapetrace.variables import calls
from shapetrace.variables.calls import (
    Running,
    around,
    first_caller,
    frame_of_program,
    label,
    running,
)
from shapetrace.variables.describing import describe
from shapetrace.variables.differences import NO_PARTS, differences, parts_of
from shapetrace.variables.loaded import loaded_tensors
from shapetrace.variables.memories import Memory, PlainMemory, remember
from shapetrace.variables.names import FollowedName
from shapetrace.variables.outlets import Outlets, complain, is_telling
from shapetrace.variables.rendering import call_key, change_key, end_key
from shapetrace.variables.resolving import MISSING, resolve
from shapetrace.variables.statistics import with_statistics
from shapetrace.variables.tensor_memories import TensorMemory

_OURS_AND_THE_FRAMES: Final = 3
_VALUES: Final = (VALUES,)


@dataclass(frozen=True, slots=True)
class Followed:
    """One thing that is followed, and how."""

    name: FollowedName
    stats: bool = False
    tolerance: float | None = None


class Slot:
    """One followed thing in one call."""

    __slots__ = ("followed", "memory", "steps")

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.steps = followed.name.steps
        self.memory: Memory | None = None


class CallState:
    """One call that runs. It is let go when the call is over, in whatever way."""

    __slots__ = ("began", "is_over", "key", "listener", "plain", "running", "slots", "thread")

    def __init__(
        self,
        listener: FunctionListener,
        key: int,
        running: Running,
        slots: dict[str, list[Slot]],
        thread: str | None,
    ) -> None:
        self.listener = listener
        self.key = key
        self.running = running
        self.slots = slots
        self.plain: dict[str, Slot] = {}
        for name, each in slots.items():
            if len(each) == 1 and not each[0].steps:
                self.plain[name] = each[0]
        """Those of which nothing but the variable itself is followed."""
        self.thread = thread
        self.is_over = False
        self.began = perf_counter()

    def __del__(self) -> None:
        if calls.running.get(self.key) is self.running:
            del calls.running[self.key]
        if not self.is_over and not sys.is_finalizing():
            self.listener.left(self, sys._getframe(1))


class FunctionListener:
    """Listens to one function."""

    def __init__(
        self,
        code: CodeType,
        function: str,
        line: int,
        everything: tuple[Followed, ...],
        outlets: Outlets,
        stats: bool,
    ) -> None:
        self._code = code
        self._function = function
        self._line = line
        self._file = os.path.abspath(code.co_filename)
        self._everything = everything
        self._outlets = outlets
        self._stats = stats
        self._parameters = parameters_of(code)
        self._flavor = calls.flavor_of(code)
        self._has_failed = False
        self._is_async = self._flavor in ("coroutine", "async generator")
        self._roots = {each.name.root for each in everything}
        self._whole = {each.name.root for each in everything if not each.name.steps}

    def entered(self, call: object) -> CallState | None:
        """A call has begun."""
        try:
            return self._entered(sys._getframe(1))
        except Exception as error:
            self._fault(error)
            return None

    def _fault(self, error: Exception) -> None:
        """A mistake of ours, which is not to become the program's. It is said once."""
        if not self._has_failed:
            self._has_failed = True
            kind = type(error).__name__
            complain(f"something is missing of {self._function}: {kind}: {error}")

    def _entered(self, hook: FrameType) -> CallState | None:
        tensors = loaded_tensors()
        if is_telling() or (tensors is not None and tensors.tracing() is not None):
            return None
        frame = hook.f_back
        if frame is None or frame.f_code.co_name != self._code.co_name:
            frame = frame_of_program(hook)
            if frame is None:
                return None
        printing = self._outlets.printing()
        outer: Running | None = None
        callers: tuple[Caller, ...] | None = None
        if running or printing is None:
            outer, callers = around(frame)
            caller = callers[0] if callers else None
        else:
            caller = first_caller(frame)
        number = calls.next_number()
        if calls.is_new_process:
            calls.name_process()
        depth = 0 if outer is None else outer.depth + 1
        now = running[id(frame)] = Running(number, depth)
        slots: dict[str, list[Slot]] = {}
        for followed in self._everything:
            slots.setdefault(followed.name.root, []).append(Slot(followed))
        thread = label(self._is_async)
        state = CallState(self, id(frame), now, slots, thread)
        arguments = self._arguments(frame, slots)
        if printing is not None:
            values = [value for _, value, _ in arguments]
            if printing.again(call_key(self._file, self._line, depth, thread, caller, values)):
                state.began = perf_counter()
                return state
        named = [
            NamedValue(name, value, not is_argument or name in self._whole, is_argument)
            for name, value, is_argument in arguments
        ]
        self._outlets.tell(
            CallBegan(
                call=number,
                parent=None if outer is None else outer.call,
                depth=depth,
                function=self._function,
                file=self._file,
                line=self._line,
                callers=around(frame)[1] if callers is None else callers,
                arguments=tuple(named),
                flavor=self._flavor,
                process=os.getpid(),
                thread=thread,
            )
        )
        state.began = perf_counter()
        return state

    def _arguments(
        self, frame: FrameType, slots: dict[str, list[Slot]]
    ) -> list[tuple[str, FollowedValue, bool]]:
        """Arguments, and what is followed in them: names, values, and whether it is an argument."""
        found = []
        values = frame.f_locals
        try:
            for name in self._parameters:
                if name in values:
                    found.append((name, self._described(values[name], self._stats), True))
            for name, all_of_it in slots.items():
                if name not in values:
                    continue
                for slot in all_of_it:
                    value = resolve(values[name], slot.steps) if slot.steps else values[name]
                    if value is MISSING:
                        continue
                    memory = slot.memory = _remembered(value, slot.followed)
                    if slot.steps:
                        described = self._told(memory, value, slot.followed)
                        found.append((slot.followed.name.text, described, False))
            value = None
        finally:
            if sys.version_info < (3, 13) and frame.f_trace is None and sys.gettrace() is None:
                # A snapshot, which the frame would keep, and all values in it.
                if sys.getrefcount(values) <= _OURS_AND_THE_FRAMES:
                    values.clear()
        return found

    def _described(self, value: Any, stats: bool) -> FollowedValue:
        described = describe(value)
        return with_statistics(described, value) if stats else described

    def _told(self, memory: Memory, value: Any, followed: Followed) -> FollowedValue:
        if followed.stats:
            return with_statistics(memory.described, value)
        return memory.described

    def looked_at(self, state: Any, name: str, value: Any, line: int, assigned: bool) -> None:
        """A variable was assigned, or its value may have changed."""
        slots = state.slots.get(name)
        if slots is None:
            return
        for slot in slots:
            try:
                found = resolve(value, slot.steps) if slot.steps else value
                if found is MISSING:
                    slot.memory = None
                    continue
                known = slot.memory
                if known is None or not known.is_same(found):
                    self._changed(state, slot, found, line)
            except Exception as error:
                self._fault(error)

    def looked_at_all(
        self,
        state: Any,
        marks: tuple[tuple[str, int, bool], ...],
        values: tuple[Any, ...],
        missing: object,
    ) -> None:
        """Several variables may have changed; most have not, which is seen here."""
        try:
            plain = state.plain
            tensors = loaded_tensors()
            may_ask = tensors is None or not tensors.function_modes()
            address_of = None if tensors is None else tensors.address_of
            for (name, line, assigned), value in zip(marks, values, strict=True):
                slot = plain.get(name)
                if slot is not None and may_ask:
                    known = slot.memory
                    kind = type(known)
                    if kind is TensorMemory:
                        if (
                            known.version is not None
                            and known.reference() is value
                            and value is not None
                            and value._version == known.version
                            and known.address is not None
                            and address_of(value) == known.address  # type: ignore[misc]
                        ):
                            continue
                    elif kind is PlainMemory and known.value is value:
                        continue
                if value is not missing:
                    self.looked_at(state, name, value, line, assigned)
        except Exception as error:
            self._fault(error)

    def _changed(self, state: CallState, slot: Slot, value: Any, line: int) -> None:
        followed, before = slot.followed, slot.memory
        after = slot.memory = _remembered(value, followed)
        if (
            type(before) is TensorMemory
            and type(after) is TensorMemory
            and before.described is after.described
            and before.layout is not None
            and before.layout is after.layout
            and before.content != after.content
            and followed.tolerance is None
        ):
            differs: tuple[str, ...] = _VALUES  # as below, for what is most common
        else:
            is_same_object = before is not None and before.is_of(value)
            differs = differences(before, after, is_same_object, followed.tolerance)
            if not differs:
                return
        told = self._told(after, value, followed)
        former = None if before is None else before.described
        call = state.running
        printing = self._outlets.printing()
        if printing is not None and printing.again(
            change_key(
                *(self._file, followed.name.text, line, call.depth, state.thread),
                *(differs, former, told),
            )
        ):
            return
        parts, more = NO_PARTS
        if after.described.kind == CONTAINER:
            parts, more = parts_of(before, after, followed.tolerance)
        self._outlets.tell(
            VariableChanged(
                call=call.call,
                depth=call.depth,
                name=followed.name.text,
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

    def returned(self, state: Any, value: Any, line: int) -> None:
        """The call has returned."""
        state.is_over = True
        try:
            self._end(state, "returned", self._described(value, self._stats), line)
        except Exception as error:
            self._fault(error)

    def left(self, state: CallState, frame: FrameType) -> None:
        """The call is over and has not returned: it has raised, or was thrown away."""
        try:
            state.is_over = True
            program = frame_of_program(frame)
            is_its_own = program is not None and id(program) == state.key
            line = (program.f_lineno if is_its_own and program else None) or self._line
            outcome = "closed" if self._flavor != "function" else "raised"
            if self._flavor == "coroutine" and is_its_own:
                outcome = "raised"
            self._end(state, outcome, None, line)
        except Exception as error:
            self._fault(error)

    def _end(self, state: CallState, outcome: str, value: FollowedValue | None, line: int) -> None:
        call, seconds = state.running, perf_counter() - state.began
        printing = self._outlets.printing()
        if printing is not None:
            key = end_key(self._file, line, call.depth, state.thread, outcome, None, value)
            if printing.again(key, seconds=seconds):
                return
        self._outlets.tell(
            CallEnded(
                call=call.call,
                depth=call.depth,
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
    tensors = loaded_tensors()
    if tensors is not None and type(value) in tensors.plain:
        return TensorMemory(value, tensors, followed.tolerance is not None)
    return remember(value, followed.tolerance is not None)


def parameters_of(code: CodeType) -> tuple[str, ...]:
    """The parameters of a function, in the order in which they are written."""
    named, keywords = code.co_argcount, code.co_kwonlyargcount
    rest = [*code.co_varnames[named + keywords :]]
    star = [rest.pop(0)] if code.co_flags & CO_VARARGS else []
    double = [rest.pop(0)] if code.co_flags & CO_VARKEYWORDS else []
    return (
        *code.co_varnames[:named],
        *star,
        *code.co_varnames[named : named + keywords],
        *double,
    )
