from __future__ import annotations

import pytest

from shapetrace.views.place_text import (
    function_text,
    installed_package,
    is_comprehension,
    is_library,
    is_standard_library,
    place_spans,
    place_text,
    short_path,
)

BASE = "/home/ada/project"
SITE = f"{BASE}/.venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("file", "base", "text"),
    [
        (f"{BASE}/model.py", BASE, "model.py"),
        (f"{BASE}/net/layers/model.py", BASE, "net/layers/model.py"),
        (f"{BASE}/net/model.py", BASE + "/", "net/model.py"),
        (f"{BASE}2/net/model.py", BASE, "net/model.py"),
        (f"{BASE}/model.py", None, "project/model.py"),
        ("/model.py", BASE, "model.py"),
        ("model.py", BASE, "model.py"),
        ("<stdin>", BASE, "<stdin>"),
        ("<frozen importlib._bootstrap>", BASE, "<frozen importlib._bootstrap>"),
        ("C:\\code\\net\\model.py", "C:\\code", "net\\model.py"),
        ("C:\\code\\net\\deep\\model.py", None, "deep\\model.py"),
        ("", BASE, ""),
    ],
)
def test_short_paths(file: str, base: str | None, text: str) -> None:
    assert short_path(file, base) == text


def test_places() -> None:
    assert place_text(f"{BASE}/model.py", 41, BASE) == "model.py:41"
    assert place_text(f"{BASE}/model.py", None, BASE) == "model.py"
    assert place_text(None, 41, BASE) == ""


def test_a_place_names_the_function_only_where_there_is_room() -> None:
    place = (f"{BASE}/model.py", 41, "Net.heads", BASE)
    assert place_spans(*place, 22) == (("Net.heads  ", "detail"), ("model.py:41", "location"))
    assert place_spans(*place, 21) == (("model.py:41", "location"),)
    assert place_spans(*place, 9) == (("mo….py:41", "location"),)


@pytest.mark.parametrize(
    ("file", "package", "is_python"),
    [
        (f"{SITE}/transformers/models/gpt2.py", "transformers", False),
        (f"{SITE}/einops.py", "einops", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "numpy", False),
        ("C:\\venv\\Lib\\site-packages\\einops\\einops.py", "einops", False),
        ("/usr/lib/python3.11/copy.py", None, True),
        ("C:\\Python311\\Lib\\copy.py", None, True),
        ("<frozen runpy>", None, True),
        (f"{BASE}/lib/model.py", None, False),
        ("<stdin>", None, False),
    ],
)
def test_whose_code_a_file_is(file: str, package: str | None, is_python: bool) -> None:
    assert installed_package(file) == package
    assert is_standard_library(file) is is_python
    assert is_library(file) is (is_python or package is not None)


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("Net.forward", "Net.forward", False),
        ("Net.forward.<locals>.<listcomp>", "Net.forward", True),
        ("f.<locals>.<dictcomp>.<locals>.<genexpr>", "f", True),
        ("wrap.<locals>.wrapper", "wrap.wrapper", False),
        ("f.<locals>.<lambda>", "f.<lambda>", False),
        ("<module>", "<module>", False),
        ("a\x1bb", "a\\x1bb", False),
    ],
)
def test_functions_are_named_for_reading(name: str, text: str, is_one: bool) -> None:
    assert function_text(name) == text
    assert is_comprehension(name) is is_one
