"""Which package may import which, and a reader of the source that tells who does not keep to it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BACKEND = Path(__file__).parents[3] / "python_backend"

ALLOWED: dict[str, set[str]] = {
    "events": set(),
    "comparing": {"events"},
    "views": {"comparing", "events"},
    "transport": {"events"},
    "sinks": {"events"},
    "process": set(),
    "inspecting": set(),
    "recorder": {"events", "inspecting"},
    "instrument": set(),
    "variables": {
        *("events", "inspecting", "instrument", "panes", "views"),
        *("recorder.describe", "recorder.plain_rows"),
    },
    "watch": {"instrument", "variables"},
    "capture": {"inspecting", "instrument"},
    "saving": {"capture", "events", "inspecting", "ranks"},
    "ranks": {"capture.copies", "capture.results", "inspecting", "process.own_threads"},
    "hdf5": {"capture.copies", "capture.problems", "events", "inspecting"},
    "panes": {"events", "inspecting", "recorder", "views"},
    "agent": {
        *("events", "inspecting", "panes", "recorder", "variables", "watch", "capture"),
        *("instrument", "process", "transport", "views.shapes"),
    },
    "server": {"comparing", "events", "views", "transport", "capture.paths", "watch.wanted"},
    "compat": {
        *("events", "views", "variables", "live", "process", "recording"),
        *("capture.results", "saving", "hdf5"),
    },
    "cli": {"*"},
}
"""What of ours each package may import, beside itself and the modules below."""

SHARED = {
    *("_asynchronous", "_exception_table", "_locks", "_pending_exceptions"),
    *("_classes", "_dynamo", "_errors", "_files", "_frames", "_syntax"),
}
"""Modules beside the packages that every package may import. The others there may import all."""

LAYERS: dict[str, tuple[set[str], ...]] = {
    "inspecting": (
        {"attributes", "guards", "profiling"},
        {"memory"},
        {"readability", "stable_reads"},
        {"sampling", "statistics", "unnoticed"},
        {"torch_access"},
        {"containers"},
        {"changes"},
        {"tensor_changes"},
    ),
    "server": (
        # What knows nothing of programs: places in texts, and what is sent to the editor.
        {"garbage", "line_alignment", "messages", "ranges", "refresh", "uris"},
        # The text that the editor has.
        {"capturable", "definitions", "documents", "plain_lines", "source_structure"}
        | {"statements", "sync"},
        # What programs have sent.
        {"file_records", "listener", "message_journal", "nesting", "processes", "repin"}
        | {"requested", "scope", "sessions", "store", "watched_lines"},
        # Both together: what is known of a statement.
        {"line_calls", "pin_and_focus", "records_in_scope", "statement_values", "view"},
        # What is shown of it: functions of values, which know of no protocol's server.
        {"features"},
        # What is answered to the editor.
        {"capture_requests", "comparisons", "export", "handling", "navigation", "stop_focus"}
        | {"watch_requests"},
        {"app"},
        {"__main__"},
    ),
}
"""The modules and folders of a package, lowest first: each may import its own and lower layers."""

OUTSIDE: dict[str, set[str]] = {
    "views": {"rich"},
    "recorder": {"torch"},
    "capture": {"torch"},
    "saving": {"torch"},
    "ranks": {"torch"},
    "hdf5": {"h5py", "numpy", "torch"},
    "compat": {"torch"},
    "agent": {"torch"},
    "server": {"cattrs", "lsprotocol", "pygls"},
}
"""What each package may import that is neither ours nor the standard library's."""

IN_ONE_MODULE = {"h5py", "rich"}
"""Optional libraries: one module uses each, and the rest works without it."""

HEAVY = {"torch", "numpy", "rich", "h5py", "pygls"}
"""What nothing may import before it is needed."""

WHEN_NEEDED = {"compat"}
"""Packages that may import torch, and do so only when they are used."""

NEEDED_AT_ONCE = {"server": {"pygls"}}
"""What a package needs from its first moment on, of these."""


def violations(backend: Path) -> list[str]:
    """The imports in a backend folder that break the rule, each as one line."""
    root = backend / "shapetrace"
    found: list[str] = []
    users: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        package = module.partition(".")[0] if path.parent != root else None
        if package is not None and package not in ALLOWED:
            found.append(f"{module}: no rule says what {package} may import")
            continue
        for imported in sorted(set(imports_of(path, root))):
            if not (_may_import(package, imported) and _keeps_layers(module, imported)):
                found.append(f"{module}: must not import {imported}")
            outside = imported.partition(".")[0]
            if outside in IN_ONE_MODULE and module not in users.setdefault(outside, []):
                users[outside].append(module)
    for outside, modules in sorted(users.items()):
        if len(modules) > 1:
            found.append(f"{outside}: more than one module imports it: {', '.join(modules)}")
    for path in sorted((backend / "pydevd_plugins").rglob("*.py")):
        for imported in sorted(set(imports_of(path, root))):
            if imported.startswith("shapetrace") and not is_in(imported, {"shapetrace.agent"}):
                found.append(f"{path.stem}: must not import {imported}")
    return found


def imported_early(backend: Path, modules: list[str]) -> list[str]:
    """The heavy libraries that importing these modules imports, in a Python of its own."""
    program = (
        f"import sys; sys.path.insert(0, {str(backend)!r})\n"
        + "".join(f"import {module}\n" for module in modules)
        + f"print(*sorted({HEAVY!r} & sys.modules.keys()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return result.stdout.split()


def modules_of(backend: Path, package: str) -> list[str]:
    """The modules of a package by their full names, and the package itself."""
    root = backend / "shapetrace"
    paths = sorted((root / package).rglob("*.py"))
    names = [".".join(path.relative_to(backend).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def _may_import(package: str | None, imported: str) -> bool:
    library, _, inside = imported.partition(".")
    if library != "shapetrace":
        permitted = OUTSIDE.get(package, set()) if package else set()
        return library in sys.stdlib_module_names or library in permitted
    if package is None or "*" in ALLOWED[package]:
        return True
    return is_in(inside, ALLOWED[package] | SHARED | {package})


def _keeps_layers(module: str, imported: str) -> bool:
    """Whether a module of a package with layers imports no module above it."""
    package, _, inner = module.partition(".")
    prefix = f"shapetrace.{package}."
    if package not in LAYERS or inner == "__init__" or not imported.startswith(prefix):
        return True
    own, of = (_layer(package, each) for each in (inner, imported.removeprefix(prefix)))
    return own is not None and of is not None and of <= own


def _layer(package: str, inner: str) -> int | None:
    name = inner.partition(".")[0]
    return next((at for at, layer in enumerate(LAYERS[package]) if name in layer), None)


def is_in(module: str, places: set[str]) -> bool:
    """Whether a module is one of these, or in one of these packages."""
    return any(module == place or module.startswith(f"{place}.") for place in places)


def imports_of(path: Path, root: Path, tree: ast.Module | None = None) -> Iterator[str]:
    """The full names of all modules that a file imports anywhere in it, or in some of it."""
    here = ["shapetrace", *path.relative_to(root).parent.parts] if root in path.parents else []
    for node in ast.walk(tree or ast.parse(path.read_text("utf-8"), str(path))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                base = ".".join([*here[: len(here) - level + 1], *filter(None, [source])])
                base = base if level else str(source)
                for alias in names:
                    full = f"{base}.{alias.name}"
                    yield full if _is_ours(full, root) else base
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name


def _is_ours(module: str, root: Path) -> bool:
    path = root.parent.joinpath(*module.split("."))
    return root in path.parents and (path.with_suffix(".py").exists() or path.is_dir())
