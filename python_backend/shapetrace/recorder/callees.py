"""Whether the value of a call's expression is what one torch call within it returned.

``sum(tensors)``, ``functools.reduce(torch.mul, tensors)`` or ``list(map(layer, inputs))`` make
their torch calls from C, so those calls run at the instruction of an expression whose value is
another one.
Which function an instruction calls is read from the bytecode by name: the callee is the longest
expression that begins where the call begins.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Final

_BUILTINS: Final = frozenset(
    {
        "abs",
        "all",
        "any",
        "bin",
        "bool",
        "bytes",
        "chr",
        "complex",
        "dict",
        "divmod",
        "enumerate",
        "filter",
        "float",
        "frozenset",
        "hex",
        "int",
        "iter",
        "len",
        "list",
        "map",
        "max",
        "min",
        "next",
        "oct",
        "pow",
        "print",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "slice",
        "sorted",
        "str",
        "sum",
        "tuple",
        "zip",
    }
)
_LIBRARY: Final = frozenset(
    {
        "accumulate",
        "batched",
        "chain",
        "combinations",
        "compress",
        "dropwhile",
        "filterfalse",
        "groupby",
        "nlargest",
        "nsmallest",
        "pairwise",
        "partial",
        "permutations",
        "product",
        "reduce",
        "repeat",
        "starmap",
        "takewhile",
        "tee",
    }
)
_LIBRARIES: Final = frozenset({"functools", "heapq", "itertools"})
_METHODS: Final = frozenset({"count", "extend", "index", "join", "remove", "sort", "update"})

_GLOBAL_LOADS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTE_LOADS: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_CALLS: Final = ("CALL", "PRECALL")
"""On 3.11 a call that was made often enough may run at the instruction before it."""
_VALUES: Final = (
    "BINARY_",
    "COMPARE_OP",
    "UNARY_",
    "LOAD_ATTR",
    "LOAD_METHOD",
    "STORE_SUBSCR",
    "STORE_SLICE",
    "DELETE_SUBSCR",
    "BEFORE_WITH",
)
"""Instructions at which a torch call may be what the expression stands for."""
_CONSTANTS: Final = ("LOAD_CONST", "LOAD_SMALL_INT")
_NO_PARTS: Final = frozenset({"CACHE", "PUSH_NULL"})
"""What stands where an expression does that is another instruction's."""
_TRUTH_TESTS: Final = ("POP_JUMP", "JUMP_IF", "UNARY_NOT", "TO_BOOL")


class Callees:
    """Reads each function's instructions once."""

    def __init__(self) -> None:
        self._read: dict[int, dict[int, tuple[int, dis.Instruction]]] = {}
        self._inlined: dict[int, list[dis.Positions | None]] = {}
        """Where calls of ``all`` and the like stand that call nothing, as from 3.14 on."""
        self._listed: dict[int, tuple[CodeType, list[dis.Instruction]]] = {}

    def calls_back(self, code: CodeType, offset: int, function_name: str) -> bool:
        """Whether the instruction runs something from which ``function_name`` was called."""
        found = self._find(code, offset)
        if found is None:
            return False
        index, instruction = found
        name = instruction.opname
        if name.startswith(_TRUTH_TESTS):
            return instruction.positions in self._inlined[id(code)]
        if name == "CONTAINS_OP":
            return function_name != "__contains__"
        if not name.startswith((*_CALLS, *_VALUES)):
            return True  # a loop or an unpacking: it has another value or none
        if not name.startswith(_CALLS):
            return False
        callee = self._callee(self._listed[id(code)][1], index)
        return callee is not None and function_name not in (callee, f"__{callee}__")

    def compares_and_asks(self, code: CodeType, offset: int) -> bool:
        """Whether an instruction compares, and then asks whether what that gave is true."""
        found = self._find(code, offset)
        if found is None or found[1].opname != "COMPARE_OP":
            return False
        return found[1].argrepr.startswith("bool(")

    def begins_with_constant(self, code: CodeType, offset: int) -> bool:
        """Whether the left operand of the operator at an instruction is a constant."""
        found = self._find(code, offset)
        if found is None:
            return False
        listed = self._listed[id(code)][1]
        first = self._first_part(listed, found[0])
        return first is not None and listed[first].opname in _CONSTANTS

    def _first_part(self, listed: list[dis.Instruction], index: int) -> int | None:
        """The instruction of the longest expression that begins where this one begins."""
        call = listed[index].positions
        if call is None:
            return None
        best: int | None = None
        best_end = (0, 0)
        for candidate in range(index - 1, -1, -1):
            place = listed[candidate].positions
            if place is None or place.end_lineno is None or place.end_col_offset is None:
                continue
            if (place.lineno or 0, place.col_offset or 0) < (
                call.lineno or 0,
                call.col_offset or 0,
            ):
                break  # of a statement before, or of what the expression is a part of
            if (place.lineno, place.col_offset) != (call.lineno, call.col_offset):
                continue
            end = (place.end_lineno, place.end_col_offset)
            if end > best_end and end < (call.end_lineno or 0, call.end_col_offset or 0):
                best, best_end = candidate, end
        return best

    def _callee(self, listed: list[dis.Instruction], index: int) -> str | None:
        """The name of the function that is called, where it is one that calls back."""
        best = self._first_part(listed, index)
        if best is None:
            return None
        instruction = listed[best]
        name = str(instruction.argval)
        if instruction.opname in _GLOBAL_LOADS:
            return name if name in _BUILTINS or name in _LIBRARY else None
        if instruction.opname in _ATTRIBUTE_LOADS:
            if name in _METHODS:
                return name
            base = listed[best - 1]
            of_library = base.opname in _GLOBAL_LOADS and base.argval in _LIBRARIES
            return name if of_library and name in _LIBRARY else None
        return None

    def _find(self, code: CodeType, offset: int) -> tuple[int, dis.Instruction] | None:
        known = self._read.get(id(code))
        if known is None:
            listed = [each for each in dis.get_instructions(code) if each.opname not in _NO_PARTS]
            self._listed[id(code)] = (code, listed)
            self._inlined[id(code)] = [
                each.positions for each in listed if each.opname == "LOAD_COMMON_CONSTANT"
            ]
            known = self._read[id(code)] = {
                each.offset: (index, each) for index, each in enumerate(listed)
            }
        return known.get(offset)
