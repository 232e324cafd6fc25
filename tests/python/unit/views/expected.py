"""Compares text with a file in ``tests/python/expected/views``.

The files are written anew by ``UPDATE_EXPECTED=1``; one that is missing fails.
"""

from __future__ import annotations

import os
from pathlib import Path

EXPECTED = Path(__file__).parents[2] / "expected" / "views"


def assert_expected(name: str, text: str) -> None:
    """Fail unless the file says exactly this."""
    path = EXPECTED / name
    if os.environ.get("UPDATE_EXPECTED") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    if not path.exists():
        raise AssertionError(f"{path.name} is missing; write it with UPDATE_EXPECTED=1")
    assert text == path.read_text(encoding="utf-8"), f"differs from {path.name}"
