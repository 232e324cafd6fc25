"""Go-to-symbol finds one module or class for a name, but for what is listed here."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.python.boundaries.rule import BACKEND

SEVERAL_LAYERS = {
    # Modules: the folder says which layer.
    "calls": "server/messages/calls is the message, the other one what following finds",
    "captured": "events: the values; views: their text",
    "captures": "agent: captures them; server/messages: the messages about them",
    "codec": "events: of traces; server/messages: of messages",
    "comparison": "comparing: the result; server/messages: the message with it",
    "followed": "events: the events; views: their text",
    "live": "live: a recording; views/live: its lines",
    "requested": "transport: sent; server: kept; server/messages: the messages about them",
    "rows": "recorder writes them, events reads them",
    "sessions": "server/messages/sessions is the message",
    "watch_importlib_bootstrap": "`warnings` skips frames of files with such names",
    "watches": "agent: watches them; server/messages: the messages about them",
    # Classes
    "Histogram": "events: the counts; views: joined ones; server/messages: the drawn one",
    "Place": "server/messages: of a document; watch: of a source",
    "Request": "server/messages: of the protocol; variables: of a user",
    "Sender": "transport: to the language server; capture: to rank 0",
    "Statistics": "inspecting computes them, events keeps them, transport sends them",
    "Trace": "compat: the name is torch-code-tracing's",
    "Variable": "capture: the name is TensorTracer's; events: a recorded one",
    "Watch": "transport/messages is the message",
}
"""One idea in two layers, or a name that is not ours to choose."""

UNTIL_REBUILT = {
    "Calls": "recorder/values; server/messages/calls is the message",
    "places": "recorder; recorder/values",
}
"""Names that go when `recorder` is rebuilt."""


def definitions(root: Path) -> Iterator[tuple[str, str]]:
    """The name and the file of each module and of each public class."""
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not path.stem.startswith("__"):
            yield path.stem, name
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, name


def twice(root: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, file in definitions(root):
        found[name].append(file)
    return {name: files for name, files in found.items() if len(files) > 1}


def test_no_module_or_class_has_the_name_of_another() -> None:
    found = twice(BACKEND / "shapetrace")
    allowed = SEVERAL_LAYERS.keys() | UNTIL_REBUILT.keys()
    assert {name: files for name, files in found.items() if name not in allowed} == {}


def test_each_exception_is_still_needed() -> None:
    assert (SEVERAL_LAYERS.keys() | UNTIL_REBUILT.keys()) - twice(
        BACKEND / "shapetrace"
    ).keys() == set()
    assert SEVERAL_LAYERS.keys() & UNTIL_REBUILT.keys() == set()


def test_a_name_that_occurs_twice_is_found(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "rows.py").write_text("class Row: ...\nclass _Row: ...\n")
    (tmp_path / "one" / "__init__.py").write_text("class _Row: ...\n")
    (tmp_path / "rows.py").write_text("if True:\n    class Row: ...\n")
    assert twice(tmp_path) == {
        "Row": ["one/rows.py", "rows.py"],
        "rows": ["one/rows.py", "rows.py"],
    }
