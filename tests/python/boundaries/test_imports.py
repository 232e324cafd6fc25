from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.boundaries.rule import (
    ALLOWED,
    BACKEND,
    NEEDED_AT_ONCE,
    OUTSIDE,
    WHEN_NEEDED,
    imported_early,
    modules_of,
    violations,
)

LIGHT = sorted(
    package
    for package in ALLOWED
    if ("torch" not in OUTSIDE.get(package, set()) or package in WHEN_NEEDED)
    and (BACKEND / "shapetrace" / package).is_dir()
)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A backend folder that keeps to the rule, for a test to break."""
    for package in ALLOWED:
        folder = tmp_path / "shapetrace" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    modules = ("inspecting/guards", "sinks/editor", "instrument/code", "views/shapes")
    for module in ("__init__", "_errors", *modules):
        (tmp_path / "shapetrace" / f"{module}.py").write_text("import os.path\n")
    (tmp_path / "pydevd_plugins").mkdir()
    return tmp_path


@pytest.mark.slow
def test_every_package_imports_only_what_it_may() -> None:
    assert violations(BACKEND) == []


@pytest.mark.slow
@pytest.mark.parametrize("package", LIGHT)
def test_importing_a_package_loads_no_heavy_library(package: str) -> None:
    early = imported_early(BACKEND, modules_of(BACKEND, package))
    assert set(early) == NEEDED_AT_ONCE.get(package, set())


@pytest.mark.slow
def test_beginning_the_agent_loads_no_heavy_library() -> None:
    assert imported_early(BACKEND, ["shapetrace.agent.bootstrap"]) == []


def test_importing_shapetrace_loads_no_heavy_library() -> None:
    assert imported_early(BACKEND, ["shapetrace"]) == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        (
            "events/tree",
            "import shapetrace.views",
            ["events.tree: must not import shapetrace.views"],
        ),
        ("events/tree", "from shapetrace import views", ["shapetrace.views"]),
        ("events/tree", "from ..views import shapes", ["shapetrace.views.shapes"]),
        ("events/tree", "def f():\n    import torch.nn", ["events.tree: must not import torch.nn"]),
        ("events/tree", "import importlib\nimportlib.import_module('rich')", ["import rich"]),
        (
            "events/tree",
            "from shapetrace import trace",
            ["events.tree: must not import shapetrace"],
        ),
        ("views/tree", "import torch", ["views.tree: must not import torch"]),
        ("views/tree", "from shapetrace.recorder.session import Recorder", ["recorder.session"]),
        ("views/tree", "from shapetrace.sinks.editor import Sink", ["shapetrace.sinks.editor"]),
        ("recorder/mode", "from shapetrace.sinks import editor", ["shapetrace.sinks.editor"]),
        ("recorder/mode", "import numpy", ["recorder.mode: must not import numpy"]),
        ("sinks/file", "import shapetrace.recorder", ["must not import shapetrace.recorder"]),
        ("transport/frame", "import shapetrace.sinks", ["must not import shapetrace.sinks"]),
        ("variables/follow", "import shapetrace.recorder", ["import shapetrace.recorder"]),
        ("capture/path", "import shapetrace.variables", ["must not import shapetrace.variables"]),
        ("instrument/code", "import shapetrace.events", ["must not import shapetrace.events"]),
        ("inspecting/memory", "import shapetrace.events", ["must not import shapetrace.events"]),
        ("inspecting/memory", "import torch", ["inspecting.memory: must not import torch"]),
        (
            "inspecting/profiling",
            "import shapetrace.inspecting.memory",
            ["inspecting.profiling: must not import shapetrace.inspecting.memory"],
        ),
        (
            "inspecting/later",
            "from shapetrace.inspecting import guards",
            ["inspecting.later: must not import shapetrace.inspecting.guards"],
        ),
        ("agent/start", "from shapetrace.views import tree", ["must not import shapetrace.views"]),
        ("agent/start", "import shapetrace.saving", ["must not import shapetrace.saving"]),
        ("agent/start", "import shapetrace.ranks", ["must not import shapetrace.ranks"]),
        ("capture/path", "import shapetrace.hdf5", ["must not import shapetrace.hdf5"]),
        ("saving/tracer", "import shapetrace.hdf5", ["must not import shapetrace.hdf5"]),
        ("server/app", "import shapetrace.agent", ["server.app: must not import shapetrace.agent"]),
        ("server/app", "import torch", ["server.app: must not import torch"]),
        (
            "server/scope",
            "from shapetrace.server.features.hover import hover",
            ["server.scope: must not import shapetrace.server.features.hover"],
        ),
        ("server/documents", "import shapetrace.server.store", ["import shapetrace.server.store"]),
        ("server/later", "import shapetrace.server.uris", ["import shapetrace.server.uris"]),
        ("compat/tracy_nn", "import shapetrace.cli", ["must not import shapetrace.cli"]),
        ("cli/run", "import torch", ["cli.run: must not import torch"]),
        ("recording", "import torch", ["recording: must not import torch"]),
        ("later/new", "import os", ["later.new: no rule says what later may import"]),
    ],
)
def test_a_planted_import_is_found(
    planted: Path, module: str, source: str, expected: list[str]
) -> None:
    assert violations(planted) == []
    path = planted / "shapetrace" / f"{module}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    found = violations(planted)
    assert len(found) == len(expected)
    assert all(end in line for line, end in zip(found, expected, strict=True)), found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("events/tree", "from shapetrace._errors import TraceFileError\nimport shapetrace.events"),
        ("events/tree", "from . import model\nfrom .. import _errors"),
        ("sinks/file", "import shapetrace.events"),
        ("recorder/mode", "import torch\nfrom shapetrace.events import model"),
        ("agent/start", "from shapetrace.views import shapes\nimport shapetrace.transport"),
        ("cli/run", "import shapetrace\nfrom shapetrace.recorder import mode"),
        ("recording", "from shapetrace.recorder import mode"),
        ("inspecting/stable_reads", "from shapetrace.inspecting.guards import held"),
        ("panes/line", "from shapetrace.inspecting.guards import held"),
        (
            "server/view",
            "import shapetrace.server.scope\nimport shapetrace.server.statement_values",
        ),
        ("views/colour", "def f():\n    import rich"),
    ],
)
def test_an_import_that_is_allowed_is_not_reported(planted: Path, module: str, source: str) -> None:
    (planted / "shapetrace" / f"{module}.py").write_text(source)
    assert violations(planted) == []


def test_an_optional_library_is_imported_by_one_module(planted: Path) -> None:
    for name in ("colour", "tree"):
        (planted / "shapetrace" / "views" / f"{name}.py").write_text("import rich")
    assert violations(planted) == [
        "rich: more than one module imports it: views.colour, views.tree"
    ]


def test_the_plugin_hands_over_to_the_agent_only(planted: Path) -> None:
    plugin = planted / "pydevd_plugins" / "pydevd_plugin_shapetrace.py"
    plugin.write_text("import shapetrace.agent.pane\nfrom _pydevd_bundle import x\n")
    assert violations(planted) == []
    plugin.write_text("import shapetrace.recorder\n")
    assert violations(planted) == ["pydevd_plugin_shapetrace: must not import shapetrace.recorder"]


def test_a_heavy_library_imported_early_is_found(planted: Path) -> None:
    (planted / "torch.py").touch()
    (planted / "rich.py").touch()
    (planted / "shapetrace" / "views" / "shapes.py").write_text("import torch\n")
    (planted / "shapetrace" / "views" / "late.py").write_text("def f():\n    import rich\n")
    assert imported_early(planted, modules_of(planted, "events")) == []
    assert imported_early(planted, modules_of(planted, "views")) == ["torch"]
