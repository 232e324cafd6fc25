"""A real language client at the other end of a real server process.

The client runs in an event loop of its own, in a thread, so that tests can say one thing after the
other. Positions and columns are the protocol's: from 0, in UTF-16.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from shapetrace.recorder.session import Recorder
from shapetrace.server.sync import plain_converter
from shapetrace.transport.framing import Decoder, Message, decode, encode
from shapetrace.transport.handshake import this_process
from tests.support import handshakes
from tests.support.rows import rows_of

BACKEND = Path(__file__).resolve().parents[2] / "python_backend"

PATIENCE = 20.0
"""Seconds after which a condition that has not come true is a failure."""

Answer = TypeVar("Answer")

CAPABILITIES = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
        code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
    ),
    text_document=types.TextDocumentClientCapabilities(
        hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
    ),
)


class Client:
    """One editor with one server."""

    def __init__(
        self,
        storage: Path,
        settings: Mapping[str, Any] | None = None,
        captures: Sequence[str] = (),
    ) -> None:
        self.storage = storage
        self.captures = captures
        self.settings = settings
        self.refreshes: list[tuple[float, str]] = []
        """When the server asked to be asked again, and for what."""
        self.statuses: list[dict[str, Any]] = []
        self.pins: list[dict[str, Any] | None] = []
        """The pins, one after the other."""
        self.lost_pins: list[str] = []
        """The pins that were lost: runs had nothing of them."""
        self.tree_changes = 0
        self.capture_problems: list[dict[str, Any]] = []
        self.messages: list[str] = []
        self.at_end: list[Callable[[], None]] = []
        """Called when the server has ended."""
        self.initialized: types.InitializeResult
        self._client = LanguageClient("tests", "1", converter_factory=plain_converter)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._changed = threading.Condition()
        self._versions: dict[str, int] = {}

    # Beginning and end

    def start(self, *arguments: str, encodings: list[str] | None = None) -> None:
        """Start the server process and shake hands."""
        self._listen()
        self._thread.start()
        environment = {**os.environ, "PYTHONPATH": str(BACKEND)}
        command = [sys.executable, "-m", "shapetrace.server", "--stdio", *arguments]
        self._run(self._client.start_io(*command, env=environment))
        general = types.GeneralClientCapabilities(position_encodings=encodings)
        self.initialized = self._run(
            self._client.initialize_async(
                types.InitializeParams(
                    capabilities=types.ClientCapabilities(
                        workspace=CAPABILITIES.workspace,
                        text_document=CAPABILITIES.text_document,
                        general=general if encodings else None,
                    ),
                    process_id=os.getpid(),
                    root_uri=None,
                    initialization_options={
                        "storage": str(self.storage),
                        "settings": self.settings,
                        "captures": list(self.captures),
                    },
                )
            )
        )
        self._call(self._client.initialized, types.InitializedParams())

    def stop(self) -> int | None:
        """End the server as an editor does; returns how it ended."""
        self._run(self._client.shutdown_async(None))
        self._call(self._client.exit, None)
        process = self._client._server
        assert process is not None
        code = self._run(process.wait())
        self._end()
        return code

    def kill(self) -> None:
        """End the server as a crash does."""
        process = self._client._server
        assert process is not None
        process.kill()
        self._run(process.wait())
        self._end()

    def _end(self) -> None:
        for call in self.at_end:
            call()
        self._run(self._client.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    # Documents

    def open(self, path: Path, text: str | None = None) -> str:
        """Open a file, with its own text unless another is given."""
        return self.open_uri(path.as_uri(), path.read_text("utf-8") if text is None else text)

    def open_uri(self, uri: str, text: str) -> str:
        """Open a document."""
        self._versions[uri] = 1
        item = types.TextDocumentItem(uri, "python", 1, text)
        self._call(self._client.text_document_did_open, types.DidOpenTextDocumentParams(item))
        return uri

    def edit(self, uri: str, *edits: tuple[tuple[int, int], tuple[int, int], str]) -> None:
        """Put texts in the place of ranges, one after the other."""
        self._versions[uri] += 1
        changes: list[types.TextDocumentContentChangeEvent] = [
            types.TextDocumentContentChangePartial(
                types.Range(types.Position(*start), types.Position(*end)), text
            )
            for start, end, text in edits
        ]
        identifier = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        params = types.DidChangeTextDocumentParams(identifier, changes)
        self._call(self._client.text_document_did_change, params)

    def close(self, uri: str) -> None:
        """Close a document."""
        params = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        self._call(self._client.text_document_did_close, params)

    # Requests

    def hints(self, uri: str, first: int = 0, last: int = 100_000) -> list[types.InlayHint]:
        """The inlay hints on some lines."""
        lines = types.Range(types.Position(first, 0), types.Position(last, 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), lines)
        found = self._run(self._client.text_document_inlay_hint_async(params))
        return list(found or ())

    def places(self, uri: str) -> list[tuple[int, int, str]]:
        """The inlay hints of a document as line, column and text."""
        return [
            (hint.position.line, hint.position.character, str(hint.label))
            for hint in self.hints(uri)
        ]

    def tooltip(self, hint: types.InlayHint) -> str:
        """The tooltip of a hint."""
        resolved = self._run(self._client.inlay_hint_resolve_async(hint))
        tooltip = resolved.tooltip
        return tooltip.value if isinstance(tooltip, types.MarkupContent) else tooltip or ""

    def hover(self, uri: str, line: int, column: int) -> types.Hover | None:
        """The tooltip of a position."""
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, column))
        return self._run(self._client.text_document_hover_async(params))

    def lenses(self, uri: str) -> list[tuple[int, str]]:
        """The code lenses of a document as line and text."""
        params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        lenses = self._run(self._client.text_document_code_lens_async(params)) or []
        return [(each.range.start.line, each.command.title) for each in lenses if each.command]

    def request(self, method: str, params: Any) -> Any:
        """One of our own requests; an error is raised."""
        return self.begin_request(method, params).result(PATIENCE)

    def begin_request(self, method: str, params: Any) -> Future[Any]:
        """One of our own requests, whose answer is not waited for."""

        async def asked() -> Any:
            return await self._client.protocol.send_request_async(method, params)

        return asyncio.run_coroutine_threadsafe(asked(), self._loop)

    def notify(self, method: str, params: Any) -> None:
        """One of our own notifications."""
        self._call(self._client.protocol.notify, method, params)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Change the settings."""
        params = types.DidChangeConfigurationParams({"shapetrace": dict(settings)})
        self._call(self._client.workspace_did_change_configuration, params)

    # Waiting

    def wait(self, condition: Callable[[], Answer]) -> Answer:
        """Wait until something is true, and return it. It is tried whenever the server speaks."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with self._changed:
                heard = self._heard()
            answer = condition()
            if answer:
                return answer
            left = deadline - time.monotonic()
            assert left > 0, f"still not so after {PATIENCE} seconds, but {answer}"
            with self._changed:
                if self._heard() == heard:
                    self._changed.wait(min(left, 0.1))

    def _heard(self) -> int:
        told = len(self.refreshes) + len(self.statuses) + len(self.capture_problems)
        return told + len(self.pins) + self.tree_changes

    def _listen(self) -> None:
        client = self._client

        @client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
        def hint_refresh(params: Any) -> None:
            self._note(self.refreshes, (time.monotonic(), "hints"))

        @client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
        def lens_refresh(params: Any) -> None:
            self._note(self.refreshes, (time.monotonic(), "lenses"))

        @client.feature("shapetrace/status")
        def status(params: dict[str, Any]) -> None:
            self._note(self.statuses, params)

        @client.feature("shapetrace/pinChanged")
        def pin_changed(params: dict[str, Any]) -> None:
            if params["lost"] is not None:
                self.lost_pins.append(params["lost"])
            self._note(self.pins, params["pin"])

        @client.feature("shapetrace/captureProblem")
        def capture_problem(params: dict[str, Any]) -> None:
            self._note(self.capture_problems, params)

        @client.feature("shapetrace/traceChanged")
        def trace_changed(params: dict[str, Any]) -> None:
            with self._changed:
                self.tree_changes += 1
                self._changed.notify_all()

        @client.feature(types.WINDOW_SHOW_MESSAGE)
        def message(params: types.ShowMessageParams) -> None:
            self._note(self.messages, params.message)

    def _note(self, notes: list[Any], note: Any) -> None:
        with self._changed:
            notes.append(note)
            self._changed.notify_all()

    def _run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def _call(self, function: Callable[..., Any], *given: Any) -> None:
        async def called() -> None:
            function(*given)

        asyncio.run_coroutine_threadsafe(called(), self._loop).result(PATIENCE)


@contextmanager
def running(
    storage: Path, settings: Mapping[str, Any] | None = None, captures: Sequence[str] = ()
) -> Iterator[Client]:
    """A client with a server that is ended in any case."""
    client = Client(storage, settings, captures)
    client.start()
    try:
        yield client
    except BaseException:
        client.kill()
        raise
    assert client.stop() == 0


class FakeAgent:
    """Sends what a real recorder writes, over a real socket, but from the test's own process."""

    def __init__(
        self,
        client: Client,
        session: str = "session-1",
        process: int | None = None,
        again: Mapping[str, Any] | None = None,
    ) -> None:
        params = {"session": session, "name": "program.py", "mode": "debug", **(again or {})}
        self.opened: dict[str, Any] = client.request("shapetrace/openSession", params)
        """The port and the token; those of a session that was open before are given ``again``."""
        described = this_process(["program.py"])
        self.process = described.pid if process is None else process
        self._decoder = Decoder()
        self._socket = socket.create_connection(("127.0.0.1", self.opened["port"]), PATIENCE)
        client.at_end.append(self.close)
        about = replace(described, pid=self.process)
        handshakes.join(self._socket, session, self.opened["token"], about)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        self._socket.sendall(encode(dict(message)))

    def send_all(self, recorder: Recorder) -> None:
        """Send everything that a recorder has seen."""
        for message in rows_of(recorder):
            self.send(message)

    def receive(self) -> Message:
        """The next message of the server."""
        while (payload := self._decoder.take()) is None:
            data = self._socket.recv(65536)
            assert data, "the server has closed the connection"
            self._decoder.feed(data)
        return decode(payload)

    def close(self) -> None:
        """Go."""
        self._socket.close()
