"""Hands what ``shapetrace.panes`` says of values to debugpy's debugger, pydevd.

pydevd asks providers for the text of a value, and for what is below it when it is opened. It knows
those of its plugins; ours are put among them, before the program runs or at any stop later. What
they say is imported with torch, or at the first stop: no program waits for it.
"""

from __future__ import annotations

import ast
import sys
from functools import lru_cache, partial, wraps
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any, Final

_NEVER_HOLDERS: Final = frozenset(
    {int, float, complex, bool, str, bytes, type(None), FunctionType, BuiltinFunctionType}
)
"""What is most common and holds nothing."""

_REAL: Final = frozenset({"clipboard"})
"""Where the program's own text of a value is asked for."""


_folder: str | None = None


def set_folder(folder: str | None) -> None:
    """Say what the editor takes paths to begin in that begin with ``./``."""
    global _folder
    _folder = folder


class LeafTexts:
    """Texts of what is ours by itself: tensors, modules, storages, arrays."""

    def can_provide(self, kind: type, _name: str) -> bool:
        """Asked once for each class."""
        try:
            from shapetrace import panes

            return panes.is_leaf(kind)
        except Exception:
            return False

    def get_str(self, value: Any) -> str | None:
        """The text, or None for what the debugger makes of it."""
        try:
            from shapetrace import panes

            return panes.presentation(value)
        except Exception:
            return None

    def get_str_in_context(self, value: Any, context: str) -> str | None:
        """The text for a place where a value is shown."""
        return None if context in _REAL else self.get_str(value)


class HolderTexts(LeafTexts):
    """Texts of what may hold something of ours: nearly all classes, where no other one answers."""

    def can_provide(self, kind: type, _name: str) -> bool:
        """Asked once for each class, also of what came before torch."""
        try:
            if kind in _NEVER_HOLDERS or issubclass(kind, type | ModuleType):
                return False
            # The debugger's own groups of values have texts of their own.
            return not kind.__module__.startswith("_pydevd_bundle.")
        except Exception:  # an object may say that its class is none
            return False


class Contents:
    """What is below a value of ours."""

    def can_provide(self, kind: type, _name: str) -> bool:
        """Asked once for each class."""
        try:
            from shapetrace import panes

            return panes.opens(kind)
        except Exception:
            return False

    def get_contents_debug_adapter_protocol(
        self, value: Any, fmt: dict[str, Any] | None = None
    ) -> list[tuple[str, Any, Any]]:
        """Names, values and how to get their expressions from that of the value."""
        if not self.can_provide(type(value), ""):
            # It says that it is of another class than it is.
            usual: Any = sys.modules["_pydevd_bundle.pydevd_resolver"]
            found: list[tuple[str, Any, Any]]
            found = usual.defaultResolver.get_contents_debug_adapter_protocol(value, fmt)
            return found
        from shapetrace import panes

        return [
            (name, item, None if suffix is None else partial(_expression, suffix=suffix))
            for name, item, suffix in panes.children(value, _folder)
        ]

    def get_dictionary(self, value: Any) -> dict[str, Any]:
        """The same for the console."""
        return {entry[0]: entry[1] for entry in self.get_contents_debug_adapter_protocol(value)}

    def resolve(self, value: Any, name: str) -> Any:
        """One of them."""
        return self.get_dictionary(value)[name]


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


def show_shapes() -> bool:
    """Have the debugger ask us, from now on; False where it is not as those we know."""
    try:
        _install()
    except Exception:
        return False
    return True


def _install() -> None:
    modules: Any = sys.modules
    manager = modules["_pydevd_bundle.pydevd_extension_utils"].EXTENSION_MANAGER_INSTANCE
    interface = modules["_pydevd_bundle.pydevd_extension_api"]
    # These lists are the debugger's own, whether it has used them yet or not.
    texts = manager.get_extension_classes(interface.StrPresentationProvider)
    contents = manager.get_extension_classes(interface.TypeResolveProvider)
    if any(type(each) is HolderTexts for each in texts):
        return
    texts.insert(0, LeafTexts())
    # What others have a text for is theirs, however much it holds.
    texts.append(HolderTexts())
    contents.insert(0, Contents())
    values = modules.get("_pydevd_bundle.pydevd_xml")
    if values is not None:
        # It has been told already of which classes there is nothing to say.
        values._TYPE_RESOLVE_HANDLER._type_to_str_provider_cache.clear()
        values._TYPE_RESOLVE_HANDLER._type_to_resolver_cache.clear()
    _note_changes(modules["_pydevd_bundle.pydevd_vars"])


def _note_changes(functions: Any) -> None:
    """Notice where variables of the program are set at a stop: what is there was not assigned."""
    change, evaluate = functions.change_attr_expression, functions.evaluate_expression

    @wraps(change)
    def noted_change(frame: FrameType, *arguments: Any, **keywords: Any) -> Any:
        _is_changed(frame)
        return change(frame, *arguments, **keywords)

    @wraps(evaluate)
    def noted_evaluation(
        debugger: Any, frame: FrameType, expression: str, *arguments: Any, **keywords: Any
    ) -> Any:
        # A statement, or an expression in which a value is named.
        if "=" in expression:
            _is_changed(frame)
        return evaluate(debugger, frame, expression, *arguments, **keywords)

    functions.change_attr_expression = noted_change
    functions.evaluate_expression = noted_evaluation


def _is_changed(frame: FrameType) -> None:
    try:
        from shapetrace.panes.origin import changed_by_hand

        changed_by_hand(frame)
    except Exception:
        return  # only less is known
