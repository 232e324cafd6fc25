"""The requests about captured values: what is wanted, by which paths, and where it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shapetrace._errors import PathError
from shapetrace.capture.paths import parse
from shapetrace.server.capturable import line_of, owner_of
from shapetrace.server.documents import Documents
from shapetrace.server.features.capture_paths import NOTHING, paths_at, paths_of_call, value_path
from shapetrace.server.features.captured_tree import CapturedTree
from shapetrace.server.file_records import Key
from shapetrace.server.messages.captures import CapturePaths
from shapetrace.server.messages.document_places import DocumentPosition
from shapetrace.server.messages.requested import CheckedRequest, RequestToCheck, WantedRequests
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.processes import Process
from shapetrace.server.ranges import SourceRange, byte_column
from shapetrace.server.source_structure import Structure
from shapetrace.server.store import TraceStore
from shapetrace.server.uris import file_key
from shapetrace.server.view import DocumentView, structure_of


class CaptureRequests:
    """Answers these requests, and knows what the tree shows of captured values."""

    def __init__(
        self,
        store: TraceStore,
        documents: Documents,
        scopes: PinAndFocus,
        view: Callable[[str], DocumentView | None],
        changed: Callable[[], None],
    ) -> None:
        self._store = store
        self._documents = documents
        self._scopes = scopes
        self._view = view
        self._changed = changed
        self.tree = CapturedTree(store)

    def want(self, given: WantedRequests) -> None:
        """Note what is to be captured from the next session on."""
        self.tree.wanted = given.requests
        self._changed()

    def check(self, given: RequestToCheck) -> CheckedRequest:
        """The problem of a path that the user is typing."""
        try:
            parse(given.request)
        except PathError as error:
            return CheckedRequest(str(error))
        return CheckedRequest(None)

    def paths_at(self, position: DocumentPosition) -> CapturePaths:
        """By which paths what is at a place of a document is captured."""
        document = self._documents.get(position.uri)
        if document is None or position.line >= len(document.lines):
            return NOTHING
        text = document.lines[position.line]
        column = byte_column(text, position.character, self._documents.encoding)
        structure = structure_of("\n".join(document.lines))
        view = self._view(position.uri)
        scope = self._scopes.shown
        chosen = None if scope is None or scope.call is None else (scope.process, scope.call)
        return paths_at(structure, position.line + 1, column, view, self._store, chosen)

    def paths_of(self, key: Key) -> CapturePaths:
        """The capture paths for a call of the trace tree."""
        process = self._store.process(key[0])
        call = None if process is None else process.call(key[1])
        if process is None or call is None:
            return NOTHING
        structure = None if call.file is None else _source(process, call.file)
        return paths_of_call(process, call.id, structure, self._store)

    def place(self, node: str) -> tuple[Process, str, SourceRange] | None:
        """The file and line where the values of a node are made, as far as that is known."""
        found = self.tree.name_of(node)
        if found is None:
            return None
        process, name = found
        names = [part.text for part in parse(name).parts]
        for taken in range(len(names), -1, -1):
            place = self._place_below(process, names[:taken], names[taken:])
            if place is not None:
                return process, *place
        return None

    @staticmethod
    def _place_below(
        process: Process, module: Sequence[str], names: Sequence[str]
    ) -> tuple[str, SourceRange] | None:
        wanted = value_path(module)
        for identity, entry in process.entries.items():
            call = process.modules.get(identity)
            structure = _source(process, entry.file)
            if call is None or structure is None or value_path(call.path.split(".")) != wanted:
                continue
            function = structure.function_at(entry.line)
            owner = None if function is None else owner_of(function)
            if owner is not None:
                line = line_of(structure, owner, tuple(names) or ("forward",))
                return None if line is None else (entry.file, SourceRange(line, 0, line, 0))
        return None


def _source(process: Process, file: str) -> Structure | None:
    records = process.session.files.get(file_key(file))
    return None if records is None or records.text is None else structure_of(records.text)
