"""Which names a value goes to straight away, wherever on the interpreter's stack it lies till then.

``a = b = value``, ``(p, q), r = value``, ``first, *_ = value``, ``p, q = other, value``,
``z = value[0]`` and ``(z := value)`` are followed, and ``z = value if condition else other``. What
is given to a call, or what a branch asks about, is not, nor anything behind a step that may fail.
"""

from __future__ import annotations

from collections.abc import Container
from types import CodeType
from typing import NamedTuple, TypeAlias

from shapetrace.recorder.steps import Kind, Listing, Step, name_of


class Item(NamedTuple):
    """Which item of a value is meant."""

    number: int
    among: int | None
    """How many items there must be, where the value is unpacked; None where one is picked."""


Path: TypeAlias = tuple[Item, ...]
"""The way from a value to an item of an item of it; empty for the value itself."""

Stack: TypeAlias = "list[Path | int | None]"
"""The top of the interpreter's stack: paths into the value, integers, and None for all else."""


class Target(NamedTuple):
    """A name that gets a value, or an item of it."""

    name: str
    offset: int
    """Of the instruction that stores it."""
    path: Path


class Targets:
    """Reads each function's instructions once."""

    def __init__(self) -> None:
        self._listings: dict[int, tuple[CodeType, Listing]] = {}

    def of(self, code: CodeType, offset: int) -> list[Target]:
        """The names that the value of the call at an offset is stored to."""
        known = self._listings.get(id(code))
        if known is None:
            known = self._listings[id(code)] = (code, Listing(code))
        listing = known[1]
        found = follow(listing, listing.first_step_after(offset))
        return [each._replace(name=name_of(each.name)) for each in found]


def follow(listing: Listing, index: int, stop_at: Container[int] = ()) -> list[Target]:
    """The names that the value is stored to that is on top of the stack at the step at ``index``.

    It is not followed into the instructions in ``stop_at``.
    """
    targets: list[Target] = []
    stack: Stack = [()]
    while index < len(listing.steps) and any(isinstance(each, tuple) for each in stack):
        step = listing.steps[index]
        if step.offset in stop_at:
            break
        if step.kind is Kind.STORE:
            path = _pop(stack)
            if isinstance(path, tuple):
                targets.append(Target(step.value, step.offset, path))
        elif not _move(stack, step):
            break
        index = listing.first_step(step.value) if step.kind is Kind.JUMP else index + 1
    return targets


def _move(stack: Stack, step: Step) -> bool:
    """Do to the stack what a step does; False where that is not known, or may fail."""
    value = step.value
    match step.kind:
        case Kind.LOAD:
            stack.append(None)
        case Kind.CONSTANT:
            stack.append(value if type(value) is int else None)
        case Kind.COPY:
            _deepen(stack, value)
            stack.append(stack[-value])
        case Kind.SWAP:
            _deepen(stack, value)
            stack[-1], stack[-value] = stack[-value], stack[-1]
        case Kind.POP:
            _pop(stack)
        case Kind.ITEM:
            index, whole = _pop(stack), _pop(stack)
            if not isinstance(whole, tuple) or not isinstance(index, int):
                return False
            stack.append((*whole, Item(index, None)))
        case Kind.UNPACK | Kind.UNPACK_STARRED:
            whole = _pop(stack)
            if not isinstance(whole, tuple):
                return False
            items = _items(value) if step.kind is Kind.UNPACK else _items_around_star(*value)
            stack.extend(None if item is None else (*whole, item) for item in reversed(items))
        case Kind.NOTHING | Kind.DELETE | Kind.JUMP:
            pass
        case _:
            return False
    return True


def _items(count: int) -> list[Item | None]:
    return [Item(index, count) for index in range(count)]


def _items_around_star(before: int, after: int) -> list[Item | None]:
    first = [Item(index, None) for index in range(before)]
    last = [Item(index, None) for index in range(-after, 0)]
    return [*first, None, *last]


def _pop(stack: Stack) -> Path | int | None:
    return stack.pop() if stack else None


def _deepen(stack: Stack, count: int) -> None:
    """Have at least ``count`` values on the stack: there are others below those that are known."""
    stack[:0] = [None] * (count - len(stack))
