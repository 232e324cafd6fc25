"""The requests about watched variables: what is wanted, and what a place in the source means."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from keyword import iskeyword
from typing import Any, Final

from shapetrace._errors import ShapetraceError
from shapetrace.server.documents import Documents
from shapetrace.server.features.watched_tree import WatchedTree
from shapetrace.server.messages.document_places import DocumentPosition
from shapetrace.server.messages.requested import CheckedRequest, RequestToCheck, WantedRequests
from shapetrace.server.messages.watches import Watchable
from shapetrace.server.ranges import byte_column, character_index
from shapetrace.server.store import TraceStore
from shapetrace.server.view import structure_of
from shapetrace.transport.messages import Watch, write
from shapetrace.watch.wanted import wanted_from

NOTHING: Final = Watchable("", "")

_WORD: Final = re.compile(r"[^\W\d]\w*")


class WatchRequests:
    """Answers these requests, and knows what the tree shows of watched variables."""

    def __init__(
        self,
        store: TraceStore,
        documents: Documents,
        command: Callable[[dict[str, Any]], None],
        changed: Callable[[], None],
    ) -> None:
        """``command`` tells all processes that are recorded something."""
        self._documents = documents
        self._command = command
        self._changed = changed
        self.tree = WatchedTree(store)

    def want(self, given: WantedRequests) -> None:
        """Watch this from now on, also in the programs that run."""
        self.tree.wanted = given.requests
        self._command(write(Watch(given.requests)))
        self._changed()

    def check(self, given: RequestToCheck) -> CheckedRequest:
        """The problem of a name that the user is typing."""
        try:
            found = wanted_from([given.request])
        except ShapetraceError as error:
            return CheckedRequest(str(error))
        return CheckedRequest("One at a time, please." if len(found) > 1 else None)

    def at(self, position: DocumentPosition) -> Watchable:
        """What is at a place of a document."""
        document = self._documents.get(position.uri)
        if document is None or position.line >= len(document.lines):
            return NOTHING
        text = "\n".join(document.lines)
        line = document.lines[position.line]
        column = byte_column(line, position.character, self._documents.encoding)
        structure = structure_of(text)
        path = structure.path(position.line + 1, column)
        function = structure.function_at(position.line + 1)
        where = "" if function is None else function.qualified_name
        # What is being written may be no Python yet.
        name = _name_of(path) if path else _word_at(line, character_index(line, column, "utf-8"))
        return Watchable(name, where)


def _name_of(path: Sequence[ast.AST]) -> str:
    """The variable that a place is in, or what is in one; empty for anything else."""
    node, around = path[-1], path[-2] if len(path) > 1 else None
    if isinstance(node, ast.Constant) and isinstance(around, ast.Subscript):
        # `video` in `sample["video"]`.
        node, around = around, path[-3] if len(path) > 2 else None
    match node:
        case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            return name
        case ast.Assign(targets=[target, *_]) | ast.AugAssign(target=target):
            return _text_of(target)
        case ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
            return _text_of(target)
        case ast.Attribute(value=inner) if isinstance(around, ast.Call) and around.func is node:
            # `sum` in `x.sum()`.
            return _text_of(inner)
        case ast.Name() if isinstance(around, ast.Call) and around.func is node:
            return ""
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return _text_of(node)
    return ""


def _word_at(line: str, index: int) -> str:
    for word in _WORD.finditer(line):
        if word.start() <= index <= word.end() and not iskeyword(word[0]):
            return word[0]
    return ""


def _text_of(node: ast.expr) -> str:
    """An expression as it is watched; of `x[i]` what it looks into."""
    text = ast.unparse(node)
    try:
        return wanted_from([text])[0].text
    except ShapetraceError:
        inner = getattr(node, "value", None)
        is_looking = isinstance(node, ast.Attribute | ast.Subscript)
        return _text_of(inner) if is_looking and isinstance(inner, ast.expr) else ""
