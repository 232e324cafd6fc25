"""Where in the source an instruction comes from, and where its value goes."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Final, TypeAlias

Position: TypeAlias = tuple[int, int | None, int | None, int | None]
"""Line, end line, column, end column; lines from 1, UTF-8 byte columns from 0."""

Target: TypeAlias = tuple[str, int, tuple[int, ...]]
"""A name, the instruction that stores it, and which item of the value it gets."""

_UNARY: Final = {
    "UNARY_NEGATIVE": "-",
    "UNARY_POSITIVE": "+",
    "UNARY_INVERT": "~",
}
_STORES: Final = frozenset({"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"})


class Positions:
    """Reads each function's tables once."""

    def __init__(self) -> None:
        self._positions: dict[int, tuple[CodeType, list[Position]]] = {}
        self._instructions: dict[int, dict[int, tuple[int, dis.Instruction]]] = {}
        self._listed: dict[int, list[dis.Instruction]] = {}

    def at(self, code: CodeType, offset: int) -> Position:
        """The source range of the instruction at an offset."""
        known = self._positions.get(id(code))
        if known is None:
            rows = [
                (line or code.co_firstlineno, end_line, column, end_column)
                for line, end_line, column, end_column in code.co_positions()
            ]
            known = self._positions[id(code)] = (code, rows)
        index = offset // 2
        if 0 <= index < len(known[1]):
            return known[1][index]
        return (code.co_firstlineno, None, None, None)

    def operator(self, code: CodeType, offset: int) -> str | None:
        """The operator an instruction stands for: ``@``, ``+=``, ``-``, ``<``; None for a call."""
        found = self._find(code, offset)
        if found is None:
            return None
        instruction = found[1]
        if instruction.opname == "BINARY_OP":
            return None if "[" in instruction.argrepr else instruction.argrepr or None
        if instruction.opname == "COMPARE_OP":
            return str(instruction.argval)
        if instruction.opname == "CALL_INTRINSIC_1" and "POSITIVE" in instruction.argrepr:
            return "+"
        return _UNARY.get(instruction.opname)

    def targets(self, code: CodeType, offset: int) -> list[Target]:
        """The names that the value of the call at an offset is stored to straight away."""
        found = self._find(code, offset)
        if found is None:
            return []
        listed = self._listed[id(code)]
        targets: list[Target] = []
        self._store(listed, found[0] + 1, (), targets)
        return targets

    def _store(
        self, listed: list[dis.Instruction], index: int, path: tuple[int, ...], into: list[Target]
    ) -> int:
        """Follow the stores of one value from an instruction on; returns the one after them."""
        if index >= len(listed):
            return index
        instruction = listed[index]
        name = instruction.opname
        if name in ("COPY", "SWAP", "NOP") and not path:
            if name == "COPY" and instruction.arg == 1:
                # ``a = b = value`` and ``(a := value)``: stored here, and used again after.
                after = self._store(listed, index + 1, path, into)
                if (
                    after > index + 1 and listed[after].opname in _STORES
                    if after < len(listed)
                    else False
                ):
                    return self._store(listed, after, path, into)
                return after
            return index
        if name in _STORES:
            into.append((str(instruction.argval), instruction.offset, path))
            return index + 1
        if name == "UNPACK_SEQUENCE":
            index += 1
            for item in range(instruction.arg or 0):
                before = index
                index = self._store(listed, index, (*path, item), into)
                if index == before:
                    return index  # stored to an attribute or an item: what follows is not ours
            return index
        if name == "STORE_FAST_STORE_FAST" and path:
            return index
        if name == "STORE_FAST_LOAD_FAST":
            into.append((str(instruction.argval[0]), instruction.offset, path))
            return index + 1
        return index

    def _find(self, code: CodeType, offset: int) -> tuple[int, dis.Instruction] | None:
        known = self._instructions.get(id(code))
        if known is None:
            listed = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
            self._listed[id(code)] = listed
            known = self._instructions[id(code)] = {
                each.offset: (index, each) for index, each in enumerate(listed)
            }
        return known.get(offset)
