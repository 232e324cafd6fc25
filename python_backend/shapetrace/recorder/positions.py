"""Where in the source an instruction comes from, and which operator it is."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Final, TypeAlias

Position: TypeAlias = tuple[int, int | None, int | None, int | None]
"""Line, end line, column, end column; lines from 1, UTF-8 byte columns from 0."""

_UNARY: Final = {
    "UNARY_NEGATIVE": "-",
    "UNARY_POSITIVE": "+",
    "UNARY_INVERT": "~",
}


class Positions:
    """Reads each function's tables once."""

    def __init__(self) -> None:
        self._positions: dict[int, tuple[CodeType, list[Position]]] = {}
        self._instructions: dict[int, dict[int, tuple[int, dis.Instruction]]] = {}

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

    def _find(self, code: CodeType, offset: int) -> tuple[int, dis.Instruction] | None:
        known = self._instructions.get(id(code))
        if known is None:
            listed = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
            known = self._instructions[id(code)] = {
                each.offset: (index, each) for index, each in enumerate(listed)
            }
        return known.get(offset)
