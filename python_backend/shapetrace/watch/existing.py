"""Follows functions that already exist, from their next call on."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator

from shapetrace._errors import CannotFollowError
from shapetrace.instrument import Following, follow, own_code
from shapetrace.instrument.interface import Interest, Listener
from shapetrace.instrument.module_rewriting import Choice, Choose, nested_definitions
from shapetrace.instrument.source import source_of


def functions_in(is_users: Callable[[str, str], bool]) -> Iterator[types.FunctionType]:
    """All existing functions of the user's modules and files."""
    for each in gc.get_objects():
        if type(each) is types.FunctionType:
            try:
                module = str(each.__globals__.get("__name__", ""))
                if is_users(module, each.__code__.co_filename):
                    yield each
            except ReferenceError:
                continue


def follow_existing(
    function: types.FunctionType, roots: frozenset[str], choose: Choose
) -> tuple[list[tuple[Listener, Following]], str | None]:
    """Follow the chosen ones of a function and its nested functions; return the problems."""
    code = own_code(function)
    if not roots & variables_in(code):
        return [], None
    found: list[tuple[Listener, Following]] = []
    problem: str | None = None
    try:
        definition = source_of(function, code).definition
    except CannotFollowError as error:
        return [], str(error)
    for way, name, node, own in nested_definitions(definition, function.__qualname__, code):
        choice: Choice = choose(name, node, own)
        for interest, listener in choice:
            nested = Interest(interest.names, interest.returns, way)
            try:
                found.append((listener, follow(function, nested, listener)))
            except CannotFollowError as error:
                problem = str(error)
    return found, problem


def variables_in(code: types.CodeType) -> set[str]:
    """The local variables of a function and of nested functions."""
    found = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= variables_in(constant)
    return found
