"""Looking at values at a stop."""

from __future__ import annotations

from typing import Any

from tests.support.debug_client import DebugSession, Stop


def stopped(session: DebugSession, mark: str = "stop") -> Stop:
    session.break_at(mark)
    session.go()
    stop = session.stop()
    session.clear_breakpoints()
    return stop


def below(session: DebugSession, reference: int, *names: str) -> dict[str, dict[str, Any]]:
    """What opening an entry shows, and then the entries of these names in turn."""
    found = {each["name"]: each for each in session.children(reference)}
    for name in names:
        found = {each["name"]: each for each in session.children(found[name]["variablesReference"])}
    return found
