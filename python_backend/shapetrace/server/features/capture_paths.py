"""By which paths what stands at a place in the source is captured.

layers.*.attn.forward.scores    in all modules that the function ran in
layers.3.attn.forward.scores    in one of them
**.forward.scores               wherever there is one, also where nothing is known of a run
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shapetrace.capture.paths import component, joined
from shapetrace.events.model import ModuleCall
from shapetrace.server.capturable import Capturable, capturable_at, capturable_of_statement
from shapetrace.server.file_records import Key
from shapetrace.server.line_calls import calls_of, every_call_of
from shapetrace.server.messages.captures import CapturePath, CapturePaths
from shapetrace.server.processes import Process
from shapetrace.server.scope import module_of
from shapetrace.server.source_structure import Structure
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from shapetrace.views.styled import printable
from shapetrace.views.summary import counted

_FORWARD = "forward"
_EVERYWHERE = "**"
_WHEREVER = "in all modules that have one"
_MOST_SINGLE = 50
"""Modules that are offered one by one."""

_NUMBER = re.compile(r"\d+")
_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel"})
"""Outermost modules that a path begins below."""


NOTHING: Final = CapturePaths("", ())


@dataclass(frozen=True, slots=True)
class ModulePlace:
    """A module by its path, as a path of values has it."""

    path: str
    kind: str
    """The name of its class."""


def paths_at(
    structure: Structure,
    line: int,
    column: int,
    view: DocumentView | None,
    store: TraceStore,
    chosen: Key | None,
) -> CapturePaths:
    """The paths of what is at a place of a source as it is now; a chosen call's module first.

    The view tells which modules its functions ran in, where that is known.
    """
    capturable = capturable_at(structure, line, column)
    if capturable is None:
        return NOTHING
    places = [] if view is None else _modules(capturable, view, store, chosen)
    return _paths_of(capturable, structure, places, _known(store) if places else {})


def paths_of_call(
    process: Process, call: int, structure: Structure | None, store: TraceStore
) -> CapturePaths:
    """The paths of what a node of the trace tree made."""
    known = _known(store)
    module = process.modules.get(call)
    if module is not None:
        place = _place(module, process)
        outputs = _outputs(_alike(place, known))
        return CapturePaths(place.path or place.kind, _own_first(outputs, place))
    op = process.ops.get(call)
    around = None if op is None else process.modules.get(op.module or 0)
    if op is None or structure is None or op.line is None:
        return NOTHING
    capturable = capturable_of_statement(structure, op.line, op.column or 0)
    if capturable is None:
        return NOTHING
    own = None if around is None else _place(around, process)
    places = [] if own is None else _alike(own, known)
    found = _paths_of(capturable, structure, places, known)
    return CapturePaths(found.name, _own_first(found.paths, own))


def _alike(place: ModulePlace, known: Mapping[str, str]) -> list[ModulePlace]:
    """A module, and those whose paths differ from its own in nothing but numbers."""
    pattern = _pattern(place.path)
    others = (path for path in known if _pattern(path) == pattern and path != place.path)
    return [place, *(ModulePlace(path, known[path]) for path in sorted(others))]


def _own_first(paths: Iterable[CapturePath], place: ModulePlace | None) -> tuple[CapturePath, ...]:
    """Without other modules: the one that was pointed at, and then all of its kind."""
    prefix = "" if place is None else place.path
    own, shared = [], []
    for each in paths:
        if "*" in each.path:
            shared.append(each)
        elif each.path == prefix or each.path.startswith(f"{prefix}." if prefix else ""):
            own.append(each)
    return (*own[:1], *shared)


def _paths_of(
    capturable: Capturable,
    structure: Structure,
    places: Sequence[ModulePlace],
    known: Mapping[str, str],
) -> CapturePaths:
    name = printable(capturable.text)
    if capturable.attribute:
        attribute = joined(*map(component, capturable.attribute))
        modules = [joined(each.path, attribute) for each in places]
        inside = [ModulePlace(path, known[path]) for path in modules if path in known]
        if inside:
            return CapturePaths(name, tuple(_outputs(inside)))
        held = [path for path in modules if _has_below(path, known)]
        if held:
            return CapturePaths(name, (CapturePath(f"{held[0]}.*", "the modules in it"),))
        if not places and (capturable.is_called or _is_made_by_call(structure, capturable)):
            return CapturePaths(name, (CapturePath(f"{_EVERYWHERE}.{attribute}", _WHEREVER),))
        function = ("forward",) if capturable.function[0] == "__init__" else capturable.function
        return CapturePaths(name, tuple(_values(places, (*function, *capturable.names))))
    if not capturable.function:
        if not places:
            return NOTHING
        return CapturePaths(name, tuple(_outputs(places)))
    return CapturePaths(name, tuple(_values(places, (*capturable.function, *capturable.names))))


def _values(places: Sequence[ModulePlace], names: Sequence[str]) -> Iterable[CapturePath]:
    """Paths of a value in some modules."""
    suffix = joined(*map(component, names))
    yield from _generalized(places, suffix)
    for place in places[:_MOST_SINGLE]:
        yield CapturePath(joined(place.path, suffix), place.kind)
    yield CapturePath(f"{_EVERYWHERE}.{suffix}", _WHEREVER)


def _outputs(places: Sequence[ModulePlace]) -> Iterable[CapturePath]:
    """Paths of what some modules return."""
    yield from _generalized(places, "")
    for place in places[:_MOST_SINGLE]:
        yield CapturePath(place.path or _FORWARD, _what(place))


def _what(place: ModulePlace) -> str:
    return f"return value of {place.kind}" if place.kind else "return value"


def _generalized(places: Sequence[ModulePlace], suffix: str) -> Iterable[CapturePath]:
    """Paths that stand for all modules whose paths differ in nothing but numbers."""
    groups: dict[str, list[ModulePlace]] = {}
    for place in places:
        groups.setdefault(_pattern(place.path), []).append(place)
    for pattern, group in groups.items():
        if len(group) > 1:
            yield CapturePath(joined(pattern, suffix), counted(len(group), "module"))


def _pattern(path: str) -> str:
    return ".".join("*" if _NUMBER.fullmatch(part) else part for part in path.split("."))


def _modules(
    capturable: Capturable, view: DocumentView, store: TraceStore, chosen: Key | None
) -> list[ModulePlace]:
    """The modules that the function ran in, or else another method of its class."""
    structure = view.structure
    prefix = f"{capturable.owner}."
    own = [
        each
        for each in structure.functions
        if each.qualified_name.startswith(prefix) and "." not in each.qualified_name[len(prefix) :]
    ]
    wanted = capturable.function[:1]
    first = [each for each in own if each.node.name in wanted]
    for functions in (first, own):
        keys: list[Key] = []
        for function in functions:
            keys += every_call_of(view, store, function) or calls_of(view, store, function)
            if not keys:
                for each in view.records.base.expressions(function.first, function.last):
                    around = ((key[0], module_of(call)) for key, call in each.calls.items())
                    keys += [(number, module) for number, module in around if module is not None]
        places = _places(keys, store, chosen)
        if places:
            return places
    return []


def _places(keys: Iterable[Key], store: TraceStore, chosen: Key | None) -> list[ModulePlace]:
    """The modules of some calls, each once, in the order of the calls."""
    found: dict[str, ModulePlace] = {}
    for key in sorted(set(keys), key=lambda key: (key != chosen, key)):
        process = store.process(key[0])
        call = None if process is None else process.modules.get(key[1])
        if process is not None and call is not None and "<" not in call.path:
            place = _place(call, process)
            found.setdefault(place.path, place)
    return list(found.values())


def value_path(names: Sequence[str]) -> str:
    """The path of a module, as a path of values has it."""
    return joined(*(component(name) for name in names if name))


def _place(call: ModuleCall, process: Process) -> ModulePlace:
    path = call.path
    outermost = call
    while outermost.parent is not None and outermost.parent in process.modules:
        outermost = process.modules[outermost.parent]
    if outermost.class_name in _WRAPPERS:
        path = path.removeprefix("module").removeprefix(".")
    return ModulePlace(value_path(path.split(".")), printable(call.class_name))


def _known(store: TraceStore) -> Mapping[str, str]:
    """The paths of all modules that were called in the newest run, with their classes."""
    newest = store.newest_session()
    processes = () if newest is None else newest.processes.values()
    places = (_place(call, it) for it in processes for call in it.modules.values())
    return {place.path: place.kind for place in places}


def _has_below(path: str, known: Mapping[str, str]) -> bool:
    return any(each.startswith(f"{path}.") for each in known)


def _is_made_by_call(structure: Structure, capturable: Capturable) -> bool:
    """Whether a class gives an attribute what a class of modules makes, by the look of it."""
    name = re.escape(capturable.attribute[0])
    made = re.compile(rf"\bself\.{name}\s*(?::[^=]+)?=\s*(?:\w+\.)*[A-Z]\w*\(")
    return len(capturable.attribute) == 1 and any(map(made.search, structure.lines))
