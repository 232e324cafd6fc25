"""Between pygls and our own copies of the documents.

pygls keeps documents as well, but takes form feeds and other characters for line ends that the
editor does not, and then moves the positions of edits.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import converters, types
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    lsp_method,
)

from shapetrace.server.documents import Change, Documents
from shapetrace.server.ranges import ENCODINGS


class SyncProtocol(LanguageServerProtocol):
    """The protocol with our own bookkeeping of documents."""

    def __init__(self, documents: Documents, *given: Any) -> None:
        self._documents = documents
        super().__init__(*given)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Begin with a document."""
        self._set_encoding()
        document = params.text_document
        self._documents.open(document.uri, document.text, document.version)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Follow the edits of a document."""
        document = params.text_document
        changes = [_change(change) for change in params.content_changes]
        self._documents.change(document.uri, document.version, changes)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document."""
        self._documents.close(params.text_document.uri)

    def _set_encoding(self) -> None:
        chosen = self.server_capabilities.position_encoding
        encoding = getattr(chosen, "value", chosen)
        self._documents.encoding = encoding if encoding in ENCODINGS else "utf-16"


def plain_converter() -> Any:
    """The protocol's types as they are defined; parameters of other messages stay plain values."""
    converter = converters.get_converter()
    for message in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        converter.register_structure_hook(message, _plain)
    return converter


def _plain(given: dict[str, Any], kind: Any) -> Any:
    return kind(**given)


def _change(change: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return Change(change.text)
    start, end = change.range.start, change.range.end
    return Change(change.text, (start.line, start.character), (end.line, end.character))
