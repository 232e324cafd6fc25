"""Which instruction gave a local variable the value it has somewhere else in its function.

Read from the bytecode, once for each function: an answer is given only where every way through the
function that fits what was seen leads to the same store.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Final

ENTRY: Final = -1
"""Stands for the function's entry, where parameters get their values."""

_NO_FALL_THROUGH: Final = frozenset(
    {
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
        "JUMP_ABSOLUTE",
        "RETURN_VALUE",
        "RETURN_CONST",
        "RAISE_VARARGS",
        "RERAISE",
    }
)
_JUMPS: Final = frozenset((*dis.hasjrel, *dis.hasjabs))


class Assignments:
    """The stores to local variables of one function and the ways between its instructions."""

    def __init__(self, code: CodeType) -> None:
        self.parameters: Final = frozenset(code.co_varnames[: _parameter_count(code)])
        hidden = {*code.co_cellvars, *code.co_freevars}
        self.names: Final = tuple(name for name in code.co_varnames if name not in hidden)
        """Names whose stores are all in this function's own code."""
        self._stores: dict[int, frozenset[str]] = {}
        self._before: dict[int, list[int]] = {}
        self._known: dict[tuple[str, int, int | None], frozenset[int]] = {}
        self._read(code)

    def _read(self, code: CodeType) -> None:
        instructions = list(dis.get_instructions(code))
        handlers = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        for index, instruction in enumerate(instructions):
            stored = _stored_names(instruction)
            if stored:
                self._stores[instruction.offset] = stored
            following = [] if instruction.opname in _NO_FALL_THROUGH else [index + 1]
            targets = [instructions[each].offset for each in following if each < len(instructions)]
            if instruction.opcode in _JUMPS:
                targets.append(instruction.argval)
            for entry in handlers:
                if entry.start <= instruction.offset < entry.end:
                    targets.append(entry.target)
            for target in targets:
                self._before.setdefault(target, []).append(instruction.offset)

    def store(self, name: str, offset: int, since: int | None) -> int | None:
        """The one store (or ENTRY) that can have given ``name`` its value at ``offset``.

        With ``since``, the value is known to have been stored after the program last was there.
        None where there are several, or none.
        """
        key = (name, offset, since)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._search(name, offset, since)
        return next(iter(found)) if len(found) == 1 else None

    def _search(self, name: str, offset: int, since: int | None) -> frozenset[int]:
        found: set[int] = set()
        seen: set[int] = set()
        waiting = [offset]
        while waiting:
            current = waiting.pop()
            before = self._before.get(current, ())
            if current == 0 and since is None and name in self.parameters:
                found.add(ENTRY)
            for previous in before:
                if previous in seen:
                    continue
                seen.add(previous)
                if name in self._stores.get(previous, ()):
                    found.add(previous)
                elif previous != since:
                    waiting.append(previous)
        return frozenset(found)


def _parameter_count(code: CodeType) -> int:
    starred = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_argcount + code.co_kwonlyargcount + starred


def _stored_names(instruction: dis.Instruction) -> frozenset[str]:
    name = instruction.opname
    if not name.startswith(("STORE_FAST", "DELETE_FAST")):
        return frozenset()
    if name in ("STORE_FAST_STORE_FAST",):
        return frozenset(instruction.argval)
    if name == "STORE_FAST_LOAD_FAST":
        return frozenset(instruction.argval[:1])
    return frozenset({instruction.argval})
