"""Starting the agent, once for a process."""

from __future__ import annotations

import os

from shapetrace.agent.agent import Agent
from shapetrace.agent.panes import show_shapes
from shapetrace.transport.session import VARIABLE, read_address

_agent: Agent | None = None


def begin() -> bool:
    """Start the agent for the session that the environment names; whether there is one."""
    global _agent
    if _agent is None:
        address, _ = read_address(os.environ.get(VARIABLE))
        if address is None:
            return False
        _agent = Agent(address)
        _agent.begin()
        show_shapes()
    return True
