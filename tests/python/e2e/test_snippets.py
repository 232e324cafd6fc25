"""Runs what documents show: the usage of the tools Shapetrace replaces, the README and docs/.

``snippets`` has the usage sections of those tools' documents, with nothing but the import line
changed; ``prelude.py`` there defines the names that they use and do not make.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.documents import agrees, blocks, commands, run_document

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
SNIPPETS = Path(__file__).parent / "snippets"
PRELUDE = SNIPPETS / "prelude.py"
RUN = {"python", "console"}


@pytest.mark.parametrize(
    ("document", "count"),
    [("tracy_nn_readme", 3), ("tracy_nn_documentation", 3), ("torch_code_tracing_readme", 1)],
)
def test_the_usage_of_another_tool_runs(tmp_path: Path, document: str, count: int) -> None:
    outcome = run_document(SNIPPETS / f"{document}.md", tmp_path, PRELUDE)
    assert outcome.problems == []
    assert outcome.ran == count


def test_the_usage_of_tensortrace_runs(tmp_path: Path) -> None:
    prelude = SNIPPETS / "prelude_of_training.py"
    outcome = run_document(SNIPPETS / "tensortrace_readme.md", tmp_path, prelude)
    assert outcome.problems == []
    assert outcome.ran == 3


def shows_programs(document: Path) -> bool:
    return any(block.language in RUN for block in blocks(document.read_text("utf-8")))


DOCUMENTS = [
    document.relative_to(ROOT).as_posix()
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if shows_programs(document)
]


def test_the_readme_and_its_pages_show_programs() -> None:
    assert {"README.md", "docs/command-line.md", "docs/library.md"} <= set(DOCUMENTS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_does_what_it_shows(tmp_path: Path, document: str) -> None:
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder, ignore=shutil.ignore_patterns("__pycache__"))
    outcome = run_document(ROOT / document, folder, PRELUDE)
    assert outcome.problems == [], "\n\n".join(outcome.problems)
    assert outcome.ran > 0


DOCUMENT = """\
# One

```python
import math
n = 2
print(n)
```

```text
2
```

```python
print(math.factorial(n + 1))
```

Not what it prints:

```text
five
```

# Two

1. In a list:

   ```console
   $ echo one && echo two
   …
   two
   $ false # exit 1
   $ echo not shown
   ```
"""


@pytest.fixture
def no_prelude(tmp_path: Path) -> Path:
    path = tmp_path / "prelude.py"
    path.write_text("import sys\nfrom_prelude = 'here'\n")
    return path


def problems(document: str, folder: Path, prelude: Path) -> list[str]:
    path = folder / "document.md"
    path.write_text(document, "utf-8")
    return run_document(path, folder, prelude).problems


def test_a_document_that_is_right_has_no_problems(tmp_path: Path, no_prelude: Path) -> None:
    assert problems(DOCUMENT, tmp_path, no_prelude) == []
    path = tmp_path / "document.md"
    assert run_document(path, tmp_path, no_prelude).ran == 3


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("2\n```", "3\n```", "line 10: what is printed differs\n2\n"),
        ("n + 1", "m + 1", "line 14: exited with 1\n"),
        ("n = 2", "n =", "line 4: exited with 1\n"),
        ("n = 2", "n = 2\nfrom_prelude\nsys", "line 4: exited with 1\n"),
        ("   two", "   three", "what is printed differs\none\ntwo\n"),
        ("exit 1", "exit 0", "line 28: $ false # exit 0: exited with 1, not 0\n"),
        ("echo not shown", "nosuchcommand", "exited with 127, not 0\n"),
    ],
)
def test_a_document_that_is_wrong_is_found_out(
    tmp_path: Path, no_prelude: Path, right: str, wrong: str, problem: str
) -> None:
    assert DOCUMENT.count(right) >= 1
    (found,) = problems(DOCUMENT.replace(right, wrong, 1), tmp_path, no_prelude)
    assert problem in found


def test_names_of_the_prelude_are_there_and_its_modules_are_not(
    tmp_path: Path, no_prelude: Path
) -> None:
    shown = "```python\nprint(from_prelude, 'sys' in dir(__builtins__))\n```\n"
    assert problems(f"{shown}\n```text\nhere False\n```\n", tmp_path, no_prelude) == []


def test_programs_of_two_sections_share_no_names(tmp_path: Path, no_prelude: Path) -> None:
    document = "# One\n```python\nn = 2\n```\n# Two\n```python\nprint(n)\n```\n"
    (found,) = problems(document, tmp_path, no_prelude)
    assert "NameError: name 'n' is not defined" in found


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        ("one\ntwo", "one\ntwo\n", True),
        ("one\ntwo", "one  \ntwo\n\n", True),
        ("one", "one\ntwo\n", False),
        ("two", "one\ntwo\n", False),
        ("…\ntwo\n…", "one\ntwo\nthree\nfour\n", True),
        ("…\ntwo\n…", "two\n", True),
        ("…", "", True),
        ("…\ntwo", "one\n", False),
        ("a … c", "a b c\n", True),
        ("a … c", "a b\nc\n", False),
        ("a.c", "abc\n", False),
        ("", "", True),
        ("", "one\n", False),
    ],
)
def test_printed_text_is_compared_with_what_is_shown(shown: str, printed: str, agree: bool) -> None:
    assert agrees(tuple(shown.split("\n")), printed) is agree


def test_a_console_block_must_begin_with_a_command() -> None:
    (block,) = blocks("```console\noutput\n```")
    with pytest.raises(ValueError, match="line 2: a console block begins with a command"):
        commands(block)
