"""What is to be watched, as it is written; and whose code a file is."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from subprocess import run

import pytest

import shapetrace
from shapetrace._errors import NameSyntaxError
from shapetrace.watch.territory import Territory
from shapetrace.watch.wanted import wanted_from


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["video"], ["video"]),
        (["video, mask", "video"], ["video", "mask"]),
        (["sample['a,b'],x[0].y"], ["sample['a,b']", "x[0].y"]),
        (["transform:video,C.m:self.k"], ["transform:video", "C.m:self.k"]),
        (["<module>:x", "f.<locals>.g:x"], ["<module>:x", "f.<locals>.g:x"]),
        (['sample["a:b"]'], ['sample["a:b"]']),
    ],
)
def test_names_are_read(texts: list[str], found: list[str]) -> None:
    assert [each.text for each in wanted_from(texts)] == found


@pytest.mark.parametrize(
    "text", ["", " , ", "a b", "f()", "1x", ":x", "f:", "f g:x", "x[i]", "a:b:c"]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(NameSyntaxError):
        wanted_from([text])


@pytest.mark.parametrize(
    ("text", "function", "is_in"),
    [
        ("x", "anything", True),
        ("f:x", "f", True),
        ("f:x", "C.f", True),
        ("f:x", "g.<locals>.f", True),
        ("f:x", "af", False),
        ("C.f:x", "C.f", True),
        ("C.f:x", "D.C.f", True),
        ("C.f:x", "C.g", False),
        ("package.module.f:x", "f", True),
        ("module.f:x", "f", True),
        ("other.f:x", "f", False),
        ("g.<locals>.f:x", "g.<locals>.f", True),
        ("<module>:x", "<module>", True),
        ("<module>:x", "f", False),
    ],
)
def test_in_which_functions(text: str, function: str, is_in: bool) -> None:
    (wanted,) = wanted_from([text])
    assert wanted.is_in(function, "package.module") is is_in


@pytest.mark.parametrize(
    ("source", "is_there"),
    [
        ('sample["video"] = 1', True),
        ("print(sample['video'].shape)", True),
        ("del sample['video']", True),
        ("sample['mask'] = other['video']", False),
    ],
)
def test_what_is_in_a_variable_is_mentioned(source: str, is_there: bool) -> None:
    (wanted,) = wanted_from(["sample['video']"])
    assert wanted.is_mentioned(ast.parse(source)) is is_there


def test_whose_code_it_is(tmp_path: Path) -> None:
    territory = Territory(["installed", "json.decoder"], [str(tmp_path / "debugger")])
    packages = next(each for each in sys.path if each.endswith("site-packages"))
    assert territory.has("mine", str(tmp_path / "mine.py"))
    assert territory.has("mine", os.path.join("relative", "mine.py"))
    assert territory.has("installed.part", os.path.join(packages, "installed", "part.py"))
    assert not territory.has("installed2", os.path.join(packages, "installed2.py"))
    assert not territory.has("json", json_file("json/__init__.py"))
    assert territory.has("json.decoder", json_file("json/decoder.py"))
    assert not territory.has("x", "<string>")
    assert not territory.has("x", "<frozen importlib._bootstrap>")
    assert not territory.has("pydevd", str(tmp_path / "debugger" / "pydevd.py"))
    assert not territory.has("shapetrace.watch", shapetrace.__file__)


def test_our_own_code_on_a_path_with_a_detour() -> None:
    """As programs write it that put a folder beside their own on ``sys.path``."""
    backend = Path(shapetrace.__file__).parents[1]
    program = f"""
import sys
sys.path.insert(0, {str(backend / ".." / backend.name)!r})
import shapetrace
from shapetrace.watch.territory import Territory
assert ".." in shapetrace.__file__
print(Territory().has("shapetrace", shapetrace.__file__))
"""
    done = run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout == b"False\n"


def json_file(name: str) -> str:
    return os.path.join(os.path.dirname(os.__file__), *name.split("/"))
