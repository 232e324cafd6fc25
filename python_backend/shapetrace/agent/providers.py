"""pydevd's providers for values: their texts, and the children of opened ones.

These hand over to ``shapetrace.panes``, and to the debugger's own ways where a value is not ours to
show. What they say is imported with torch, or at the first stop: no program waits for it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from shapetrace._asynchronous import is_asynchronous

if TYPE_CHECKING:
    from shapetrace.panes import ChildEntry

Line: TypeAlias = tuple[str, Any, Any]
"""A name, a value, and how to get its expression from that of what it is below."""

_NEVER_HOLDERS: Final = frozenset(
    {int, float, complex, bool, str, bytes, type(None), FunctionType, BuiltinFunctionType}
)
"""The most common types, which hold nothing."""

_REAL: Final = frozenset({"clipboard"})
"""Where the program's own text of a value is asked for."""


class Provider:
    """Something of ours that the debugger asks."""

    is_over = False
    """Whether we have left: the debugger may have cached a provider, which then has no answers."""


class LeafTexts(Provider):
    """Texts of tensors, modules, storages and arrays."""

    def can_provide(self, kind: type, _name: str) -> bool:
        """Requests once for each class."""
        try:
            from shapetrace import panes

            return not self.is_over and panes.is_leaf(kind)
        except Exception as error:
            if is_asynchronous(error):
                raise
            return False

    def get_str(self, value: Any) -> str | None:
        """The text, or None for what the debugger makes of it."""
        try:
            from shapetrace import panes

            return None if self.is_over else panes.presentation(value)
        except Exception as error:
            if is_asynchronous(error):
                raise
            return None

    def get_str_in_context(self, value: Any, context: str) -> str | None:
        """The text for a place where a value is shown."""
        return None if context in _REAL else self.get_str(value)


class HolderTexts(LeafTexts):
    """Texts of what may hold something of ours: nearly all classes, where no other one answers."""

    def can_provide(self, kind: type, _name: str) -> bool:
        """Requests once for each class, also of what came before torch."""
        try:
            if self.is_over or kind in _NEVER_HOLDERS or issubclass(kind, type | ModuleType):
                return False
            # The debugger's own groups of values have texts of their own.
            return not kind.__module__.startswith("_pydevd_bundle.")
        except Exception as error:  # an object may say that its class is none
            if is_asynchronous(error):
                raise
            return False


class ContentsProvider(Provider):
    """The children of a value of ours."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder

    def can_provide(self, kind: type, _name: str) -> bool:
        """Requests once for each class."""
        try:
            from shapetrace import panes

            return not self.is_over and panes.opens(kind)
        except Exception as error:
            if is_asynchronous(error):
                raise
            return False

    def get_contents_debug_adapter_protocol(
        self, value: Any, fmt: dict[str, Any] | None = None
    ) -> list[Line]:
        """The children of a value, in order."""
        # It may say that it is of another class than it is.
        if not self.can_provide(type(value), ""):
            return _usual_lines(value, fmt)
        from shapetrace import panes

        entries = panes.children(value, _usual_entries, self._folder)
        return list(map(_line, entries)) if entries else _usual_lines(value, fmt)

    def get_dictionary(self, value: Any) -> dict[str, Any]:
        """The children by name, for the console."""
        return {line[0]: line[1] for line in self.get_contents_debug_adapter_protocol(value)}

    def resolve(self, value: Any, name: str) -> Any:
        """One of them."""
        return self.get_dictionary(value)[name]


class HolderContents(ContentsProvider):
    """The children of a value that may hold something of ours, if no other provider has any."""

    def can_provide(self, kind: type, _name: str) -> bool:
        """Requests once for each class, also of what came before torch."""
        try:
            from shapetrace import panes

            return not self.is_over and panes.may_open(kind)
        except Exception as error:
            if is_asynchronous(error):
                raise
            return False

    def get_contents_debug_adapter_protocol(
        self, value: Any, fmt: dict[str, Any] | None = None
    ) -> list[Line]:
        """The children of a value; its own attributes if its class refuses to give them."""
        try:
            return super().get_contents_debug_adapter_protocol(value, fmt)
        except Exception as error:
            if is_asynchronous(error):
                raise
            from shapetrace import panes

            return list(map(_line, panes.own_entries(value, error)))


def _line(entry: ChildEntry) -> Line:
    suffix = entry.suffix
    if suffix is None or callable(suffix):
        return entry.name, entry.value, suffix
    return entry.name, entry.value, partial(_expression, suffix=suffix)


def _usual_entries(value: Any) -> list[ChildEntry]:
    """The debugger's own children of a value."""
    from shapetrace.panes import ChildEntry

    return [ChildEntry(*line) for line in _usual_lines(value, None)]


def _usual_lines(value: Any, fmt: dict[str, Any] | None) -> list[Line]:
    resolver = _usual_resolver(value)
    if resolver is None:
        return []
    get: Callable[..., list[Line]] = resolver.get_contents_debug_adapter_protocol
    return get(value, fmt)


def _usual_resolver(value: Any) -> Any:
    """The debugger's own resolver of a value's children."""
    modules: Any = sys.modules
    for kind, resolver in modules[
        "_pydevd_bundle.pydevd_xml"
    ]._TYPE_RESOLVE_HANDLER._default_type_map:
        try:
            if isinstance(value, kind):
                return resolver
        except Exception as error:
            if is_asynchronous(error):
                raise
            break
    return modules["_pydevd_bundle.pydevd_resolver"].defaultResolver


def _expression(parent: str, suffix: str) -> str:
    """An expression for what is below a value that itself has an expression."""
    return f"({parent}){suffix}" if suffix and not _is_primary(parent) else f"{parent}{suffix}"


@lru_cache(maxsize=16)
def _is_primary(expression: str) -> bool:
    """Whether what follows an expression applies to all of it, and not to its last operand."""
    try:
        parsed = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return True  # whatever it is, it is not made better by parentheses
    return isinstance(parsed, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
