"""Loaded by debugpy in the program's process, before the program: hands over to Shapetrace's agent.

A Python that the agent cannot run on has to be able to read this file, to say so.
"""

import json
import os
import socket
import struct
import sys

from _pydevd_bundle.pydevd_extension_api import DebuggerEventHandler

OLDEST = (3, 11)

# In child processes debugpy warns of all modules called pydev... whose file is not one of its own.
__file__ = None


class ShapetraceAgent(DebuggerEventHandler):
    """Begins to watch the program, where a debug session asks for it."""

    def on_debugger_modules_loaded(self, **_kwargs):
        """Called once debugpy is complete, and nothing of the program has run."""
        session = os.environ.get("SHAPETRACE_SESSION")
        if not session:
            return
        try:
            if sys.version_info[:2] < OLDEST:
                _say_unsupported(json.loads(session))
            else:
                from shapetrace.agent.bootstrap import begin

                begin()
        except Exception:
            # The program is to run as without us. That nothing was heard is told by the editor.
            if os.environ.get("SHAPETRACE_DEBUG"):
                sys.excepthook(*sys.exc_info())


def _say_unsupported(session):
    # Any Python has to be able to read and run this.
    python = ".".join(map(str, sys.version_info[:3]))
    oldest = ".".join(map(str, OLDEST))
    process = {
        "pid": os.getpid(),
        "parent": 0,
        "python": python,
        "executable": sys.executable or "",
        "argv": [],
        "rank": None,
        "worldSize": None,
        "implementation": "cpython",
    }
    hello = {
        "type": "hello",
        "protocol": 1,
        "token": session["token"],
        "session": session["session"],
        "process": process,
    }
    status = {
        "type": "status",
        "state": "unsupported",
        "message": "Shapetrace needs Python " + oldest + " or newer; this is " + python,
        "torch": None,
        "passes": 0,
        "calls": 0,
        "dropped": 0,
    }
    connection = socket.create_connection(("127.0.0.1", session["port"]), timeout=2)
    try:
        for message in (hello, status):
            payload = json.dumps(message).encode("ascii")
            connection.sendall(struct.pack(">I", len(payload)) + payload)
        connection.recv(4096)  # the welcome: closing before it was read would take back the rest
    finally:
        connection.close()
