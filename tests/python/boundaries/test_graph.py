"""No imports in circles, and no grant of the rule that nobody uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.boundaries.graph import (
    KNOWN_CYCLES,
    cycle_in,
    import_graph,
    unused_grants,
    unused_libraries,
)
from tests.python.boundaries.rule import BACKEND

FOR_TYPES = """\
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from shapetrace.views import tree
"""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A backend folder of three modules, of which one imports the next."""
    for module, source in {
        "events/model": "import os",
        "events/rows": "from shapetrace.events import model",
        "views/tree": "def f():\n    from shapetrace.events.rows import read",
        "_errors": "",
    }.items():
        path = tmp_path / "shapetrace" / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path


@pytest.mark.slow
def test_no_imports_go_in_circles_but_those_that_are_listed() -> None:
    assert cycle_in(import_graph(BACKEND, KNOWN_CYCLES)) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", KNOWN_CYCLES)
def test_each_that_is_listed_is_in_a_circle(module: str) -> None:
    others = KNOWN_CYCLES.keys() - {module}
    assert module in cycle_in(import_graph(BACKEND, others))


@pytest.mark.parametrize(
    "source",
    [
        "import shapetrace.views.tree",
        "def f():\n    from shapetrace.views.tree import show",
        FOR_TYPES,
    ],
)
def test_a_planted_circle_is_found(planted: Path, source: str) -> None:
    assert cycle_in(import_graph(planted)) == []
    (planted / "shapetrace" / "events" / "model.py").write_text(source)
    assert {*cycle_in(import_graph(planted))} == {"events.model", "events.rows", "views.tree"}


def test_only_imports_for_types_can_be_listed(planted: Path) -> None:
    model = planted / "shapetrace" / "events" / "model.py"
    model.write_text(FOR_TYPES)
    assert cycle_in(import_graph(planted, ["views.tree"])) == []
    model.write_text("from shapetrace.views import tree")
    assert cycle_in(import_graph(planted, ["views.tree"])) != []


@pytest.mark.slow
def test_every_grant_is_used() -> None:
    assert unused_grants(import_graph(BACKEND)) == []
    assert unused_libraries(BACKEND) == []


def test_a_planted_grant_that_nobody_uses_is_found(planted: Path) -> None:
    graph = import_graph(planted)
    allowed: dict[str, set[str]] = {"events": set(), "views": {"events.rows"}, "cli": {"*"}}
    assert unused_grants(graph, allowed, ()) == []
    allowed["views"].add("events.model")
    assert unused_grants(graph, allowed, ["_errors"]) == [
        "views: nothing there imports events.model",
        "no package imports _errors",
    ]
    assert unused_libraries(planted, {"views": {"rich"}}) == ["views: nothing there imports rich"]
    (planted / "shapetrace" / "views" / "tree.py").write_text("import rich.text")
    assert unused_libraries(planted, {"views": {"rich"}}) == []
