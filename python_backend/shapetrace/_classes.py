"""What classes are and are called, without asking them: a metaclass may have other ideas."""

from __future__ import annotations

from typing import Any, Final

_mro_of: Final[Any] = type.__dict__["__mro__"].__get__
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


def classes_of(kind: type) -> tuple[type, ...]:
    """A class and all that it is derived from."""
    classes: tuple[type, ...] = _mro_of(kind)
    return classes


def is_kind(kind: type, of: type | None) -> bool:
    """Whether a class is another one or derived from it."""
    return of is not None and of in _mro_of(kind)
