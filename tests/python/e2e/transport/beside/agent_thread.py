"""A small agent for programs of the tests: sends rows from a thread, and the rest at exit.

Imported by the program before anything else, as the real one is.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import Any

from shapetrace.transport.handshake import this_process
from shapetrace.transport.sender import Sender
from shapetrace.transport.session_address import VARIABLE, read_address

rows: list[dict[str, Any]] = []
commands: list[dict[str, Any]] = []
_sent = 0
_is_leaving = False


def say(number: int, size: int = 0) -> None:
    """What a program does when something new happens; it never waits."""
    rows.append({"type": "rows", "number": number, "text": "x" * size})


def _begin_anew() -> None:
    global _sent
    _sent = 0
    if _is_leaving:
        _send_news()


def _send_news() -> None:
    global _sent
    while _sent < len(rows) and sender.offer(rows[_sent]):
        _sent += 1


def _run() -> None:
    while not _is_leaving and not sender.is_over:
        _send_news()
        sender.step(0.02)


def _at_exit() -> None:
    global _is_leaving
    _is_leaving = True
    if os.getpid() == _process_id:
        thread.join()
    while _sent < len(rows) and not sender.is_over and _is_there():
        _send_news()
        sender.step(0.02)
    sender.close(30.0)


def _is_there() -> bool:
    """Whether the server is, or may be as far as is known."""
    return sender.is_connected or not sender.trouble


address, problem = read_address(os.environ.get(VARIABLE))
assert address is not None, problem
_process_id = os.getpid()
sender = Sender(
    address,
    this_process(),
    on_connected=_begin_anew,
    on_command=commands.append,
    most_bytes=4 << 20,
)
os.register_at_fork(after_in_child=sender.after_fork_in_child)
atexit.register(_at_exit)
thread = threading.Thread(target=_run, daemon=True)
thread.start()
