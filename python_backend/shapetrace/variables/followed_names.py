"""Parses names to follow: ``video``, ``sample['video']``, ``self.cache.k``."""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass
from typing import Final, TypeAlias

from shapetrace._errors import NameSyntaxError

Key: TypeAlias = str | int | float | bool | bytes | None
Step: TypeAlias = tuple[bool, str | Key]
"""One step into a value: whether it is an item and not an attribute, and its name or key."""

_EXAMPLES: Final = 'write it as in the function: "video", "sample[\'video\']" or "self.cache.k"'


@dataclass(frozen=True, slots=True)
class FollowedName:
    """One thing that is followed in a function."""

    text: str
    """As the user wrote it."""
    root: str
    """The variable."""
    steps: tuple[Step, ...] = ()
    """The steps from its value to the followed one."""


def parse_name(text: object) -> FollowedName:
    """Parse a name; raises ``NameSyntaxError`` with the reason."""
    if not isinstance(text, str):
        raise NameSyntaxError(f"{_shown(text)} is no text with a name; {_EXAMPLES}")
    stripped = text.strip()
    if not stripped:
        raise NameSyntaxError(f"an empty name cannot be followed; {_EXAMPLES}")
    try:
        node: ast.expr = ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError):
        raise NameSyntaxError(f"{text!r} is no name of a variable; {_EXAMPLES}") from None
    steps: list[Step] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append((False, node.attr))
            node = node.value
        elif isinstance(node, ast.Subscript):
            steps.append((True, _key(node.slice, text)))
            node = node.value
        else:
            raise NameSyntaxError(
                f"{text!r} has more in it than names, attributes and constant items; {_EXAMPLES}"
            )
    return FollowedName(stripped, node.id, tuple(reversed(steps)))


def _key(node: ast.expr, text: str) -> Key:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    if isinstance(node, ast.Constant):
        value = node.value
        if sign == 1 and (value is None or isinstance(value, (str, int, float, bytes))):
            return value
        if sign == -1 and isinstance(value, (int, float)):
            return -value
    raise NameSyntaxError(f"what is in the brackets of {text!r} is to be a number or a text")


def never_assigned(
    name: FollowedName, known: frozenset[str], function: str, foreign: frozenset[str] = frozenset()
) -> str | None:
    """A line for the user if a function has no such variable, else None."""
    if name.root in known:
        return None
    if name.root in foreign:
        return f"'{name.root}' is global in {function}: only a function's own can be followed"
    text = f"{function} never assigns '{name.root}'"
    near = difflib.get_close_matches(name.root, sorted(known), 1)
    return f"{text}; did you mean '{near[0]}'?" if near else text


def _shown(value: object) -> str:
    return f"a value of class {type(value).__name__}"
