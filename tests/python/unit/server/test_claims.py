"""What hints and hovers say a name is worth is what it was worth, in random functions too.

No two tensors of the random programs are of one size, so a value can be right at one place only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from hypothesis import given

from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.session import Recorder
from shapetrace.server.documents import Documents
from shapetrace.server.features.hover import hover
from shapetrace.server.features.inlay_hints import inlay_hints
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.source_structure import Structure
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from tests.python.unit.recorder.corpus_of_traps import TRAPS
from tests.python.unit.recorder.random_functions import programs
from tests.python.unit.server.annotated import plain
from tests.support.examples import examples
from tests.support.reference.programs import run_file, starting_names
from tests.support.rows import updates_of

pytestmark = pytest.mark.slow

_SAID = re.compile(r"```python\n(?P<name>\w+): (?P<text>.*)\n```")
_TENSOR = re.compile(r"\w+\[[^\]]*\]")


class Watch:
    """What names held when lines began to run, and what functions returned."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.names: dict[tuple[int, str], set[str]] = defaultdict(set)
        self.lines: set[int] = set()
        self.returned: dict[int, set[str]] = defaultdict(set)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at each line of the file that runs."""
        former = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(former)

    def _trace(self, frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        line = frame.f_lineno
        if event == "return" and value is not None:
            self.returned[line].add(text_of(value))
        elif event == "line":
            self.lines.add(line)
            for name, held in list(frame.f_locals.items()):
                self.names[line, name].add(text_of(held))
        return self._trace


def text_of(value: object) -> str:
    """A value as a hint has it; a few characters for what is no tensor."""
    if isinstance(value, torch.Tensor):
        short = {
            torch.float32: "f32",
            torch.float16: "f16",
            torch.int64: "i64",
            torch.bool: "bool",
        }
        dtype = short.get(value.dtype, str(value.dtype))
        return f"{dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, tuple):
        inside = ", ".join(map(text_of, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list | dict):
        inside = ", ".join(map(text_of, value.values() if isinstance(value, dict) else value))
        return f"[{inside}]"
    return "-"


def shown(path: Path) -> tuple[DocumentView, TraceStore]:
    """A program that ran, opened in the editor."""
    recorder = Recorder(RecorderOptions(), None)
    names = starting_names(path)
    recorder.start(sys._getframe())
    try:
        run_file(path, names)
    finally:
        recorder.stop()
    store = TraceStore()
    store.open_process("session", "process")
    for update in updates_of(recorder):
        store.apply("process", update)
    documents = Documents()
    document = documents.open(path.as_uri(), path.read_text("utf-8"), 1)
    assert document is not None
    records = store.records(document.key)
    assert records is not None
    assert records.text is not None
    return DocumentView(document, records, records.text), store


def wrong_claims(path: Path) -> list[str]:
    """What is said and is not so."""
    view, store = shown(path)
    watch = Watch(path)
    names = starting_names(path)
    with watch.watching():
        run_file(path, names)
    return [*_wrong_names(view, store, watch), *_wrong_returns(view, watch)]


def _wrong_names(view: DocumentView, store: TraceStore, watch: Watch) -> Iterator[str]:
    """Of names that are read, what they are said to hold."""
    assert view.structure.tree is not None
    for node in ast.walk(view.structure.tree):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        line, column = node.lineno, node.col_offset
        story = hover(view, store, line - 1, column)
        said = None if story is None else _SAID.match(story.markdown)
        if story is not None and "may have changed since" in story.markdown:
            continue
        if said is None or line not in watch.lines or _is_special(view.structure, line, column):
            continue
        held = watch.names[line, node.id]
        parts = {part for text in held for part in _TENSOR.findall(text)}
        is_one = not any(mark in said["text"] for mark in ("|", ".."))
        if is_one and not parts.issuperset(_TENSOR.findall(said["text"])):
            yield f"{line}: {node.id} is said to be {said['text']}, was {sorted(held)}"


def _is_special(structure: Structure, line: int, column: int) -> bool:
    """Where a name's value when its line begins is not the one meant."""
    path = structure.path(line, column)
    scopes = (ast.Lambda, ast.ListComp, ast.GeneratorExp)
    statements = [node for node in path if isinstance(node, ast.stmt)]
    others = structure.lines[line - 1].count(";")
    return any(isinstance(node, scopes) for node in path) or bool(others) or not statements


def _wrong_returns(view: DocumentView, watch: Watch) -> Iterator[str]:
    """Of values that are returned, what they are said to be."""
    options = HintOptions(maximum_length=1000)
    for hint in inlay_hints(view, 0, 1_000_000, options):
        line = hint.statement.end_line
        statement = view.structure.at(*hint.statement.start)
        if statement is None or statement.kind != "return" or hint.statement.line != line:
            continue
        if any(mark in hint.text for mark in ("…", "✗", ";", "|", "..")):
            continue
        if hint.text not in watch.returned[line]:
            yield f"{line}: said to return {hint.text}, was {sorted(watch.returned[line])}"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs are written to, one after the other."""
    return tmp_path_factory.mktemp("claims") / "program.py"


@examples(150)
@given(program=programs())
def test_nothing_wrong_is_said_of_random_functions(program: str, path: Path) -> None:
    path.write_text(program, encoding="utf-8")
    assert wrong_claims(path) == [], program


@pytest.mark.parametrize("text", TRAPS.values(), ids=TRAPS.keys())
def test_nothing_wrong_is_said_of_misleading_lines(text: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(plain(text) + "main()\n", encoding="utf-8")
    assert wrong_claims(path) == []
