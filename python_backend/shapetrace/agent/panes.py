"""Puts what ``shapetrace.panes`` says of values among what debugpy's debugger, pydevd, asks.

pydevd asks providers for the text of a value, and for what is below it when it is opened. It knows
those of its plugins; ours are put among them, before the program runs or at any stop later, and
taken away when we leave.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

from shapetrace._asynchronous import is_asynchronous
from shapetrace.agent.providers import (
    ContentsProvider,
    HolderContents,
    HolderTexts,
    LeafTexts,
    Provider,
)


def show_shapes(folder: str = "") -> Callable[[], None]:
    """Have the debugger ask us, where it is as those we know; returns how to undo it.

    ``folder`` is the one that the editor has open.
    """
    try:
        return _install(folder)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return _nothing


def _install(folder: str) -> Callable[[], None]:
    modules: Any = sys.modules
    manager = modules["_pydevd_bundle.pydevd_extension_utils"].EXTENSION_MANAGER_INSTANCE
    interface = modules["_pydevd_bundle.pydevd_extension_api"]
    # These lists are the debugger's own, whether it has used them yet or not.
    texts = manager.get_extension_classes(interface.StrPresentationProvider)
    contents = manager.get_extension_classes(interface.TypeResolveProvider)
    if any(type(each) is HolderTexts for each in texts):
        return _nothing
    leaves, opened = LeafTexts(), ContentsProvider(folder)
    # What others have a text for is theirs, however much it holds.
    held, within = HolderTexts(), HolderContents()
    restore = _note_changes(modules["_pydevd_bundle.pydevd_vars"])
    texts[:] = [leaves, *texts, held]
    contents[:] = [opened, *contents, within]
    _forget_classes()

    def undo() -> None:
        restore()
        for asked, ours in ((texts, (leaves, held)), (contents, (opened, within))):
            provider: Provider
            for provider in ours:
                provider.is_over = True
                if provider in asked:
                    asked.remove(provider)
        _forget_classes()

    return undo


def _nothing() -> None:
    """Where nothing was done."""


def _forget_classes() -> None:
    """Clear the debugger's caches of providers by class: they are no longer valid."""
    values: Any = sys.modules.get("_pydevd_bundle.pydevd_xml")
    if values is not None:
        values._TYPE_RESOLVE_HANDLER._type_to_str_provider_cache.clear()
        values._TYPE_RESOLVE_HANDLER._type_to_resolver_cache.clear()


def _note_changes(functions: Any) -> Callable[[], None]:
    """Notice where variables of the program are set at a stop: what is there was not assigned."""
    change, evaluate = functions.change_attr_expression, functions.evaluate_expression

    @wraps(change)
    def noted_change(frame: FrameType, *arguments: Any, **keywords: Any) -> Any:
        scope = getattr(keywords.get("scope"), "scope", None)
        _is_changed(frame, is_global=scope == "globals")
        return change(frame, *arguments, **keywords)

    @wraps(evaluate)
    def noted_evaluation(
        debugger: Any, frame: FrameType, expression: str, *arguments: Any, **keywords: Any
    ) -> Any:
        # A statement, or an expression in which a value is named.
        if "=" in expression:
            _is_changed(frame, is_global="global" in expression)
        return evaluate(debugger, frame, expression, *arguments, **keywords)

    functions.change_attr_expression = noted_change
    functions.evaluate_expression = noted_evaluation

    def restore() -> None:
        if functions.change_attr_expression is noted_change:
            functions.change_attr_expression = change
        if functions.evaluate_expression is noted_evaluation:
            functions.evaluate_expression = evaluate

    return restore


def _is_changed(frame: FrameType, is_global: bool) -> None:
    try:
        from shapetrace.recorder.origins import changed_by_hand

        changed_by_hand(frame, is_global=is_global)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return  # only less is known
