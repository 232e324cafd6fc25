"""What classes are called, without asking them: a metaclass may have other ideas of that."""

from __future__ import annotations

from typing import Any, Final

_name_of: Final[Any] = type.__dict__["__name__"].__get__
_qualified_name_of: Final[Any] = type.__dict__["__qualname__"].__get__


def name_of(kind: type) -> str:
    """The name that a class was defined by."""
    name: str = _name_of(kind)
    return name


def qualified_name_of(kind: type) -> str:
    """The same with the classes and functions around it."""
    name: str = _qualified_name_of(kind)
    return name
