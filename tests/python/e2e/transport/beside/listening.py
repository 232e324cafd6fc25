"""A language server that only listens: says what it is told, a line of JSON for each thing.

Arguments: the journal's folder, and port and token to come back with.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from shapetrace.server.listener import AgentListener, ProcessKey
from shapetrace.server.message_journal import Journal
from shapetrace.transport.messages import Hello


def tell(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Handler:
    def hello(self, process: ProcessKey, hello: Hello) -> None:
        tell(hello=process.pid)

    def message(self, process: ProcessKey, message: dict[str, Any]) -> None:
        tell(row=message["number"], of=process.pid, size=len(message["text"]))

    def gone(self, process: ProcessKey, reason: str) -> None:
        tell(gone=process.pid, reason=reason)


async def main(storage: str, port: str = "", token: str = "") -> None:
    listener = AgentListener(Handler(), Journal(Path(storage)))
    opened = await listener.open_session(
        "5f1c36a2-0001", "Python: train", "debug", token or None, int(port) if port else None
    )
    tell(port=opened[0], token=opened[1])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        for process in listener.processes("5f1c36a2-0001"):
            listener.send(process, {"type": line.strip()})
    await listener.stop()


asyncio.run(main(*sys.argv[1:]))
