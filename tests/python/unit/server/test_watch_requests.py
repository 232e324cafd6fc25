"""What the variable at a place of a document is, and what is done with what is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from shapetrace.server.documents import Documents
from shapetrace.server.messages.document_places import DocumentPosition
from shapetrace.server.messages.requested import RequestToCheck, WantedRequests
from shapetrace.server.messages.watches import Watchable
from shapetrace.server.store import TraceStore
from shapetrace.server.watch_requests import WatchRequests

URI = "file:///work/data.py"


def made(text: str = "") -> tuple[WatchRequests, list[dict[str, Any]]]:
    documents = Documents()
    documents.open(URI, text, 1)
    commands: list[dict[str, Any]] = []
    return WatchRequests(TraceStore(), documents, commands.append, lambda: None), commands


def at(line: str, fragment: str, offset: int = 0) -> str:
    text = f"class Data:\n    def f(self, video):\n        {line}\n"
    watching, _ = made(text)
    row = text.split("\n")[2]
    found = watching.at(DocumentPosition(URI, 2, row.index(fragment) + offset))
    assert found.function == "Data.f"
    return found.name


@pytest.mark.parametrize(
    ("line", "fragment", "name"),
    [
        ("video = crop(video)", "video =", "video"),
        ("video = crop(video)", "video)", "video"),
        ("video = crop(video)", "crop", ""),
        ("video = crop(video)", "= crop", "video"),
        ("sample['video'] = 1", "video", "sample['video']"),
        ("sample['video'] = 1", "sample", "sample"),
        ("self.cache.k = 1", "k = 1", "self.cache.k"),
        ("self.cache.k = 1", "cache", "self.cache"),
        ("self.cache.k = 1", "self", "self"),
        ("y = video.sum()", "sum", "video"),
        ("y = parts[index].data", "index", "index"),
        ("y = parts[index]", "parts", "parts"),
        ("y = parts[0][1]", "1]", "parts[0][1]"),
        ("for video in parts: pass", "video in", "video"),
        ("with a as video: pass", "video", "video"),
        ("video += 1", "+=", "video"),
        ("return video", "return", ""),
        ("print('video')", "video", ""),
        ("x: int = 3", "int", "int"),
        ("if (n := 3): pass", ":=", "n"),
    ],
)
def test_the_variable_at_a_place(line: str, fragment: str, name: str) -> None:
    assert at(line, fragment) == name


def test_a_parameter_and_a_place_that_is_nowhere() -> None:
    watching, _ = made("def f(video, größe=1):\n    pass\n")
    assert watching.at(DocumentPosition(URI, 0, 7)).name == "video"
    assert watching.at(DocumentPosition(URI, 0, 15)).name == "größe"
    assert watching.at(DocumentPosition(URI, 1, 0)) == Watchable("", "f")
    assert watching.at(DocumentPosition(URI, 99, 0)) == Watchable("", "")
    assert watching.at(DocumentPosition("file:///other.py", 0, 0)) == Watchable("", "")


def test_a_document_that_is_no_python() -> None:
    watching, _ = made("größe, video = = 1\nfor\n")
    assert watching.at(DocumentPosition(URI, 0, 1)).name == "größe"
    assert watching.at(DocumentPosition(URI, 0, 9)).name == "video"
    assert watching.at(DocumentPosition(URI, 0, 14)).name == ""
    assert watching.at(DocumentPosition(URI, 1, 1)).name == ""


def test_what_is_wanted_is_told_to_all_programs() -> None:
    watching, commands = made()
    watching.want(WantedRequests(("video", "f:mask")))
    assert commands == [{"type": "watch", "names": ["video", "f:mask"]}]
    assert watching.tree.wanted == ("video", "f:mask")


@pytest.mark.parametrize(
    ("name", "is_fine"),
    [("video", True), ("f:self.k", True), ("f(x)", False), ("", False), ("a,b", False)],
)
def test_what_is_typed_is_checked(name: str, is_fine: bool) -> None:
    watching, _ = made()
    assert (watching.check(RequestToCheck(name)).problem is None) is is_fine
