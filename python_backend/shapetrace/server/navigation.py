"""The requests that go from call to call: the trace tree and pins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from shapetrace.server.capture_requests import CaptureRequests
from shapetrace.server.documents import Documents
from shapetrace.server.features.capture_paths import NOTHING
from shapetrace.server.features.captured_tree import CapturedTree
from shapetrace.server.features.pins import module_call_of, nearest, pin_of
from shapetrace.server.features.trace_tree import TraceTree
from shapetrace.server.features.watched_tree import WatchedTree
from shapetrace.server.file_records import Key, call_range
from shapetrace.server.line_calls import calls_at, calls_of, index_in, step
from shapetrace.server.messages.calls import PIN_CHANGED, Calls, Pin, Pinned, PinQuestion, StepCall
from shapetrace.server.messages.captures import CapturePaths, CapturePathsQuestion
from shapetrace.server.messages.declarations import Empty, Params, ServerNotification
from shapetrace.server.messages.document_places import DocumentPosition, Place
from shapetrace.server.messages.tree import (
    TRACE_CHANGED,
    NodeReference,
    Placed,
    Story,
    TreeNode,
    TreePage,
    TreePath,
    TreePathQuestion,
    TreeQuestion,
    TreeStep,
)
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.processes import Process
from shapetrace.server.ranges import SourceRange, byte_column, editor_column
from shapetrace.server.store import TraceStore
from shapetrace.server.uris import file_key
from shapetrace.server.view import DocumentView


class Notify(Protocol):
    """Sends a notification to the extension."""

    def __call__(self, message: ServerNotification[Params], params: Params) -> None:
        """Send it."""


class Navigation:
    """Answers these requests, and says when what is shown has become another call."""

    def __init__(
        self,
        store: TraceStore,
        documents: Documents,
        scopes: PinAndFocus,
        view: Callable[[str], DocumentView | None],
        capturing: CaptureRequests,
        watched: WatchedTree,
        tell: Notify,
        refresh: Callable[[], None],
    ) -> None:
        self._store = store
        self._documents = documents
        self._scopes = scopes
        self._view = view
        self._capturing = capturing
        self._watched = watched
        self._branches: tuple[WatchedTree | CapturedTree, ...] = (watched, capturing.tree)
        self._tell = tell
        self._refresh = refresh
        self._tree = TraceTree(store)
        self._is_tree_shown = False
        self._pin: Pin | None = None

    def tree(self, given: TreeQuestion) -> TreePage:
        """Some nodes of the trace tree."""
        self._is_tree_shown = True
        nodes, has_more = self._page(given)
        return TreePage(tuple(nodes), has_more)

    def _page(self, given: TreeQuestion) -> tuple[list[TreeNode], bool]:
        """Watched variables and captured values stand before all calls."""
        parent, text, offset, limit = given.parent, given.filter, given.offset, given.limit
        pinned = self._scopes.pinned
        branch = None if parent is None else self._branch(parent)
        if parent is not None and branch is not None:
            return branch.page(parent, text, offset, limit)
        roots = self._roots(text) if parent is None else []
        first = roots[offset:]
        offset, limit = max(offset - len(roots), 0), limit - len(first)
        nodes, has_more = self._tree.page(parent, text, offset, limit, pinned)
        return [*first, *nodes], has_more

    def _roots(self, text: str) -> list[TreeNode]:
        """What stands before all calls."""
        roots = (branch.root(text) for branch in self._branches)
        return [each for each in roots if each is not None]

    def _branch(self, node: str) -> WatchedTree | CapturedTree | None:
        return next((branch for branch in self._branches if branch.is_node(node)), None)

    def tree_path(self, given: TreePathQuestion) -> TreePath:
        """Where in the tree the call is that was made at a position."""
        near = None if given.near is None else self._tree.call_of(given.near)
        made = self._made_at(given)
        scope = self._scopes.shown
        if near is None and scope is not None and scope.call is not None:
            near = (scope.process, scope.call)
            if scope.stop is not None:
                # What a call that runs has not come to yet was made by others, if by any.
                made = [self._last_in(near, made) or near]
        key = nearest(self._store, made, near)
        path = None if key is None else self._tree.path(key, given.filter)
        if path:
            path[0] = (path[0][0], path[0][1] + len(self._roots(given.filter)))
        return TreePath(None if path is None else tuple(TreeStep(*each) for each in path))

    def story(self, given: NodeReference) -> Story:
        """What is shown over a node."""
        tree = self._branch(given.node) or self._tree
        return Story(tree.story(given.node))

    def place(self, given: NodeReference) -> Placed:
        """Where in the source a node's call was made."""
        node = given.node
        branch = self._branch(node)
        if branch is not None:
            placing = self._watched if branch is self._watched else self._capturing
            made = placing.place(node)
            return Placed(None if made is None else self._placed(*made))
        key = self._tree.call_of(node)
        return Placed(None if key is None else self._place(key))

    def capture_paths(self, given: CapturePathsQuestion) -> CapturePaths:
        """By which paths what a node made, or what is at a place, is captured."""
        if given.position is not None:
            return self._capturing.paths_at(given.position)
        key = None if given.node is None else self._tree.call_of(given.node)
        return NOTHING if key is None else self._capturing.paths_of(key)

    def calls(self, position: DocumentPosition) -> Calls:
        """The calls that a line is about."""
        keys = self._calls_at(position)
        scope = self._scopes.shown
        here: list[int] = []
        if scope is not None and scope.call is not None:
            here = index_in(keys, (scope.process, scope.call), self._store)
        named = (pin_of(self._store, key) for key in keys)
        calls = tuple(pin for pin in named if pin is not None)
        return Calls(calls, here[0] if len(here) == 1 else None)

    def pin(self, given: PinQuestion) -> Pinned:
        """Show one call only, or all of them again."""
        key = None if given.node is None else self._tree.call_of(given.node)
        return self._set_pin(None if key is None else module_call_of(self._store, key))

    def step_call(self, given: StepCall) -> Pinned:
        """Show the call before or behind. Where there is none, all stays as it is."""
        scope = self._scopes.shown
        here = None if scope is None else (scope.process, scope.call or 0)
        found = step(self._calls_at(given), here, given.direction, self._store)
        return Pinned(None) if found is None else self._set_pin(found)

    def changed(self) -> None:
        """Have the pin go along with what has been recorded."""
        former = self._pin
        if former is not None and self._scopes.follow_pin():
            key = self._scopes.pinned
            pin = None if key is None else pin_of(self._store, key)
            if self._scopes.is_waiting:
                pin = replace(former, is_waiting=True)
            self._tell_pin(pin, former.label if pin is None else None)

    def clear(self) -> None:
        """Let go of the pin, as all is about to be forgotten."""
        if self._pin is not None:
            self._set_pin(None)

    def tell_tree(self) -> None:
        """Say once that the tree has changed, if it has been looked at since the last time."""
        if self._is_tree_shown:
            self._is_tree_shown = False
            self._tell(TRACE_CHANGED, Empty())

    def _set_pin(self, key: Key | None) -> Pinned:
        pin = None if key is None else pin_of(self._store, key)
        self._scopes.set_pin(None if pin is None else key)
        return self._tell_pin(pin, None)

    def _tell_pin(self, pin: Pin | None, lost: str | None) -> Pinned:
        self._pin = pin
        pinned = Pinned(pin, lost)
        self._refresh()
        self._tell(PIN_CHANGED, pinned)
        return pinned

    def _calls_at(self, position: DocumentPosition) -> list[Key]:
        """The module calls that a line is about, of those that have been told of."""
        view = self._view(position.uri)
        found = [] if view is None else calls_at(view, self._store, position.line)
        return [key for key in found if module_call_of(self._store, key) == key]

    def _made_at(self, position: DocumentPosition) -> list[Key]:
        """The calls, of those that are shown, that the expression at a position made."""
        view = self._view(position.uri)
        line = None if view is None else view.source_line(position.line)
        if view is None or line is None:
            return []
        function = view.structure.function_at(line)
        if function is not None and line <= function.node.lineno:
            return list(calls_of(view, self._store, function))
        statement = view.structure.covering(line)
        if statement is None:
            return []
        where = statement.range
        made = [
            each
            for each in view.records.expressions(where.line, where.end_line)
            if where.contains(each.range) and each.calls
        ]
        text = view.document.lines[position.line]
        column = byte_column(text, position.character, self._documents.encoding)
        around = [each for each in made if each.range.touches(line, column)]
        # The smallest around the position, else the largest in the statement.
        if around:
            chosen = max(around, key=lambda each: (each.range.start, _backwards(each.range)))
        elif made:
            chosen = min(made, key=lambda each: (each.range.start, _backwards(each.range)))
        else:
            return []
        direct = [key for key, call in chosen.calls.items() if call.direct]
        return direct or list(chosen.calls)

    def _last_in(self, outer: Key, keys: Iterable[Key]) -> Key | None:
        """The last of some calls that was made in another one, or else deeper in it."""
        process = self._store.process(outer[0])
        if process is None:
            return None
        depths = {}
        for key in keys:
            around = (key[1], *process.nesting.above(key[1]))
            if key[0] == outer[0] and outer[1] in around:
                depths[key] = around.index(outer[1])
        return min(depths, key=lambda key: (depths[key], -key[1]), default=None)

    def _place(self, key: Key) -> Place | None:
        process = self._store.process(key[0])
        call = None if process is None else process.call(key[1])
        where = None if call is None else call_range(call)
        if process is None or call is None or call.file is None or call.line is None:
            return None
        return self._placed(process, call.file, where or SourceRange(call.line, 0, call.line, 0))

    def _placed(self, process: Process, file: str, where: SourceRange) -> Place | None:
        """A place of a file that ran, as the editor has it now."""
        records = process.session.files.get(file_key(file))
        document = next((each for each in self._documents if each.key == file_key(file)), None)
        encoding = self._documents.encoding
        if document is not None and records is not None and records.text is not None:
            view = DocumentView(document, records, records.text)
            start = view.editor_position(*where.start, encoding)
            end = view.editor_position(*where.end, encoding)
            return None if start is None else Place(document.uri, start, end or start)
        path = Path(file)
        if not path.is_absolute():
            return None
        lines = [] if records is None or records.text is None else records.text.split("\n")

        def position(line: int, column: int) -> tuple[int, int]:
            text = lines[line - 1] if line <= len(lines) else ""
            return line - 1, editor_column(text, column, encoding)

        return Place(path.as_uri(), position(*where.start), position(*where.end))


def _backwards(where: SourceRange) -> tuple[int, int]:
    return -where.end_line, -where.end_column
