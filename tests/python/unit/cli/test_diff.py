"""The diff command where something of ours is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapetrace.cli.main import main
from shapetrace.comparing import compare
from shapetrace.events import codec
from tests.python.unit.comparing.worlds import random_world


def test_a_mistake_of_ours_is_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    codec.save(random_world(1).trace(), path)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("too large")

    monkeypatch.setattr(compare, "compare", fail)
    assert main(["diff", str(path), str(path)]) == 2
    assert "MemoryError: too large" in capsys.readouterr().err
