"""Loaded by debugpy in the program's process, before the program: hands over to Shapetrace's agent.

A Python that the agent cannot run on has to be able to read this file, to say so.
"""

import binascii
import json
import os
import socket
import struct
import sys
import time

from _pydevd_bundle.pydevd_extension_api import DebuggerEventHandler

OLDEST = (3, 11)
PROTOCOL = 5
SECONDS = 2.0
LONGEST_ANSWER = 4096

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
    status = {
        "type": "status",
        "state": "unsupported",
        "message": "Shapetrace needs Python " + oldest + " or newer; this is " + python,
        "torch": None,
        "passes": 0,
        "calls": 0,
        "dropped": 0,
    }
    name, port = session["session"], session["port"]
    until = time.time() + SECONDS
    connection = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
    try:
        nonce = binascii.hexlify(os.urandom(32)).decode("ascii")
        connect = {"type": "connect", "protocol": PROTOCOL, "session": name, "nonce": nonce}
        _send(connection, connect)
        challenge = _receive(connection, until)
        about = (PROTOCOL, port, nonce, challenge["nonce"], name)
        # Whoever has taken the port is told nothing of the program.
        if _is_same(_proof(session, "server", about), challenge["proof"]):
            hello = {"type": "hello", "session": name, "process": process}
            hello["proof"] = _proof(session, "agent", about)
            _send(connection, hello)
            _send(connection, status)
            # The welcome: closing before it was read would take back the rest.
            _receive(connection, until)
    finally:
        connection.close()


def _proof(session, side, about):
    # Not at the top: a Python that the agent runs on is not to load OpenSSL for it.
    import hashlib
    import hmac

    said = "\n".join(map(str, ("shapetrace " + side, *about)))
    key = session["token"].encode("utf-8")
    return hmac.new(key, said.encode("utf-8"), hashlib.sha256).hexdigest()


def _is_same(one, other):
    import hmac

    return hmac.compare_digest(one, other)


def _send(connection, message):
    payload = json.dumps(message).encode("ascii")
    connection.sendall(struct.pack(">I", len(payload)) + payload)


def _receive(connection, until):
    length = struct.unpack(">I", _read(connection, 4, until))[0]
    if length > LONGEST_ANSWER:
        raise ValueError("a frame of " + str(length) + " bytes is too long")
    return json.loads(_read(connection, length, until).decode("utf-8"))


def _read(connection, length, until):
    data = b""
    while len(data) < length:
        connection.settimeout(max(until - time.time(), 0.001))
        more = connection.recv(length - len(data))
        if not more:
            raise EOFError("the language server has closed the connection")
        data += more
    return data
