"""What a Python that is too old for the agent says of itself, to the real listener."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.python.unit.server_transport.clients import SESSION, run, served
from tests.support import handshakes

PLUGIN = (
    Path(__file__).parents[4]
    / "python_backend/pydevd_plugins/extensions/pydevd_plugin_shapetrace.py"
)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plugin, as debugpy loads it."""
    interface = ModuleType("_pydevd_bundle.pydevd_extension_api")
    interface.DebuggerEventHandler = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "_pydevd_bundle", ModuleType("_pydevd_bundle"))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    found = importlib.util.spec_from_file_location("plugin", PLUGIN)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_it_is_told_to_a_server_that_knows_the_token(plugin: Any) -> None:
    async def scenario() -> None:
        async with served() as case:
            session = {"session": SESSION, "port": case.port, "token": case.token}
            await asyncio.to_thread(plugin._say_unsupported, session)
            await case.until_told_gone()
            told = next(each for each in case.notes.told if isinstance(each, dict))
            assert told["state"] == "unsupported"
            assert "needs Python 3.11" in told["message"]

    run(scenario)


def test_a_stranger_is_told_nothing(plugin: Any) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            session = {"session": SESSION, "port": port, "token": "secret"}
            saying = asyncio.create_task(asyncio.to_thread(plugin._say_unsupported, session))
            connection, _ = await asyncio.to_thread(listening.accept)
            with connection:
                first = await asyncio.to_thread(handshakes.receive, connection)
                assert first == handshakes.connect(SESSION, first["nonce"])
                handshakes.send(connection, handshakes.challenge(first, "guessed", port))
                await saying
                assert connection.recv(1) == b""

    run(scenario)
