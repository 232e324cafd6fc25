"""What a function's bytecode tells of its variables: function text in, what is known out."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.python.unit.recorder import corpus_of_assignments as corpus

EXAMPLES = [
    *corpus.ASSIGNMENTS.items(),
    *corpus.COPIES.items(),
    *corpus.BRANCHES.items(),
    *corpus.RETURNS.items(),
    *corpus.TARGETS.items(),
]
"""Some titles are used for several kinds."""


@pytest.mark.parametrize("text", [text for _, text in EXAMPLES], ids=[name for name, _ in EXAMPLES])
def test_bytecode_tells_which_store_it_was(text: str) -> None:
    assert corpus.render(text) == dedent(text).split("----\n")[1]
