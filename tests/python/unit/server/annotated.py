"""Hints as text in, text out.

A program is written with its hints where they are to be, each in ``«...»``. It is run without them
under the recorder, and what the server shows is put into it again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from shapetrace.server.documents import Document, Documents
from shapetrace.server.features.hover import Tooltip, hover
from shapetrace.server.features.inlay_hints import Hint, inlay_hints
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from tests.support.recorder import PRELUDE
from tests.support.rows import recorded, updates_of

_HINT = re.compile(r" ?«[^»]*»")
_EVERYTHING = 1_000_000


@dataclass
class Shown:
    """A program that ran, and the document that it is shown in."""

    path: Path
    store: TraceStore
    documents: Documents
    document: Document

    def view(self) -> DocumentView:
        """The document beside what ran."""
        records = self.store.records(self.document.key)
        assert records is not None
        assert records.text is not None
        return DocumentView(self.document, records, records.text)

    def hints(self, first: int = 0, last: int = _EVERYTHING, **options: Any) -> list[Hint]:
        """The hints on some lines."""
        return inlay_hints(self.view(), first, last, HintOptions(**options))

    def text(self, **options: Any) -> str:
        """The document with its hints."""
        return with_hints(self.document.lines, self.hints(**options)).removeprefix(PRELUDE)

    def hover(self, place: str) -> Tooltip | None:
        """What is told of the place before the ``^`` in a piece of the document."""
        before, _, behind = place.partition("^")
        text = "\n".join(self.document.lines)
        assert text.count(before + behind) == 1, place
        lines = text[: text.index(before + behind) + len(before)].split("\n")
        units = len(lines[-1].encode("utf-16-le")) // 2
        return hover(self.view(), self.store, len(lines) - 1, units)


def show(text: str, path: Path, may_fail: bool = False) -> Shown:
    """Run a program and open it."""
    path.write_text(PRELUDE + without_hints(text), encoding="utf-8")
    store = TraceStore()
    store.open_process("session", "process")
    for update in updates_of(recorded(path, may_fail)):
        store.apply("process", update)
    documents = Documents()
    document = documents.open(path.as_uri(), path.read_text("utf-8"), 1)
    assert document is not None
    return Shown(path, store, documents, document)


def without_hints(text: str) -> str:
    """A program as it is to be run."""
    return _HINT.sub("", plain(text))


def plain(text: str) -> str:
    """A program as it is written in a test, without indentation."""
    return dedent(text).removeprefix("\n")


def with_hints(lines: Sequence[str], hints: Sequence[Hint]) -> str:
    """Lines with their hints at the columns that the editor puts them at."""
    shown = list(lines)
    for hint in sorted(hints, key=lambda hint: (hint.line, -hint.column)):
        units = shown[hint.line].encode("utf-16-le")
        before, behind = units[: 2 * hint.column], units[2 * hint.column :]
        text = f" «{hint.text}»".encode("utf-16-le")
        shown[hint.line] = (before + text + behind).decode("utf-16-le")
    return "\n".join(shown)
