"""Where variables got their values: what functions, scripts and modules say by their bytecode."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

from shapetrace.recorder import origins as recorder_origins
from tests.python.unit.panes import programs

BEGINNING = """
import torch
from tests.python.unit.panes.programs import place
"""


def places_of_program(mark: str) -> str:
    return f"{programs.__file__}:{line_of(Path(programs.__file__).read_text('utf-8'), mark)}"


def line_of(text: str, mark: str) -> int:
    lines = enumerate(text.splitlines(), 1)
    return next(number for number, line in lines if line.endswith(f"# @{mark}"))


def test_where_a_variable_got_its_value() -> None:
    first, second = places_of_program("first"), places_of_program("second")
    assert programs.branches(True) == programs.branches(False) == f"{first} or {second}"
    assert programs.passed(torch.ones(3)) is None
    assert programs.passes() == places_of_program("kept")
    assert programs.renamed(torch.ones(3)) == places_of_program("renamed")
    assert programs.loops() == places_of_program("loop")
    # Until 3.13 all who read a function's locals share one dictionary.
    read = sys.version_info >= (3, 13)
    assert programs.looks_at_its_locals() == (places_of_program("looks") if read else None)


def found_by(
    text: str, directory: Path, found: str = "found", **variables: Any
) -> tuple[Any, dict[str, str]]:
    """What a script has found, and its lines that have a mark; it may begin with variables."""
    path = directory / "script.py"
    text = BEGINNING + dedent(text)
    path.write_text(text, "utf-8")
    names = {"__name__": "__main__", "__file__": str(path)} | variables
    exec(compile(text, str(path), "exec"), names)
    marks = {
        line.rpartition("# @")[2]: f"{path}:{number}"
        for number, line in enumerate(text.splitlines(), 1)
        if "# @" in line
    }
    return names[found], marks


SCRIPTS = {
    "a statement": ("x = torch.ones(2)  # @a\nfound = place(x)", "a"),
    "the last of two": ("x = 1\nx = torch.ones(2)  # @a\nfound = place(x)", "a"),
    "one of two": (
        """
        if torch.ones(1):
            x = torch.ones(2)  # @a
        else:
            x = torch.zeros(2)  # @b
        found = place(x)
        """,
        "a or b",
    ),
    "a loop": ("for x in [torch.ones(2)] * 3:  # @a\n    found = place(x)", "a"),
    "after a block": (
        "with torch.no_grad():\n    x = torch.ones(2)  # @a\nfound = place(x)",
        "a",
    ),
    "from within a function": (
        "def look(it): return place(it)\nx = torch.ones(2)  # @a\nfound = look(x)",
        "a",
    ),
    "two names for one value": ("x = y = torch.ones(2)  # @a\ndel x\nfound = place(y)", "a"),
    "one that is sure, one that is not": (
        """
        def put():
            global x
            x = torch.ones(2)
        put()
        y = x  # @a
        found = place(x)
        """,
        "a",
    ),
    "asks an object for its attributes": (
        "class O: pass\nvars(O())\nx = torch.ones(2)  # @a\nfound = place(x)",
        "a",
    ),
}


@pytest.mark.parametrize("what", SCRIPTS)
def test_a_script_tells_where_its_variables_were_assigned(what: str, tmp_path: Path) -> None:
    text, expected = SCRIPTS[what]
    found, marks = found_by(text, tmp_path)
    assert found == " or ".join(marks[mark] for mark in expected.split(" or "))


UNKNOWN = {
    "a function stores to it": """
        def put():
            global x
            x = torch.zeros(2)
        x = torch.ones(2)
        put()
        found = place(x)
        """,
    "by its name as a text": "x = 1\nglobals()['x'] = torch.ones(2)\nfound = place(x)",
    "by its own variables": "x = 1\nvars()['x'] = torch.ones(2)\nfound = place(x)",
    "by code in a text": "x = 1\nexec('x = torch.ones(2)')\nfound = place(x)",
    "from another module": """
        from tests.python.unit.panes.values import *
        x = 1
        found = place(torch.ones(2))
        """,
    "an attribute": """
        class O: pass
        o = O()
        o.x = torch.ones(2)
        found = place(o.x)
        """,
    "an item": "x = [torch.ones(2)]\nfound = place(x[0])",
    "a name of the class": """
        class O:
            x = torch.ones(2)
            found = place(x)
        found = O.found
        """,
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_is_not_known_is_not_told(what: str, tmp_path: Path) -> None:
    found, _ = found_by(UNKNOWN[what], tmp_path)
    assert found is None


def test_a_script_that_began_with_variables(tmp_path: Path) -> None:
    """As in a notebook: what it has not assigned for certain may be a former run's."""
    text = "if len(given) > 2:\n    x = torch.ones(2)\nfound = place(x)"
    other: dict[str, Any] = {"__file__": "elsewhere.py", "x": torch.ones(2)}
    assert found_by(text, tmp_path, given="", **other)[0] is None
    certain = "x = torch.ones(2)  # @a\nfound = place(x)"
    found, marks = found_by(certain, tmp_path, **other)
    assert found == marks["a"]


def test_a_module_that_is_loaded_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "loaded_twice.py"
    text = f"{BEGINNING}if 'found' not in dir():\n    x = torch.ones(2)\nfound = place(x)\n"
    path.write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("loaded_twice")
    try:
        assert module.found == f"{path}:5"
        assert importlib.reload(module).found is None
    finally:
        del sys.modules["loaded_twice"]


def test_what_was_set_by_hand_was_assigned_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_origins, "_changed", {})
    text = """
        import sys
        from shapetrace.recorder.origins import changed_by_hand
        def change(): changed_by_hand(sys._getframe(), is_global=is_global)
        x = torch.ones(2)  # @a
        change()
        found = place(x)
        """
    found, marks = found_by(text, tmp_path, is_global=False)
    assert found == marks["a"]
    assert found_by(text, tmp_path, is_global=True)[0] is None


@pytest.mark.slow
def test_a_script_as_python_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(f"{BEGINNING}x = torch.ones(2)\nprint(place(x))\n", "utf-8")
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, str(path)],
        env={"PYTHONPATH": f"{root / 'python_backend'}:{root}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == f"{path}:4\n"


def test_places_in_the_open_folder_are_told_from_there(tmp_path: Path) -> None:
    text = """
        from pathlib import Path
        from shapetrace.panes import children
        def told(it, folder):
            return [str(each.value) for each in children(it, None, folder) if "at" in each.name]
        x = torch.ones(2)  # @a
        here = str(Path(__file__).parent)
        found = [told(x, folder)[-1] for folder in (here, here + "/", here + "/no", here[:-1], "")]
        """
    found, marks = found_by(text, tmp_path)
    line = marks["a"].rpartition(":")[2]
    outside = f"script.py:{line} · {marks['a']}"
    assert found == [f"./script.py:{line}"] * 2 + [outside] * 3
