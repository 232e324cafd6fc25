"""A function's instructions as the steps by which values move, alike for all versions of Python.

From 3.13 on one instruction may do two loads or stores, and 3.14 has loads that borrow and a
subscript that is a binary operator: here each is a step of its own, and what moves no value in a
way that matters is one step of another kind. The second of two has an odd offset, where no
instruction begins.
"""

from __future__ import annotations

import dis
import inspect
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import Enum, auto
from types import CodeType
from typing import Any, Final, NamedTuple, TypeAlias

Range: TypeAlias = tuple[int, int, int, int]
"""Line, end line, column, end column."""


class Kind(Enum):
    """What a step does with the values on the interpreter's stack."""

    LOAD = auto()
    """Puts a local variable on top; in a module's own code, where all are global, such a one."""
    STORE = auto()
    """Takes the top away and gives it to a name."""
    DELETE = auto()
    """Unbinds a local variable."""
    SET_ASIDE = auto()
    """Puts a local variable on top and unbinds it: a comprehension has its own of the name."""
    CONSTANT = auto()
    """Puts a constant on top."""
    COPY = auto()
    """Puts the n-th value from the top on top once more."""
    SWAP = auto()
    """Exchanges the top with the n-th value from the top."""
    POP = auto()
    """Takes the top away."""
    ITEM = auto()
    """Replaces a container and a key by the item that is there."""
    UNPACK = auto()
    """Replaces the top by its n items, the first on top."""
    UNPACK_STARRED = auto()
    """`UNPACK` with a starred target: n targets before it, and m after it."""
    READ = auto()
    """Takes the top away, having looked at what is in it."""
    TUPLE = auto()
    """Replaces n values by a tuple of them."""
    JUMP = auto()
    """Goes on elsewhere, whatever the values."""
    TRUTH = auto()
    """Replaces the top by whether it is true."""
    BRANCH = auto()
    """Takes the top away, and may go on elsewhere because of it."""
    RETURN = auto()
    """Returns the top."""
    NOTHING = auto()
    OTHER = auto()
    """Does what is of no interest here, or what depends on the values."""


BINDING: Final = frozenset({Kind.STORE, Kind.DELETE})
"""What changes which value a name stands for."""

_BETWEEN_STORES: Final = frozenset(
    {Kind.COPY, Kind.SWAP, Kind.POP, Kind.UNPACK, Kind.UNPACK_STARRED, Kind.NOTHING}
)
"""What may lie between the stores of one assignment."""


class Step(NamedTuple):
    """One step, with the offset of its instruction, or of the second half of one."""

    kind: Kind
    offset: int
    value: Any = None
    """A name, a number of values, a constant, a test, or where to go on."""


_STEPS: Final = {
    "LOAD_FAST": (Kind.LOAD,),
    "LOAD_FAST_CHECK": (Kind.LOAD,),
    "LOAD_FAST_BORROW": (Kind.LOAD,),
    "LOAD_NAME": (Kind.LOAD,),
    "LOAD_DEREF": (Kind.LOAD,),
    "LOAD_CLOSURE": (Kind.LOAD,),
    "LOAD_FAST_LOAD_FAST": (Kind.LOAD, Kind.LOAD),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": (Kind.LOAD, Kind.LOAD),
    "STORE_FAST": (Kind.STORE,),
    "STORE_NAME": (Kind.STORE,),
    "STORE_GLOBAL": (Kind.STORE,),
    "STORE_DEREF": (Kind.STORE,),
    "STORE_FAST_STORE_FAST": (Kind.STORE, Kind.STORE),
    "STORE_FAST_LOAD_FAST": (Kind.STORE, Kind.LOAD),
    "STORE_FAST_MAYBE_NULL": (Kind.STORE,),
    "DELETE_FAST": (Kind.DELETE,),
    "DELETE_NAME": (Kind.DELETE,),
    "DELETE_DEREF": (Kind.DELETE,),
    "LOAD_FAST_AND_CLEAR": (Kind.SET_ASIDE,),
    "LOAD_CONST": (Kind.CONSTANT,),
    "LOAD_SMALL_INT": (Kind.CONSTANT,),
    "COPY": (Kind.COPY,),
    "SWAP": (Kind.SWAP,),
    "POP_TOP": (Kind.POP,),
    "BINARY_SUBSCR": (Kind.ITEM,),
    "UNPACK_SEQUENCE": (Kind.UNPACK,),
    "UNPACK_EX": (Kind.UNPACK_STARRED,),
    "BUILD_TUPLE": (Kind.TUPLE,),
    "DICT_MERGE": (Kind.READ,),
    "DICT_UPDATE": (Kind.READ,),
    "LIST_EXTEND": (Kind.READ,),
    "SET_UPDATE": (Kind.READ,),
    "CONTAINS_OP": (Kind.READ,),
    "KW_NAMES": (Kind.NOTHING,),
    "JUMP_FORWARD": (Kind.JUMP,),
    "TO_BOOL": (Kind.TRUTH,),
    "RETURN_VALUE": (Kind.RETURN,),
    "RETURN_CONST": (Kind.RETURN,),
    "NOP": (Kind.NOTHING,),
    "NOT_TAKEN": (Kind.NOTHING,),
    "EXTENDED_ARG": (Kind.NOTHING,),
}
_PARTS: Final = frozenset({"CACHE", "CALL"} if "PRECALL" in dis.opmap else {"CACHE"})
"""What only is a part of the instruction before it: in 3.11 calls come in two, and some functions
are called by the first."""
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


_TESTS: Final = {
    "IF_TRUE": (False, True),
    "IF_FALSE": (False, False),
    "IF_NONE": (True, True),
    "IF_NOT_NONE": (True, False),
}
"""The end of a conditional jump's name: whether it asks for None, and on which answer it jumps."""


_COMPREHENSIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})


class Test(NamedTuple):
    """What a branch asks of the top, and where the program goes on when it is so."""

    asks_for_none: bool
    """Whether it asks if the top is None, or else if it is true."""
    jumps_if: bool
    target: int


class Handler(NamedTuple):
    """Where the program goes on when an instruction from ``start`` up to ``end`` fails."""

    start: int
    end: int
    target: int


class Own(NamedTuple):
    """A variable of a comprehension that runs in the frame of the function around it."""

    variable: str
    """What stands for it among the function's variables."""
    name: str
    offset: int
    """Where the function's own variable of this name is set aside for it."""
    range: Range
    """Of the comprehension."""
    is_cell: bool
    """Whether functions in the comprehension have it as well."""


def name_of(variable: str) -> str:
    """The name of a variable, which for that of a comprehension has something behind it."""
    return variable.partition(" ")[0]


def is_comprehension(code: CodeType) -> bool:
    """Whether code is that of a comprehension with a frame of its own, as all have on 3.11."""
    return code.co_name in _COMPREHENSIONS


def is_module(code: CodeType) -> bool:
    """Whether code is that of a module, all of whose variables are global ones."""
    return code.co_name == "<module>" and not code.co_flags & inspect.CO_OPTIMIZED


def second_half(offset: int) -> int:
    """The offset of the second of the two steps that an instruction does."""
    return offset + 1


def is_second_half(offset: int) -> bool:
    """Whether an offset is that of the second step of an instruction."""
    return offset % 2 == 1


class Listing:
    """A function's instructions in order, and the ways between them."""

    def __init__(self, code: CodeType) -> None:
        instructions = [each for each in dis.get_instructions(code) if each.opname not in _PARTS]
        self.offsets: Final[list[int]] = []
        self.steps: Final[list[Step]] = []
        self.following: Final[dict[int, tuple[int, ...]]] = {}
        """Where the program can go on after an instruction that did not fail."""
        self.joins: Final[set[int]] = set()
        """Instructions that are reached from elsewhere than the one before them."""
        self._first_steps: Final[list[int]] = []
        """The index of each instruction's first step."""
        # In Python since 3.11, and left out of its types.
        entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        self.handlers: Final = [Handler(each.start, each.end, each.target) for each in entries]
        self.joins.update(handler.target for handler in self.handlers)
        for index, instruction in enumerate(instructions):
            offset = instruction.offset
            steps = list(_steps_of(instruction))
            for half in dict.fromkeys(step.offset for step in steps):
                if half != offset:
                    self.following[offset] = (half,)
                offset = half
                self.offsets.append(half)
                self._first_steps.append(len(self.steps))
                self.steps.extend(step for step in steps if step.offset == half)
            following = []
            if instruction.opname not in _NO_FALL_THROUGH and index + 1 < len(instructions):
                following.append(instructions[index + 1].offset)
            if instruction.opcode in _JUMPS:
                following.append(instruction.argval)
                self.joins.add(instruction.argval)
            self.following[offset] = tuple(following)
        self.own: Final = _rename_own_variables(self.steps, instructions)
        """The variables of comprehensions that run in this function's frame."""
        self.binding: Final = frozenset(each.offset for each in self.steps if each.kind in BINDING)
        """Instructions that store to a name or delete it."""
        self._drop_overwritten()

    def _drop_overwritten(self) -> None:
        """Have no store that another one to the same name follows at once: ``_, _ = value``.

        From 3.12 on the compiler does so itself.
        """
        soon: set[str] = set()
        for index in range(len(self.steps) - 1, -1, -1):
            step = self.steps[index]
            if step.kind is Kind.STORE and step.value in soon:
                self.steps[index] = Step(Kind.POP, step.offset)
            elif step.kind is Kind.STORE:
                soon.add(step.value)
            elif step.kind not in _BETWEEN_STORES:
                soon.clear()
            if step.offset in self.joins:
                soon.clear()

    def before(self, offset: int | None) -> int:
        """The offset of the instruction before the one at ``offset``; of the last one for None."""
        return self.offsets[-1 if offset is None else bisect_left(self.offsets, offset) - 1]

    def first_step(self, offset: int) -> int:
        """The index of the first step of the instruction at an offset."""
        return self._first_steps[bisect_left(self.offsets, offset)]

    def first_step_after(self, offset: int) -> int:
        """The index of the first step behind the instruction that an offset lies in."""
        index = bisect_right(self.offsets, offset)
        return self._first_steps[index] if index < len(self.offsets) else len(self.steps)


def _steps_of(instruction: dis.Instruction) -> Iterator[Step]:
    offset, value = instruction.offset, instruction.argval
    kinds = _STEPS.get(instruction.opname, (Kind.OTHER,))
    if len(kinds) == 2:
        yield Step(kinds[0], offset, value[0])
        yield Step(kinds[1], second_half(offset), value[1])
    elif instruction.opname == "BINARY_OP" and instruction.argrepr == "[]":
        yield Step(Kind.ITEM, offset)
    elif kinds[0] is Kind.UNPACK_STARRED:
        yield Step(Kind.UNPACK_STARRED, offset, divmod(instruction.arg or 0, 256)[::-1])
    elif kinds[0] in (Kind.COPY, Kind.SWAP, Kind.UNPACK, Kind.TUPLE):
        yield Step(kinds[0], offset, instruction.arg or 0)
    elif instruction.opname.startswith("POP_JUMP"):
        test = instruction.opname[instruction.opname.index("IF_") :]
        yield Step(Kind.BRANCH, offset, Test(*_TESTS[test], value))
    elif instruction.opname == "RETURN_CONST":
        yield Step(Kind.CONSTANT, offset, value)
        yield Step(Kind.RETURN, offset)
    else:
        yield Step(kinds[0], offset, value)


def _rename_own_variables(
    steps: list[Step], instructions: list[dis.Instruction]
) -> tuple[Own, ...]:
    """Tell the variables of comprehensions in a function's frame from its own of the same names.

    A comprehension uses what lies within its range. What it has set aside it puts back by stores
    that have all of its range.
    """
    aside = [step for step in steps if step.kind is Kind.SET_ASIDE]
    if not aside:
        return ()
    ranges = {each.offset: range_of(each.positions) for each in instructions}
    making = (each for each in instructions if each.opname == "MAKE_CELL")
    cells = {(each.argval, range_of(each.positions)) for each in making}
    found = []
    for step in aside:
        place = ranges[step.offset]
        if place is not None:
            variable = f"{step.value} {step.offset}"
            found.append(
                Own(variable, step.value, step.offset, place, (step.value, place) in cells)
            )
    by_name: dict[str, list[Own]] = {}
    for own in found:
        by_name.setdefault(own.name, []).insert(0, own)  # the innermost is the last that begins
    for index, step in enumerate(steps):
        place = ranges[step.offset & ~1]
        if type(step.value) is not str or place is None:
            continue
        for own in by_name.get(step.value, ()):
            if step.kind is Kind.SET_ASIDE and step.offset == own.offset:
                steps[index] = Step(Kind.SET_ASIDE, step.offset, own.variable)
            elif step.offset <= own.offset or not is_within(place, own.range):
                continue
            elif step.kind is Kind.STORE and place == own.range:
                steps[index] = Step(Kind.POP, step.offset)
            elif step.kind in (Kind.LOAD, Kind.STORE, Kind.DELETE):
                steps[index] = Step(step.kind, step.offset, own.variable)
            else:
                continue
            break
    return tuple(found)


def range_of(position: Any) -> Range | None:
    """A position as a range, where it is known to the column."""
    match position:
        case (int(line), int(end_line), int(column), int(end_column)):
            return (line, end_line, column, end_column)
    return None


def is_within(inner: Range, outer: Range) -> bool:
    """Whether a range lies in another one, or is the same."""
    begins = (outer[0], outer[2]) <= (inner[0], inner[2])
    return begins and (inner[1], inner[3]) <= (outer[1], outer[3])
