"""What is to be watched, as it is written on a command line or chosen in an editor.

video,mask                    in whatever function assigns them, and at module level
transform:video               in the functions of this name
Dataset.transform:video       in this method
<module>:video                at module level only
sample["video"], self.cache.k what is in a variable, where the source mentions it
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from shapetrace._errors import WatchError

_OPENING: Final = "([{"
_CLOSING: Final = ")]}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One variable, or something in one."""

    name: str
    """As the user wrote it, without the function: ``video``, ``sample["video"]``."""
    function: str | None = None
    """Where alone it is to be watched."""

    @property
    def root(self) -> str:
        """The variable that it is, or is in."""
        return _root_of(_parsed(self.name))

    @property
    def is_variable(self) -> bool:
        """Whether it is a variable, and not what is in one."""
        return self.name.isidentifier()

    @property
    def text(self) -> str:
        """What stands for it on a command line."""
        return self.name if self.function is None else f"{self.function}:{self.name}"

    def is_in(self, function: str, module: str) -> bool:
        """Whether it is to be watched in a function of this qualified name."""
        if self.function is None:
            return True
        plain = function.replace(".<locals>", "")
        return f".{module}.{plain}".endswith(f".{self.function.replace('.<locals>', '')}")

    def is_mentioned(self, node: ast.AST) -> bool:
        """Whether the source has it in this form; a variable need not be asked for."""
        wanted = _shape(_parsed(self.name))
        return any(
            _shape(each) == wanted
            for each in ast.walk(node)
            if isinstance(each, ast.Attribute | ast.Subscript)
        )


def wanted_from(texts: Sequence[str]) -> tuple[Wanted, ...]:
    """All that is asked for, each once."""
    found = [_one(part) for text in texts for part in _parts(text)]
    if not found:
        raise WatchError("name what to watch: video, transform:video or sample['video']")
    return tuple(dict.fromkeys(found))


def _one(text: str) -> Wanted:
    function, name = _split(text)
    try:
        expression = _parsed(name)
        _root_of(expression)
    except (SyntaxError, ValueError):
        raise WatchError(
            f"cannot watch {text!r}: it is no variable, such as video, nor what is in one, "
            "such as self.cache.k or sample['video']"
        ) from None
    if function is not None and not _is_function(function):
        raise WatchError(
            f"cannot watch {text!r}: before the colon there is a function, such as "
            "transform or Dataset.transform, or <module>"
        )
    return Wanted(name, function)


def _is_function(text: str) -> bool:
    plain = text.replace("<locals>.", "")
    return text == "<module>" or all(part.isidentifier() for part in plain.split("."))


def _split(text: str) -> tuple[str | None, str]:
    for place, character in _outside(text):
        if character == ":":
            return text[:place].strip(), text[place + 1 :].strip()
    return None, text


def _parts(text: str) -> list[str]:
    """What is between the commas, but for those in brackets and quotes."""
    places = [place for place, character in _outside(text) if character == ","]
    starts = [0, *(place + 1 for place in places)]
    parts = (text[start:end] for start, end in zip(starts, [*places, len(text)], strict=True))
    return [part.strip() for part in parts if part.strip()]


def _outside(text: str) -> Iterator[tuple[int, str]]:
    """The characters that are in no brackets and quotes."""
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


def _parsed(name: str) -> ast.expr:
    return ast.parse(name, mode="eval").body


def _root_of(expression: ast.expr) -> str:
    """The variable that an expression looks into; ValueError where it does anything else."""
    match expression:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner):
            return _root_of(inner)
        case ast.Subscript(value=inner, slice=key):
            ast.literal_eval(key)
            return _root_of(inner)
    raise ValueError("not a variable")


def _shape(expression: ast.expr) -> str:
    """What is the same for all ways of writing it, be it read or stored to."""
    return (
        ast.dump(expression).replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")
    )
