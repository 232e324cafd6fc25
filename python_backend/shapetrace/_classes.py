"""What classes are and are called, without asking them: a metaclass may have other ideas."""

from __future__ import annotations

import sys
from typing import Any, Final

_mro_of: Final[Any] = type.__dict__["__mro__"].__get__
_name_of: Final[Any] = type.__dict__["__name__"].__get__
_qualified_name_of: Final[Any] = type.__dict__["__qualname__"].__get__


def name_of(kind: type) -> str:
    """The name that a class was defined by."""
    name: str = _name_of(kind)
    return name


def qualified_name_of(kind: type) -> str:
    """The name with the classes and functions around it."""
    name: str = _qualified_name_of(kind)
    return name


def classes_of(kind: type) -> tuple[type, ...]:
    """A class and all that it is derived from."""
    classes: tuple[type, ...] = _mro_of(kind)
    return classes


def in_classes(classes: tuple[type, ...], name: str) -> Any:
    """The attribute of the first class that has the name; None if none has it."""
    for each in classes:
        if name in each.__dict__:
            return each.__dict__[name]
    return None


def is_kind(kind: type, of: type | None) -> bool:
    """Return whether a class is another one or derived from it."""
    return of is not None and of in _mro_of(kind)


def distributed_tensor() -> Any:
    """The class of distributed tensors; None if its module is not imported, so that there are none.

    Before torch 2.5 it is in a module of another name, and the first may be there without it.
    """
    for name in ("torch.distributed.tensor", "torch.distributed._tensor"):
        kind = getattr(sys.modules.get(name), "DTensor", None)
        if kind is not None:
            return kind
    return None
