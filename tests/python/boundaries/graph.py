"""Who imports whom in a backend folder, what goes in circles, and which grants nobody uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeAlias

from tests.python.boundaries.rule import ALLOWED, OUTSIDE, SHARED, imports_of, is_in

Graph: TypeAlias = dict[str, set[str]]
"""What each module imports, by its name within the package."""

KNOWN_CYCLES: dict[str, str] = {
    "recorder.session": "the recorder hands itself to its parts, which name its type",
    "recorder.thread_state": "what finds and describes a call is handed the state of its thread",
    "recorder.call_finder": "the state of a thread is a finder of calls, whose parts name its type",
    "recorder.evaluation": "the state of a thread knows the evaluation that runs at a stop",
    "recorder.patches": "what is compiled is stepped around by the patches that begin it",
    "recorder.records": "an activation knows the module call that it is in, which has a call site",
    "recorder.watched_threads": "what is to be left aside is asked of the thread that is watched",
}
"""Modules that others import for type checkers alone and in circles, and what for.

They are left so until the recorder is divided into parts that name protocols.
"""


def import_graph(backend: Path, without: Iterable[str] = ()) -> Graph:
    """The imports of all modules, wherever they stand, those for type checkers too.

    Of the modules ``without``, imports for type checkers alone are left out.
    """
    root = backend / "shapetrace"
    paths = {_name(path, root): path for path in sorted(root.rglob("*.py"))}
    graph: Graph = {}
    for name, path in paths.items():
        imported, for_types = _imported(path, root, path.read_text("utf-8"))
        graph[name] = (imported & paths.keys()) - (for_types & {*without}) - {name}
    return graph


def cycle_in(graph: Graph) -> list[str]:
    """The modules of one circle, each of which imports the one before; none where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def unused_grants(
    graph: Graph,
    allowed: Mapping[str, set[str]] = ALLOWED,
    shared: Iterable[str] = SHARED,
) -> list[str]:
    """The places that a package may import and does not, each as one line."""
    used: dict[str, set[str]] = {}
    for module, imported in graph.items():
        used.setdefault(module.partition(".")[0], set()).update(imported)
    found = [
        f"{package}: nothing there imports {place}"
        for package, places in allowed.items()
        for place in sorted(places - {"*"})
        if not any(is_in(module, {place}) for module in used.get(package, ()))
    ]
    return found + [
        f"no package imports {place}"
        for place in sorted(shared)
        if not any(place in modules for package, modules in used.items() if package in allowed)
    ]


def unused_libraries(backend: Path, outside: Mapping[str, set[str]] = OUTSIDE) -> list[str]:
    """The libraries that a package may import and does not, each as one line."""
    root = backend / "shapetrace"
    return [
        f"{package}: nothing there imports {library}"
        for package, libraries in outside.items()
        for library in sorted(libraries - _libraries_of(root / package, root))
    ]


def _libraries_of(folder: Path, root: Path) -> set[str]:
    return {
        imported.partition(".")[0]
        for path in folder.rglob("*.py")
        for imported in imports_of(path, root)
    }


@cache
def _imported(path: Path, root: Path, text: str) -> tuple[set[str], set[str]]:
    """What a file imports, and what of it for type checkers alone."""
    tree = ast.parse(text, str(path))
    everywhere = {_inside(each) for each in imports_of(path, root, tree)}
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ]
    return everywhere, everywhere - {_inside(each) for each in imports_of(path, root, tree)}


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _inside(module: str) -> str:
    return module.removeprefix("shapetrace").removeprefix(".")
