"""What the document shows is what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documents import run_document

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[4]


def test_the_document_does_what_it_shows(tmp_path: Path) -> None:
    prelude = ROOT / "tests/python/e2e/snippets/prelude.py"
    outcome = run_document(ROOT / "docs" / "variables.md", tmp_path, prelude)
    assert outcome.problems == []
    assert outcome.ran == 1
