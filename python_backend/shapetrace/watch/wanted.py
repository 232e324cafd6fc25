"""Parses the names to watch, as written on a command line or chosen in an editor.

video,mask                    in whatever function assigns them, and at module level
transform:video               in the functions of this name
Dataset.transform:video       in this method
<module>:video                at module level only
sample["video"], self.cache.k what is in a variable, where the source mentions it
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from shapetrace._errors import NameSyntaxError
from shapetrace.variables.followed_names import FollowedName, parse_name

_OPENING: Final = "([{"
_CLOSING: Final = ")]}"

MODULE: Final = "<module>"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One variable, or a part of one."""

    name: FollowedName
    function: str | None = None
    """The only function to watch it in, if given."""

    @property
    def root(self) -> str:
        """The variable itself, or the one it is a part of."""
        return self.name.root

    @property
    def is_variable(self) -> bool:
        """Whether it is a variable, and not a part of one."""
        return not self.name.steps

    @property
    def text(self) -> str:
        """Its form on a command line."""
        name = self.name.text
        return name if self.function is None else f"{self.function}:{name}"

    def is_in(self, function: str, module: str) -> bool:
        """Return whether it is watched in a function of this qualified name."""
        if self.function is None:
            return True
        whole = f".{module}.{function}".replace(".<locals>", "")
        return whole.endswith(f".{self.function.replace('.<locals>', '')}")

    def is_mentioned(self, node: ast.AST) -> bool:
        """Return whether the source contains the expression; plain variables need no check."""
        wanted = _shape(ast.parse(self.name.text, mode="eval").body)
        return any(
            _shape(each) == wanted
            for each in ast.walk(node)
            if isinstance(each, ast.Attribute | ast.Subscript)
        )


def wanted_from(texts: Iterable[str]) -> tuple[Wanted, ...]:
    """Parse all names, each once; raises ``NameSyntaxError`` with the reason."""
    found = [wanted_of(part) for text in texts for part in _parts(text)]
    if not found:
        raise NameSyntaxError("name what to watch: video, transform:video or \"sample['video']\"")
    return tuple(dict.fromkeys(found))


def wanted_of(text: str) -> Wanted:
    """Parse one name."""
    function, name = _split(text)
    if function is not None and not _is_function(function):
        raise NameSyntaxError(
            f"cannot watch {text!r}: before the colon there is a function, such as "
            "transform or Dataset.transform, or <module>"
        )
    return Wanted(parse_name(name), function)


def _is_function(text: str) -> bool:
    parts = text.replace("<locals>.", "").split(".")
    return text == MODULE or all(part.isidentifier() for part in parts)


def _split(text: str) -> tuple[str | None, str]:
    for place, character in _outside(text):
        if character == ":":
            return text[:place].strip(), text[place + 1 :].strip()
    return None, text


def _parts(text: str) -> list[str]:
    """Split at commas that are outside of brackets and quotes."""
    places = [place for place, character in _outside(text) if character == ","]
    starts = [0, *(place + 1 for place in places)]
    parts = (text[start:end] for start, end in zip(starts, [*places, len(text)], strict=True))
    return [part.strip() for part in parts if part.strip()]


def _outside(text: str) -> Iterator[tuple[int, str]]:
    """The characters outside of brackets and quotes."""
    depth, quote = 0, ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif depth == 0:
            yield place, character


def _shape(expression: ast.expr) -> str:
    """A normal form of an expression, the same for reading and storing."""
    text = ast.dump(expression)
    return text.replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")
