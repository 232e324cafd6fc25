"""What is shown where several processes ran the same lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapetrace.server.documents import Documents
from shapetrace.server.store import TraceStore
from shapetrace.transport.messages import ProcessInfo
from shapetrace.views.owners import processes_text
from tests.python.unit.server.annotated import Shown
from tests.support.rows import recorded, updates_of

PROGRAM = """\
import os
import torch
size = int(os.environ["SIZE"])
x = torch.ones(size, 3)
y = x * 2
same = torch.ones(5)
"""


def ranks(path: Path, monkeypatch: pytest.MonkeyPatch, *sizes: int) -> Shown:
    """The program as it ran in ranks, each with a size of its own."""
    path.write_text(PROGRAM, encoding="utf-8")
    store = TraceStore()
    for rank, size in enumerate(sizes):
        monkeypatch.setenv("SIZE", str(size))
        about = ProcessInfo(4711 + rank, 1, "3.11.2", "python", (), rank=rank)
        store.open_process("session", rank, about)
        for update in updates_of(recorded(path)):
            store.apply(rank, update)
    documents = Documents()
    document = documents.open(path.as_uri(), PROGRAM, 1)
    assert document is not None
    return Shown(path, store, documents, document)


def told(shown: Shown, place: str) -> list[str]:
    story = shown.hover(place)
    assert story is not None
    return story.markdown.splitlines()


def test_a_hover_says_which_rank_had_which_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = ranks(tmp_path / "program.py", monkeypatch, 2, 8, 2)
    lines = told(shown, "x ^* 2")
    assert "x f32[2,3] * 2 → f32[2,3]  ×2  # ranks 0, 2" in lines
    assert "x f32[8,3] * 2 → f32[8,3]  # rank 1" in lines
    for place in ("^y = x", "y = ^x", "^x = torch"):
        lines = told(shown, place)
        assert "  f32[2,3]  # ranks 0, 2" in lines
        assert "  f32[8,3]  # rank 1" in lines


def test_nothing_is_said_of_ranks_where_all_are_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = ranks(tmp_path / "program.py", monkeypatch, 2, 8)
    for place in ("^same", "torch.^ones(5)"):
        assert not any("rank" in line for line in told(shown, place))
    shown = ranks(tmp_path / "program.py", monkeypatch, 2, 2)
    assert not any("rank" in line for line in told(shown, "^y = x"))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["rank 1"], "rank 1"),
        (["rank 10", "rank 9", "rank 9"], "ranks 9, 10"),
        (["process 12", "process 7"], "processes 7, 12"),
        ([f"rank {number}" for number in range(9)], "9 ranks"),
        (["rank 0", "process 3"], "rank 0, process 3"),
        ([""], ""),
    ],
)
def test_processes_by_name(names: list[str], text: str) -> None:
    assert processes_text(names) == text
