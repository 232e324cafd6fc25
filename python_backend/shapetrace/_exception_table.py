"""Functions that catch what is raised at any of their instructions.

A function is entered by an instruction that lets a signal handler run, before any statement of its
own, and some instructions that return lie outside of the try statement that they are written in. So
``try`` alone cannot have a frame take itself out of every traceback.

Since Python 3.12 the compiler also leaves out the instruction with which some loops begin their
next round. Python looks for signals there, so what a handler raises would pass by the ``with`` or
``try`` around the loop: a lock would never be released.

Since Python 3.14 a ``with`` statement begins too late as well: Python looks for signals once more
when ``__enter__`` has returned, and what a handler raises then leaves the context entered for good.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from types import CodeType
from typing import Any, Final, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])
_Entry = tuple[int, int, int, int]
"""First instruction, end, handler; twice the depth of the stack, plus 1 where the place is kept."""

_ENTRY: Final = dis.opmap["RESUME"]
_JUMP_BACK: Final = dis.opmap["JUMP_BACKWARD"]
_LEAVE: Final = dis.opmap["WITH_EXCEPT_START"]
_ENTER: Final = bytes((dis.opmap.get("LOAD_SPECIAL", 0), dis.opmap["CALL"]))
_BLOCKS_BEGIN_LATE: Final = sys.version_info >= (3, 14)

_Rule = Callable[[CodeType], list[_Entry]]
"""Returns the exception table that a code is to have."""

_made: dict[tuple[CodeType, _Rule], CodeType] = {}
"""By what the compiler made; a function that is made again and again has one of both."""


_others: Final[list[CodeType]] = []
_hearing: Final[list[Callable[[CodeType], object]]] = []


def hear_of_codes(hear: Callable[[CodeType], object]) -> None:
    """Call back with each code that was made here, and with those to come."""
    if hear not in _hearing:
        _hearing.append(hear)
        for made in [*_made.values(), *_others]:
            hear(made)


def tell_of_code(code: CodeType) -> None:
    """Tell those who hear of codes of one that was made elsewhere."""
    _others.append(code)
    for hear in _hearing:
        hear(code)


def catching_everywhere(function: _Function) -> _Function:
    """Have the try statement that is a function's whole body cover what compilers leave out.

    That costs nothing where nothing is raised.
    """
    return _with_table(function, _all_covered)


def covering_jumps(function: _Function) -> _Function:
    """Have the try and with statements of a function cover the jumps of the loops in them."""
    return _with_table(function, _jumps_covered)


def leaving_surely(function: _Function) -> _Function:
    """Have the with statements of a function begin where ``__enter__`` is called, and cover jumps.

    ``__exit__`` is called then where ``__enter__`` has raised, too. Torch's contexts in C never do,
    those of ``_locks`` and ``inspecting.guards`` may be left without having been entered, and a
    lock may not.
    """
    return _with_table(function, _blocks_covered)


def _with_table(function: _Function, rule: _Rule) -> _Function:
    made: Any = function
    code: CodeType = made.__code__
    known = _made.get((code, rule))
    if known is None:
        table = b"".join(map(_written, sorted(rule(code))))
        known = _made[code, rule] = code.replace(co_exceptiontable=table)
        for hear in _hearing:
            hear(known)
    made.__code__ = known
    return function


def _all_covered(code: CodeType) -> list[_Entry]:
    entries = _jumps_covered(code)
    handlers = [handler for _, _, handler, depth in entries if depth == 0]
    outermost = max(handlers, default=0)
    # What comes before its entry only makes cells, and Dynamo takes that out.
    covered = code.co_code[::2].index(_ENTRY)
    gaps: list[_Entry] = []
    for first, end, _, _ in sorted(entries):
        if first >= outermost:
            break
        if first > covered:
            gaps.append((covered, first, outermost, 0))
        covered = max(covered, end)
    if covered < outermost:
        gaps.append((covered, outermost, outermost, 0))
    return [*entries, *gaps]


def _jumps_covered(code: CodeType) -> list[_Entry]:
    return [*_read(code.co_exceptiontable), *_jump_entries(code)]


def _blocks_covered(code: CodeType) -> list[_Entry]:
    entries = sorted(_jumps_covered(code))
    if not _BLOCKS_BEGIN_LATE:
        return entries
    instructions = code.co_code[::2]
    for entry in entries.copy():
        first, end, handler, depth = entry
        before = instructions[:first].rstrip(b"\0")  # without the room that a call has for itself
        # A handler's first instruction is the same in all of them.
        if instructions[handler + 1] == _LEAVE and before.endswith(_ENTER):
            begin = len(before) - 1
            entries[entries.index(entry)] = begin, end, handler, depth
            # Of several the first counts, and no longer the one around it.
            entries = [
                (start, begin if start < begin < stop else stop, where, depth)
                for start, stop, where, depth in entries
            ]
    return entries


def _jump_entries(code: CodeType) -> Iterator[_Entry]:
    """Give each jump back that nothing covers the handler of where it leads, in the same loop."""
    entries = list(_read(code.co_exceptiontable))
    starts = [at for at, each in enumerate(code.co_code[::2]) if each == _JUMP_BACK]
    if not any(_handler_at(at, entries) is None for at in starts):
        return
    for jump, following in pairwise(dis.get_instructions(code)):
        # Up to the next instruction: the room that a jump has after it counts as well.
        at, end = jump.offset // 2, following.offset // 2
        if at in starts and _handler_at(at, entries) is None:
            handler = _handler_at(jump.argval // 2, entries)
            if handler is not None:
                yield at, end, *handler


def _handler_at(place: int, entries: Iterable[_Entry]) -> tuple[int, int] | None:
    for first, end, handler, depth in entries:
        if first <= place < end:
            return handler, depth
    return None


def _read(table: bytes) -> Iterator[_Entry]:
    numbers = _numbers(table)
    for first in numbers:
        size, handler, depth = next(numbers), next(numbers), next(numbers)
        yield first, first + size, handler, depth


def _numbers(table: bytes) -> Iterator[int]:
    number = 0
    for byte in table:
        number = number << 6 | byte & 63
        if not byte & 64:
            yield number
            number = 0


def _written(entry: _Entry) -> bytes:
    first, end, handler, depth = entry
    written = b"".join(map(_number, (first, end - first, handler, depth)))
    return bytes([written[0] | 128]) + written[1:]


def _number(number: int) -> bytes:
    parts = [number & 63]
    while number := number >> 6:
        parts.insert(0, number & 63 | 64)
    return bytes(parts)
