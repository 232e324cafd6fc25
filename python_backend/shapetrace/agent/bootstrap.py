"""Starting the agent, once for a process: at its beginning, when attached to, and after a fork."""

from __future__ import annotations

import os
import time

from shapetrace.agent.agent import Agent
from shapetrace.agent.hiding import unseen
from shapetrace.process.forks import watch_forks
from shapetrace.process.start_time import process_began_at
from shapetrace.transport.session_address import VARIABLE, read_address

_agent: Agent | None = None
_follows_forks = False


def begin() -> bool:
    """Start the agent for the session that the environment names; whether there is one."""
    if _agent is None:
        address, _ = read_address(os.environ.get(VARIABLE))
        if address is None:
            return False
        _start(Agent(address, "launch", time.time()))
    return True


def enter(session: str) -> None:
    """Start the agent in a program that runs already, unless it is there for this session.

    One of a former session, whose debugger has left, makes room for it.
    """
    address, problem = read_address(session)
    if address is None:
        raise ValueError(problem)
    if _agent is not None and not _agent.is_over:
        if _agent.address == address:
            return
        _agent.leave()
    _start(Agent(address, "attach", process_began_at()))


def _start(agent: Agent) -> None:
    global _agent, _follows_forks
    _agent = agent
    if not _follows_forks:
        # Once for all, as it cannot be undone.
        _follows_forks = True
        # Unseen: tracing it would take longer than what it does.
        watch_forks(unseen(_after_fork_in_child))
    agent.begin()


def _after_fork_in_child(can_begin: bool) -> None:
    global _agent
    if _agent is None:
        return
    try:
        former, _agent = _agent, None
        agent = former.after_fork_in_child()
        if agent is not None and can_begin:
            _start(agent)
    except Exception:
        # The child is to run as without us.
        if os.environ.get("SHAPETRACE_DEBUG"):
            raise
