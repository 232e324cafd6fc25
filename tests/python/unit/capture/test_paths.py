"""Paths: how they are read, and what they can be."""

from __future__ import annotations

import pytest

from shapetrace import PathError
from shapetrace.capture.paths import component, nearest, parse


def matches(path: str, name: str) -> bool:
    """Whether a path means a name, with nothing that is spent."""
    parsed = parse(path)
    states = parsed.start
    for part in name.split("/"):
        states = parsed.after(states, part)
    return parsed.is_complete(states)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("forward", ["forward"]),
        ("layers.0.forward.x", ["layers", "0", "forward", "x"]),
        ("layers.*.forward", ["layers", "*", "forward"]),
        ("**", ["**"]),
        ("forward.batch.'a.b'", ["forward", "batch", "a.b"]),
        ('forward.batch."it\'s"', ["forward", "batch", "it's"]),
        ("forward.batch.my-key", ["forward", "batch", "my-key"]),
        ("größe.x", ["größe", "x"]),
    ],
)
def test_paths_are_read(path: str, parts: list[str]) -> None:
    assert [part.text for part in parse(path).parts] == parts


def test_a_wildcard_in_quotes_is_a_name() -> None:
    assert matches("forward.'*'", "forward/*")
    assert not matches("forward.'*'", "forward/x")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "path '', character 1: a name or a wildcard is missing"),
        (".x", "path '.x', character 1: a name or a wildcard is missing"),
        ("a..b", "path 'a..b', character 3: a name or a wildcard is missing"),
        ("a.", "path 'a.', character 3: a name or a wildcard is missing"),
        ("lay*.x", "path 'lay*.x', character 4: a wildcard stands for a whole component"),
        ("*x", "path '*x', character 2: a wildcard stands for a whole component"),
        ("a.***", "path 'a.***', character 3: '**' is the longest wildcard"),
        ("outs[0]", "path 'outs[0]', character 5: items are written as components: outs.0"),
        ("a b", "path 'a b', character 2: ' ' cannot be there"),
        (" a", "path ' a', character 1: ' ' cannot be there"),
        ("a.'b", "character 3: a quoted component stands alone, and ends in a quote"),
        ("a'b'", "character 2: a quoted component stands alone, and ends in a quote"),
        (3, "a path is a text such as 'layers.*.forward', not 3"),
    ],
)
def test_what_is_no_path_is_refused_with_the_place(path: object, message: str) -> None:
    with pytest.raises(PathError) as refusal:
        parse(path)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("path", "name", "does"),
    [
        ("a.*.c", "a/b/c", True),
        ("a.*.c", "a/c", False),
        ("a.*.c", "a/b/b/c", False),
        ("a.**.c", "a/c", True),
        ("a.**.c", "a/b/b/c", True),
        ("a.**.c", "a/b", False),
        ("**.c", "c", True),
        ("**.c", "c/c", True),
        ("a.**", "a", True),
        ("a.**", "a/b/c", True),
        ("**.b.**.d", "a/b/c/b/d", True),
        ("**.*", "a", True),
        ("**.*", "a/b", True),
    ],
)
def test_wildcards(path: str, name: str, does: bool) -> None:
    assert matches(path, name) is does


@pytest.mark.parametrize("name", ["x", "0", "a.b", "it's", "*", "my key", "[0]", ""])
def test_a_name_is_written_so_that_it_is_read_again(name: str) -> None:
    (part,) = parse(component(name)).parts
    assert (part.text, part.is_wild) == (name, False)


def test_the_nearest_names_come_first() -> None:
    names = ["norm", "layers", "head", "embedding", "layer_norm", "drop", "final"]
    assert nearest("layrs", names)[0] == "layers"
    assert nearest("NORM", names)[0] == "norm"
    assert len(nearest("x", names)) == 5
