"""The server as the editor sees it: which request is answered by what."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer

from shapetrace._errors import ShapetraceError
from shapetrace.server import garbage
from shapetrace.server.capture_requests import CaptureRequests
from shapetrace.server.documents import Documents
from shapetrace.server.export import export
from shapetrace.server.features.code_lens import code_lenses
from shapetrace.server.features.hover import hover, statement_story
from shapetrace.server.features.inlay_hints import Hint, inlay_hints
from shapetrace.server.features.inline_values import inline_values
from shapetrace.server.features.watched_hints import watched_story
from shapetrace.server.handling import JsonHandler, handles
from shapetrace.server.listener import AgentListener
from shapetrace.server.message_journal import Journal
from shapetrace.server.messages import (
    calls,
    captures,
    comparison,
    document_places,
    focus,
    sessions,
    tree,
    watches,
)
from shapetrace.server.messages.codec import MessageError, structure, unstructure
from shapetrace.server.messages.declarations import Empty, Params, ServerNotification
from shapetrace.server.messages.settings import Initialization, Options, read_options
from shapetrace.server.navigation import Navigation
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.ranges import SourceRange
from shapetrace.server.refresh import Reminder, Throttle
from shapetrace.server.sessions import Sessions
from shapetrace.server.stop_focus import StopFocus
from shapetrace.server.store import TraceStore
from shapetrace.server.sync import SyncProtocol, plain_converter
from shapetrace.server.view import DocumentView
from shapetrace.server.watch_requests import WatchRequests
from shapetrace.transport.framing import Message
from shapetrace.transport.messages import Cancel, Wake, write

VERSION: Final = 1
"""The server's version as reported to the editor. Server and extension are packaged together."""

HINT_INTERVAL = 0.1
"""Seconds between two refreshes of hints."""

ANSWER_WINDOW = 5.0
"""Seconds in which the editor has certainly processed the hints that it received."""

REMINDER_PAUSE = 1.0
"""Seconds until the refresh is repeated if the editor may have missed it."""

LENS_INTERVAL = 0.5
"""Seconds between refreshes of code lenses: they show counts and so change all the time."""

TREE_INTERVAL = 1.0
"""Seconds between refreshes of the trace tree: the editor requests all expanded nodes again."""

TREE_MOMENT = 0.2
"""Seconds in which a new run has most often got beyond the making of its model."""

_log = logging.getLogger(__name__)


class App:
    """Everything that lives as long as the server."""

    def __init__(self, server: LanguageServer, documents: Documents) -> None:
        self.documents = documents
        self.options = Options()
        self.are_hints_visible = True
        self.store = TraceStore()
        self.sessions = Sessions(
            self.store,
            partial(self._tell, sessions.STATUS),
            partial(self._tell, captures.CAPTURE_PROBLEM),
            partial(self._tell, watches.WATCH_PROBLEM),
        )
        self.journal: Journal | None = None
        self._server = server
        self._listener: AgentListener | None = None
        self._capabilities = types.WorkspaceClientCapabilities()
        self._reminder = Reminder(self._refresh_hints, ANSWER_WINDOW, REMINDER_PAUSE)
        self._hints = Throttle(self._reminder.call, HINT_INTERVAL)
        self._lenses = Throttle(self._refresh_lenses, LENS_INTERVAL)
        self._tasks: set[asyncio.Task[None]] = set()
        self.scopes = PinAndFocus(self.store)
        self.capturing = CaptureRequests(
            self.store, documents, self.scopes, self.view, self._request_tree
        )
        self.watching = WatchRequests(self.store, documents, self._command_all, self._request_tree)
        self.navigation = Navigation(
            self.store,
            documents,
            self.scopes,
            self.view,
            self.capturing,
            self.watching.tree,
            self._tell,
            self._refresh_all,
        )
        self.stop_focus = StopFocus(self.store, self.scopes, self._refresh_all)
        self._tree = Throttle(self.navigation.tell_tree, TREE_INTERVAL, TREE_MOMENT)
        self.store.add_listener(self._changed)
        self.store.add_stop_listener(self.stop_focus.changed)

    # What the editor says

    def initialize(self, params: types.InitializeParams) -> None:
        """Take what the client can do and wants."""
        try:
            given = structure(params.initialization_options or {}, Initialization)
        except MessageError as error:
            # From a client that is not our extension.
            _log.warning("the initialization options are ignored: %s", error)
            given = Initialization()
        self._capabilities = params.capabilities.workspace or self._capabilities
        self._set_options(given.settings)
        self.capturing.tree.wanted = given.captures
        self.watching.tree.wanted = given.watches
        if given.storage is not None:
            self.journal = Journal(Path(given.storage))
        self._listener = AgentListener(self.sessions, self.journal)

    def initialized(self) -> None:
        """Begin with what was recorded before."""
        if self.journal is not None:
            self._begin(self._restore(self.journal))

    def configure(self, settings: Any) -> None:
        """Take new settings."""
        section = settings.get("shapetrace") if isinstance(settings, dict) else None
        self._set_options(section)
        self._refresh_all()

    async def stop(self) -> None:
        """Close what is open."""
        self._hints.cancel()
        self._reminder.cancel()
        self._lenses.cancel()
        self._tree.cancel()
        for task in self._tasks:
            task.cancel()
        if self._listener is not None:
            await self._listener.stop()

    def encoding(self) -> str:
        """The encoding in which columns are counted."""
        return self.documents.encoding

    # Requests of the extension

    async def open_session(self, given: sessions.OpenSession) -> sessions.OpenedSession:
        """Expect processes."""
        self.store.open_session(given.session)
        try:
            port, token = await self._listening().open_session(
                given.session, given.name, given.mode, given.token, given.port
            )
        except OSError as error:
            message = f"cannot listen for the program: {error.strerror or error}"
            self._tell(sessions.STATUS, sessions.Status(given.session, None, "failed", message))
            raise JsonRpcInvalidRequest(message) from error
        return sessions.OpenedSession(port, token)

    async def close_session(self, given: sessions.SessionReference) -> None:
        """Expect no more of a session."""
        self.store.close_session(given.session)
        await self._listening().close_session(given.session)

    def clear(self, given: Empty) -> None:
        """Forget all recordings, and have running programs record everything again."""
        self.navigation.clear()
        self.store.clear()
        if self._listener is not None:
            for process in self.sessions.recorded():
                self._listener.send(process, write(Wake()))
        if self.journal is not None:
            self.journal.forget()

    async def export(self, given: sessions.Export) -> sessions.Exported:
        """Write a trace to a file."""
        traces = list(self.store.traces(given.session))
        try:
            return await asyncio.to_thread(export, traces, given.path, given.format)
        except (OSError, ShapetraceError) as error:
            raise JsonRpcInvalidRequest(f"cannot write {given.path}: {error}") from error

    async def compare(self, given: comparison.Compare) -> comparison.Compared:
        """Compare two traces, beside what else is asked."""
        # A user who compares nothing must not wait for it when the server starts.
        from shapetrace.server.comparisons import compare_for_editor

        wanted = None in (given.a, given.b)
        recorded = next(iter(self.store.traces(None)), None) if wanted else None
        try:
            return await asyncio.to_thread(compare_for_editor, given, recorded)
        except ShapetraceError as error:
            raise JsonRpcInvalidRequest(str(error)) from error

    def wake(self, given: sessions.SessionReference) -> sessions.ProcessesTold:
        """Have processes look at everything again."""
        return self._command(given.session, write(Wake()))

    def cancel_evaluation(self, given: sessions.EvaluationReference) -> sessions.ProcessesTold:
        """Have what is evaluated at a stop end. The debugger may be waiting for just that."""
        return self._command(given.session, write(Cancel(given.number)))

    def _command(self, session: str, message: Message) -> sessions.ProcessesTold:
        """Tell the processes of a session something."""
        listener = self._listening()
        told = [
            listener.send(process, message)
            for process in self.sessions.recorded()
            if process.session == session
        ]
        return sessions.ProcessesTold(sum(told))

    def _command_all(self, message: Message) -> None:
        """Tell all processes something."""
        for process in self.sessions.running():
            self._listening().send(process, message)

    def show_hints(self, given: sessions.ShowHints) -> None:
        """Show hints or hide them."""
        self.are_hints_visible = given.visible
        self._refresh_all()

    # Requests of the editor

    def view(self, uri: str) -> DocumentView | None:
        """The view of an open document; None if nothing was recorded of it or it is in doubt."""
        document = self.documents.get(uri)
        records = None if document is None else self.scopes.records(document.key)
        text = None if records is None else records.base.text
        if document is None or records is None or text is None:
            return None
        return DocumentView(document, records, text)

    def inlay_hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        """The hints on the lines asked for."""
        self._reminder.answered()
        view = self.view(params.text_document.uri) if self.are_hints_visible else None
        if view is None:
            return []
        first, last = params.range.start.line, params.range.end.line
        scope_path = self.scopes.scope_path
        hints = inlay_hints(view, first, last, self.options.hints, self.encoding(), scope_path)
        return [_to_protocol(hint, params.text_document.uri) for hint in hints]

    def resolve_hint(self, hint: types.InlayHint) -> types.InlayHint:
        """Add the tooltip to a hint."""
        data = hint.data if isinstance(hint.data, dict) else {}
        view = self.view(str(data.get("uri")))
        where = data.get("range")
        if view is not None and isinstance(where, list) and len(where) == len(SourceRange._fields):
            stories = (
                watched_story(view, SourceRange(*where)),
                statement_story(view, self.store, SourceRange(*where)),
            )
            story = "\n\n".join(filter(None, stories))
            if story:
                hint.tooltip = _markdown(story)
        return hint

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        """The story of what is under the mouse."""
        view = self.view(params.text_document.uri) if self.options.hover.enabled else None
        if view is None:
            return None
        position = params.position
        story = hover(view, self.store, position.line, position.character, self.encoding())
        if story is None:
            return None
        where = types.Range(types.Position(*story.start), types.Position(*story.end))
        return types.Hover(_markdown(story.markdown), where)

    def code_lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """The code lenses of a document."""
        view = self.view(params.text_document.uri) if self.options.code_lens.enabled else None
        if view is None or not self.are_hints_visible:
            return []
        return [
            types.CodeLens(
                range=types.Range(types.Position(lens.line, 0), types.Position(lens.line, 0)),
                command=types.Command(
                    lens.text, lens.command, arguments=unstructure(lens.arguments)
                ),
            )
            for lens in code_lenses(view, self.store, self.scopes)
        ]

    def inline_values(self, given: document_places.Lines) -> calls.InlineValues:
        """What stands beside the hints while a program stands still."""
        scope_path = self.scopes.scope_path
        view = self.view(given.uri) if self.are_hints_visible else None
        if view is None or scope_path is None:
            return calls.InlineValues(())
        found = inline_values(view, scope_path, given.first, given.last, self.options.hints)
        return calls.InlineValues(tuple(calls.InlineValue(it.line, it.text) for it in found))

    # What happens without being asked

    def _refresh_all(self) -> None:
        self._hints.request(at_once=True)
        self._lenses.request(at_once=True)

    def _changed(self, files: frozenset[str], counted: frozenset[str]) -> None:
        self.navigation.changed()
        self.stop_focus.changed()
        self._tree.request()
        if files:
            garbage.settle()
        shown = {document.key for document in self.documents}
        if shown & files:
            self._hints.request()
        if self.options.code_lens.enabled and shown & (files | counted):
            self._lenses.request()

    def _request_tree(self) -> None:
        self._tree.request(at_once=True)

    def _refresh_hints(self) -> None:
        hints = self._capabilities.inlay_hint
        if hints is not None and hints.refresh_support:
            self._server.workspace_inlay_hint_refresh(None)

    def _refresh_lenses(self) -> None:
        lenses = self._capabilities.code_lens
        if lenses is not None and lenses.refresh_support:
            self._server.workspace_code_lens_refresh(None)

    def _tell(self, message: ServerNotification[Params], params: Params) -> None:
        self._server.protocol.notify(message.method, unstructure(params))

    def _set_options(self, settings: Any) -> None:
        self.options, messages = read_options(settings)
        for message in messages:
            _log.warning("%s", message)
            self._server.window_show_message(
                types.ShowMessageParams(types.MessageType.Warning, f"Shapetrace: {message}")
            )

    def _listening(self) -> AgentListener:
        if self._listener is None:
            raise JsonRpcInvalidRequest("the server has not been initialized")
        return self._listener

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _restore(self, journal: Journal) -> None:
        try:
            journal.remove_old()
            await self.sessions.replay(journal.replay())
        except Exception:
            _log.exception("the recordings of the previous server cannot be read")


def create_server() -> LanguageServer:
    """A server that is ready to be started."""
    documents = Documents()
    server = LanguageServer(
        "shapetrace",
        str(VERSION),
        protocol_cls=lambda *given: SyncProtocol(documents, *given),
        converter_factory=plain_converter,
    )
    register(server, App(server, documents))
    return server


def register(server: LanguageServer, app: App) -> None:
    """Say who answers what."""

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        app.initialize(params)

    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        app.initialized()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configure(params: types.DidChangeConfigurationParams) -> None:
        app.configure(params.settings)

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        await app.stop()

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        return app.inlay_hints(params)

    @server.feature(types.INLAY_HINT_RESOLVE)
    def resolve_hint(params: types.InlayHint) -> types.InlayHint:
        return app.resolve_hint(params)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def show_hover(params: types.HoverParams) -> types.Hover | None:
        return app.hover(params)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def show_lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        return app.code_lenses(params)

    for method, handler in handlers(app):
        server.feature(method)(handler)


def handlers(app: App) -> tuple[tuple[str, JsonHandler], ...]:
    """Who handles which message of the extension."""
    navigation, capturing, watching = app.navigation, app.capturing, app.watching
    return (
        handles(sessions.OPEN_SESSION, app.open_session),
        handles(sessions.CLOSE_SESSION, app.close_session),
        handles(sessions.WAKE, app.wake),
        handles(sessions.CANCEL_EVALUATION, app.cancel_evaluation),
        handles(sessions.CLEAR, app.clear),
        handles(sessions.EXPORT, app.export),
        handles(sessions.SHOW_HINTS, app.show_hints),
        handles(comparison.COMPARE, app.compare),
        handles(tree.TREE, navigation.tree),
        handles(tree.TREE_PATH, navigation.tree_path),
        handles(tree.STORY, navigation.story),
        handles(tree.PLACE, navigation.place),
        handles(calls.CALLS, navigation.calls),
        handles(calls.PIN, navigation.pin),
        handles(calls.STEP_CALL, navigation.step_call),
        handles(calls.INLINE_VALUES, app.inline_values),
        handles(focus.FOCUS, app.stop_focus.focus),
        handles(captures.WANT_CAPTURES, capturing.want),
        handles(captures.CAPTURE_PATHS, navigation.capture_paths),
        handles(captures.CHECK_PATH, capturing.check),
        handles(watches.WANT_WATCHES, watching.want),
        handles(watches.WATCH_AT, watching.at),
        handles(watches.CHECK_WATCH, watching.check),
    )


def _markdown(text: str) -> types.MarkupContent:
    return types.MarkupContent(types.MarkupKind.Markdown, text)


def _to_protocol(hint: Hint, uri: str) -> types.InlayHint:
    return types.InlayHint(
        position=types.Position(hint.line, hint.column),
        label=hint.text,
        kind=types.InlayHintKind.Type,
        padding_left=True,
        data={"uri": uri, "range": list(hint.statement)},
    )
