"""Where in the source an instruction comes from, and which operator it is."""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import Final, TypeAlias

from shapetrace.recorder.bindings import Bindings
from shapetrace.recorder.steps import is_second_half, is_within, range_of

Position: TypeAlias = tuple[int, int | None, int | None, int | None]
"""Line, end line, column, end column; lines from 1, UTF-8 byte columns from 0."""

_UNARY: Final = {
    "UNARY_NEGATIVE": "-",
    "UNARY_POSITIVE": "+",
    "UNARY_INVERT": "~",
}


_ITERATORS: Final = frozenset({"GET_ITER", "GET_AITER"})
_NEXTS: Final = frozenset({"FOR_ITER", "GET_ANEXT"})
_LOOPS: Final = _ITERATORS | _NEXTS
_ITERATING: Final = (
    frozenset(dis.opmap[name] for name in ("GET_ITER", "GET_AITER", "FOR_ITER"))
    if sys.version_info < (3, 13)
    else frozenset()
)
"""What tells where a whole loop stands."""
_ENTERING: Final = (
    frozenset(dis.opmap[name] for name in ("BEFORE_WITH", "BEFORE_ASYNC_WITH"))
    if sys.version_info < (3, 13)
    else frozenset()
)
_INLINING: Final = frozenset(
    code for name, code in dis.opmap.items() if name == "LOAD_COMMON_CONSTANT"
)
_OWN_FUNCTIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


_ASKING: Final = (
    frozenset(code for name, code in dis.opmap.items() if "JUMP" in name and "_IF_" in name)
    if sys.version_info < (3, 12)
    else frozenset()
)
"""What may tell where all of the statement, or another part of its condition, stands."""
_BETWEEN: Final = frozenset(
    code for name, code in dis.opmap.items() if name == "EXTENDED_ARG" or name.startswith("STORE_")
)


class Positions:
    """Reads each function's tables once."""

    def __init__(self) -> None:
        self._positions: dict[int, tuple[CodeType, list[Position], bytes]] = {}
        self._instructions: dict[int, dict[int, tuple[int, dis.Instruction]]] = {}
        self._with_patterns: set[int] = set()
        self._withs: dict[int, frozenset[Position]] = {}
        """By the identity of code the statements with context managers, until 3.13."""
        self._inlined: dict[tuple[int, Position], Position] = {}
        """From 3.14 on the calls of ``all`` and the like that call nothing, by where these names
        stand, which is where what they do is said to be."""
        self._stores: dict[tuple[int, int, str], Position] = {}
        self._bindings = Bindings()

    def at(self, code: CodeType, offset: int) -> Position:
        """The source range of the instruction at an offset."""
        known = self._positions.get(id(code))
        if known is None:
            rows = [
                (line or code.co_firstlineno, end_line, column, end_column)
                for line, end_line, column, end_column in code.co_positions()
            ]
            known = self._positions[id(code)] = (code, rows, code.co_code)
            self._read_special(code, rows)
        index = offset // 2
        if not 0 <= index < len(known[1]):
            return (code.co_firstlineno, None, None, None)
        if known[2][2 * index] in _ITERATING:
            return self._iterated(code, 2 * index, known[1][index])
        position = known[1][index]
        if known[2][2 * index] in _ASKING and index:
            return self._asked(code, position, known[1][_before(known[2], index)])
        if position in self._withs.get(id(code), ()):
            return self._managed(code, 2 * index, position)
        return self._inlined.get((id(code), position), position)

    def _read_special(self, code: CodeType, rows: list[Position]) -> None:
        """Note the places that a version of Python has for something else."""
        raw = code.co_code
        entered = [rows[at // 2] for at in range(0, len(raw), 2) if raw[at] in _ENTERING]
        if entered:
            self._withs[id(code)] = frozenset(entered)
        for at in range(0, len(raw), 2):
            if raw[at] in _INLINING:
                place = rows[at // 2]
                calls = (each for each in rows if each[::2] == place[::2] and each > place)
                self._inlined[id(code), place] = min(calls, default=place)

    def _managed(self, code: CodeType, offset: int, position: Position) -> Position:
        """Where the context manager stands that is entered or left."""
        place = range_of(position)
        self._find(code, 0)
        alike = [
            each.opname
            for _, each in self._instructions[id(code)].values()
            if each.offset <= offset and each.positions == position
        ]
        if place is None or "WITH_EXCEPT_START" in alike:
            return position
        number = sum(name.startswith("BEFORE_") for name in alike) - max(alike.count("CALL"), 1)
        return self._bindings.part_of(code, place, number) or position

    def _asked(self, code: CodeType, position: Position, before: Position) -> Position:
        """Where what is asked about stands: it came from the instruction before."""
        around, place = range_of(position), range_of(before)
        if around is None or place is None:
            return position
        is_condition = self._bindings.part_of(code, around, 0) is not None
        return before if is_condition or not is_within(place, around) else position

    def _iterated(self, code: CodeType, offset: int, position: Position) -> Position:
        """Where what is iterated over stands, or the call that iterates over its argument."""
        place = range_of(position)
        found = self._find(code, offset)
        if place is None or found is None:
            return position
        kinds = _ITERATORS if found[1].opname in _ITERATORS else _NEXTS
        loops = [each for _, each in self._instructions[id(code)].values() if each.opname in _LOOPS]
        before = (each for each in loops if each.offset < offset and each.opname in kinds)
        number = sum(each.positions == found[1].positions for each in before)
        # The first iterator of a function of its own is made by the function around it.
        is_own = code.co_name in _OWN_FUNCTIONS and loops[0].positions == found[1].positions
        number += is_own and kinds is _ITERATORS
        return self._bindings.part_of(code, place, number) or position

    def of_store(self, code: CodeType, offset: int, name: str) -> Position:
        """Where a name stands that an instruction stores to, or the second half of one."""
        key = (id(code), offset, name)
        known = self._stores.get(key)
        if known is None:
            known = self._stores[key] = self._find_store(code, offset, name)
        return known

    def _find_store(self, code: CodeType, offset: int, name: str) -> Position:
        position = self.at(code, offset)
        place = range_of(position)
        if place is None:
            return position
        line, end_line, column, end_column = place
        is_name = line == end_line and end_column - column == len(name.encode())
        if is_name and not is_second_half(offset) and not self._has_patterns(code):
            return position
        found = self._bindings.range_of(code, name, place)
        return found or ((line, None, None, None) if is_second_half(offset) else position)

    def _has_patterns(self, code: CodeType) -> bool:
        """Whether names of a function may be captured by a ``case``, whose place is another one."""
        self._find(code, 0)
        return id(code) in self._with_patterns

    def operator(self, code: CodeType, offset: int, function_name: str) -> str | None:
        """The operator an instruction stands for: ``@``, ``+=``, ``-``, ``<``; None for a call.

        A comparison may ask whether its result is true, which is no part of the operator.
        """
        found = self._find(code, offset)
        if found is None or function_name == "__bool__":
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
            if any(each.opname.startswith("MATCH_") for each in listed) or _have_one_place(listed):
                self._with_patterns.add(id(code))
        return known.get(offset)


def _have_one_place(instructions: list[dis.Instruction]) -> bool:
    """Whether there are stores to several names at one place, as 3.11 has it of patterns."""
    if sys.version_info >= (3, 12):
        return False
    stores = {(each.argval, each.positions) for each in instructions if "STORE_" in each.opname}
    return len({place for _, place in stores}) < len(stores)


def _before(raw: bytes, index: int) -> int:
    """The instruction that put there what a jump asks about; ``:=`` stores it in between."""
    index -= 1
    while index and raw[2 * index] in _BETWEEN:
        index -= 1
    return index
