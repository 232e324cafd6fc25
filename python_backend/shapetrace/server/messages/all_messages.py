"""All messages between the extension and the server."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from shapetrace.server.messages import (
    calls,
    captures,
    comparison,
    focus,
    sessions,
    settings,
    tree,
    watches,
)
from shapetrace.server.messages.declarations import (
    ClientNotification,
    Declaration,
    Request,
    ServerNotification,
)

MODULES: Final[tuple[ModuleType, ...]] = (
    *(settings, sessions, tree, calls, focus, captures, watches, comparison),
)


def messages() -> dict[str, Declaration]:
    """All messages by the names of their constants."""
    return {name: message for module in MODULES for name, message in messages_of(module).items()}


def messages_of(module: ModuleType) -> dict[str, Declaration]:
    """The messages that a module declares, by the names of their constants."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Request | ClientNotification | ServerNotification)
    }
