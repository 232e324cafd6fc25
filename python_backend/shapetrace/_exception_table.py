"""Functions that catch what is raised at any of their instructions.

A function is entered by an instruction that lets a signal handler run, before any statement of its
own, and some instructions that return lie outside of the try statement that they are written in. So
``try`` alone cannot have a frame take itself out of every traceback.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, Final, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])
_Entry = tuple[int, int, int, int]
"""First instruction, end, handler; twice the depth of the stack, plus 1 where the place is kept."""

_ENTRY: Final = dis.opmap["RESUME"]

_made: dict[CodeType, CodeType] = {}
"""By what the compiler made; a function that is made again and again has one of both."""


_hearing: Final[list[Callable[[CodeType], object]]] = []


def hear_of_codes(hear: Callable[[CodeType], object]) -> None:
    """Call back with each code that was made here, and with those to come."""
    if hear not in _hearing:
        _hearing.append(hear)
        for made in list(_made.values()):
            hear(made)


def catching_everywhere(function: _Function) -> _Function:
    """Have the try statement that is a function's whole body cover what compilers leave out.

    That costs nothing where nothing is raised.
    """
    made: Any = function
    code: CodeType = made.__code__
    known = _made.get(code)
    if known is None:
        known = _made[code] = code.replace(co_exceptiontable=_table(code))
        for hear in _hearing:
            hear(known)
    made.__code__ = known
    return function


def _table(code: CodeType) -> bytes:
    entries = list(_read(code.co_exceptiontable))
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
    return b"".join(map(_written, sorted([*entries, *gaps])))


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
