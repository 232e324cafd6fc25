"""Phrases that a reader has to read twice are kept out of docstrings and comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.python.boundaries.rule import BACKEND

EXTENSION = BACKEND.parent / "extension" / "src"

REFUSED = re.compile(r"\AThe same\b|\bso-manieth\b", re.IGNORECASE)
"""Nowhere: a tooltip that begins with "The same" says nothing."""

PERSONS = re.compile(r"\b(?:some|no|any)body\b|\bwhoever\b|\AWhat is told of\b", re.IGNORECASE)
"""Where there is a noun: the user, the debugger, another process, a listener; what is sent."""

UNTIL_REBUILT = ("recorder",)
"""Packages whose words are gone through for persons when they are rebuilt."""


def texts_of_python(source: str) -> Iterator[str]:
    """Each docstring, also those below attributes, and each comment."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield " ".join(text.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


def texts_of_typescript(source: str) -> Iterator[str]:
    """Each comment, without the asterisks at the beginnings of its lines."""
    for comment in re.findall(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", source, re.DOTALL):
        yield " ".join(re.sub(r"^\s*(?:/\*+|\*+/?|//)|\*/$", "", comment, flags=re.M).split())


def test_no_docstring_or_comment_has_a_refused_phrase() -> None:
    found = [
        f"{path.relative_to(BACKEND)}: {text}"
        for path in sorted((BACKEND / "shapetrace").rglob("*.py"))
        for text in texts_of_python(path.read_text("utf-8"))
        if REFUSED.search(text)
    ]
    found += [
        f"{path.relative_to(EXTENSION)}: {text}"
        for path in sorted(EXTENSION.rglob("*.ts"))
        for text in texts_of_typescript(path.read_text("utf-8"))
        if REFUSED.search(text)
    ]
    assert found == []


def texts_with_persons() -> Iterator[tuple[str, str]]:
    """Each text that names a person, after the name of its module."""
    root = BACKEND / "shapetrace"
    for path in sorted(root.rglob("*.py")):
        for text in texts_of_python(path.read_text("utf-8")):
            if PERSONS.search(text):
                yield path.relative_to(root).as_posix(), text
    for path in sorted(EXTENSION.rglob("*.ts")):
        for text in texts_of_typescript(path.read_text("utf-8")):
            if PERSONS.search(text):
                yield path.relative_to(EXTENSION).as_posix(), text


def exception_for(name: str) -> str | None:
    package = name.partition("/")[0]
    return package if package in UNTIL_REBUILT else None


def test_no_person_is_named_where_there_is_a_noun() -> None:
    found = [f"{name}: {text}" for name, text in texts_with_persons() if not exception_for(name)]
    assert found == []


def test_each_exception_is_still_needed() -> None:
    needed = {exception_for(name) for name, _ in texts_with_persons()}
    assert set(UNTIL_REBUILT) == needed - {None}


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """The same for g."""',
        'x = 1\n"""The so-manieth\n    of its name."""',
        "x = 1  # The same.",
    ],
)
def test_a_planted_phrase_is_found_in_python(source: str) -> None:
    assert any(REFUSED.search(text) for text in texts_of_python(source))


@pytest.mark.parametrize(
    "source",
    [
        "/** The same for g. */\nfunction f(): void {}",
        "/**\n * It is the so-manieth\n * of its name.\n */",
        "const x = 1; // The same.",
    ],
)
def test_a_planted_phrase_is_found_in_typescript(source: str) -> None:
    assert any(REFUSED.search(text) for text in texts_of_typescript(source))


def test_code_and_texts_of_the_product_are_no_comments() -> None:
    assert list(texts_of_python('x = "The same"')) == []
    assert list(texts_of_typescript('const url = "http://the.same/so-manieth";')) == []
