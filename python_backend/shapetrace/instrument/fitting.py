"""Decides whether code with hooks can replace a function's own, and fills in its constants."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterable

from shapetrace.instrument.hooked_calls import Following
from shapetrace.instrument.nodes import Location


def wanted_by(followings: Iterable[Following]) -> frozenset[str] | None:
    """The names that any of these asks for; None for all."""
    wanted: frozenset[str] | None = frozenset()
    for following in followings:
        names = following.interest.names
        wanted = None if wanted is None or names is None else wanted | names
    return wanted


def first_location(code: types.CodeType) -> Location:
    """The location of the first instruction that belongs to a statement."""
    instructions = dis.get_instructions(code)
    for instruction in instructions:
        if instruction.opname == "RESUME":
            break
    for instruction in instructions:
        positions = instruction.positions
        if positions is not None and positions.lineno is not None:
            return {
                "lineno": positions.lineno,
                "end_lineno": positions.end_lineno,
                "col_offset": positions.col_offset,
                "end_col_offset": positions.end_col_offset,
            }
    line = code.co_firstlineno
    return {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}


def fits(code: types.CodeType, original: types.CodeType) -> bool:
    """Return whether a function can run one code in place of the other."""
    return (
        code.co_freevars == original.co_freevars
        and code.co_cellvars == original.co_cellvars
        and set(code.co_varnames) == set(original.co_varnames)
        and set(code.co_names) == set(original.co_names)
        and code.co_argcount == original.co_argcount
        and code.co_posonlyargcount == original.co_posonlyargcount
        and code.co_kwonlyargcount == original.co_kwonlyargcount
        and code.co_flags == original.co_flags
        and code.co_name == original.co_name
        and code.co_qualname == original.co_qualname
        and code.co_firstlineno == original.co_firstlineno
    )


def with_objects(code: types.CodeType, objects: dict[object, object]) -> types.CodeType:
    """The code with objects in place of the text constants that stand for them."""
    constants = tuple(
        with_objects(each, objects)
        if isinstance(each, types.CodeType)
        else objects.get(each, each)
        if isinstance(each, str)
        else each
        for each in code.co_consts
    )
    return code.replace(co_consts=constants)
