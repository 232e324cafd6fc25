"""Functions made of text, somebody who listens to them, and an independent reference."""

from __future__ import annotations

import dis
import itertools
import linecache
import sys
import textwrap
import traceback
import types
from collections.abc import Callable
from typing import Any

from shapetrace.instrument import Hooks

_NUMBERS = itertools.count()

_REPEATS_AFTER_CALLS = sys.version_info[:2] == (3, 12)
"""Python 3.12 tells of a line again where a function returns to the end of an ``and`` or ``or``,
as hooks do."""


def function_of(text: str, name: str = "f", *, file: str | None = None, **given: Any) -> Any:
    """The function of this name that a text defines, whose source is known."""
    text = textwrap.dedent(text)
    file = file or f"<followed {next(_NUMBERS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "followed", **given}
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    found: Any = namespace
    for part in name.split("."):
        found = found[part] if isinstance(found, dict) else vars(found)[part]
    return getattr(found, "__func__", found)


class Heard:
    """Writes down what it hears."""

    def __init__(self, interested: Callable[[Any], bool] = lambda call: True) -> None:
        self.calls: list[Any] = []
        self.events: list[tuple[str, object, int, bool]] = []
        self.returns: list[tuple[object, int]] = []
        self.states: list[tuple[int, str]] = []
        self._interested = interested

    def hooks(self) -> Hooks:
        return Hooks(self.looked_at, self.returned, self.entered)

    def entered(self, call: Any) -> object | None:
        self.calls.append((call.function, call.first, call.line))
        return len(self.calls) if self._interested(call) else None

    def looked_at(self, state: Any, name: str, value: object, line: int, assigned: bool) -> None:
        self.events.append((name, value, line, assigned))
        self.states.append((state, name))

    def returned(self, state: Any, value: object, line: int) -> None:
        self.returns.append((value, line))
        self.states.append((state, "return"))

    @property
    def assigned(self) -> list[tuple[str, object, int]]:
        return [(name, value, line) for name, value, line, assigned in self.events if assigned]

    def of(self, name: str) -> list[object]:
        """The values that a variable was assigned."""
        return [value for each, value, _ in self.assigned if each == name]


def outcome(action: Callable[[], object]) -> tuple[object, ...]:
    """What came of a call: a result, or an error with where it was raised."""
    try:
        return ("result", repr(action()))
    except Exception as error:
        entries = [e for e in traceback.extract_tb(error.__traceback__) if e.filename[0] == "<"]
        where = [(each.lineno, each.end_lineno, each.colno, each.name) for each in entries]
        return ("error", type(error).__name__, str(error), where)


def traced(code: types.CodeType, action: Callable[[], object]) -> tuple[object, list[Any]]:
    """What came of a call, and the events that a debugger sees in the code's file."""
    events: list[Any] = []
    latest: dict[types.FrameType, Any] = {}

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != code.co_filename:
            return None
        opcode = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        told = (frame.f_code.co_name, event, 0 if opcode == "RERAISE" else frame.f_lineno)
        before_it = latest.get(frame) if _REPEATS_AFTER_CALLS else next(iter(events[-1:]), None)
        if event == "line":
            latest[frame] = told
        is_again = event == "line" and before_it == told
        if event != "line" or not (is_again or _is_tidying(frame.f_code, frame.f_lasti)):
            events.append(told)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = outcome(action)
    finally:
        sys.settrace(before)
    return result, events


def _is_tidying(code: types.CodeType, offset: int) -> bool:
    """Whether an instruction only tidies up after an error, on whichever line Python says it is."""
    names = [dis.opname[each] for each in code.co_code[offset : offset + 8 : 2]]
    while names and names[0] in ("COPY", "POP_EXCEPT"):
        del names[0]
    if names[0] == "LOAD_CONST" and len(names) == 4:
        return [each.partition("_")[0] for each in names[1:]] == ["STORE", "DELETE", "RERAISE"]
    return names[:1] == ["RERAISE"]


def stored(code: types.CodeType, action: Callable[[], object]) -> list[tuple[str, str, int]]:
    """The stores to local variables that a call makes, by its instructions one by one."""
    found: list[tuple[str, str, int]] = []
    pending: dict[types.FrameType, tuple[str, int]] = {}
    tables: dict[types.CodeType, dict[int, tuple[str, int]]] = {}

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        if not _is_within(frame.f_code, code):
            return None
        frame.f_trace_opcodes = True
        if frame in pending:
            name, line = pending.pop(frame)
            found.append((name, repr(frame.f_locals.get(name)), line))
        if event == "opcode":
            table = tables.get(frame.f_code) or tables.setdefault(
                frame.f_code, _stores_of(frame.f_code)
            )
            if frame.f_lasti in table:
                pending[frame] = table[frame.f_lasti]
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        outcome(action)
    finally:
        sys.settrace(before)
    return found


def _is_within(code: types.CodeType, outer: types.CodeType) -> bool:
    """Whether a code is another, or a comprehension of it."""
    if code is outer:
        return True
    return any(
        isinstance(each, types.CodeType)
        and each.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
        and _is_within(code, each)
        for each in outer.co_consts
    )


def _stores_of(code: types.CodeType) -> dict[int, tuple[str, int]]:
    instructions = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
    found = {}
    for index, each in enumerate(instructions):
        following = instructions[index + 1 : index + 2]
        ends_handler = following and following[0].opname in ("DELETE_FAST", "DELETE_DEREF")
        if each.opname in ("STORE_FAST", "STORE_DEREF"):
            before = instructions[index - 1]
            if ends_handler and before.opname == "LOAD_CONST" and before.argval is None:
                continue
            assert each.positions is not None
            found[each.offset] = (each.argval, each.positions.lineno or 0)
    return found
