"""Resolves paths in a model: which functions of which modules to follow, and for which values."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Final

from torch import nn
from torch.nn import Module

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import catching_everywhere
from shapetrace._pending_exceptions import raise_later
from shapetrace.capture.paths import ANY, PathPart, States, ValuePath, joined, nearest
from shapetrace.capture.problems import CaptureIssue
from shapetrace.capture.scripted import is_scripted
from shapetrace.capture.structure import (
    CaptureTarget,
    Catalogue,
    children_of,
    function_of,
    helpers_of,
    is_torchs_own,
)
from shapetrace.capture.value_changes import SeenInCall

FORWARD: Final = "forward"
_FUSED: Final = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)


@dataclass(slots=True, eq=False)
class Want:
    """A value to capture, under one name."""

    name: str
    receiver: int
    """Index of the session's receiver that gets it."""
    whole: bool = False
    """Whether the value itself is captured."""
    routes: list[tuple[ValuePath, States]] = field(default_factory=list)
    """Paths of parts of it that are captured."""
    last: SeenInCall | None = None
    """What was saved last."""
    parts: dict[str, Want] = field(default_factory=dict)
    """The parts of it that were captured, by name."""


@dataclass(slots=True, eq=False)
class Subject:
    """A function as called by one module, which is held weakly."""

    reference: weakref.ref[Module]
    number: int
    """Id of the module, which another one may get once it is gone."""
    is_scripted: bool
    """Whether it is compiled by TorchScript."""
    path: str
    """The module's."""
    name: str
    target: CaptureTarget
    locals: dict[str, list[Want]] = field(default_factory=dict)
    returns: list[Want] = field(default_factory=list)
    was_entered: bool = False
    """Whether it was called in a captured iteration."""

    @property
    def module(self) -> Module | None:
        """The module; None once it is gone."""
        return self.reference()

    @property
    def full_name(self) -> str:
        """The function's path."""
        return joined(self.path, self.name)

    @property
    def wants(self) -> Iterator[Want]:
        """All values to capture from it."""
        yield from self.returns
        for wants in self.locals.values():
            yield from wants


class Plan:
    """What all paths of a session resolve to."""

    def __init__(self, root: Module, receivers: Iterable[Iterable[ValuePath]]) -> None:
        self.subjects: list[Subject] = []
        self.wants: dict[str, list[Want]] = {}
        """The values of each path, by its text."""
        self.misses: list[CaptureIssue] = []
        """An issue for each path that matches nothing, with the nearest names."""
        self.fused: set[str] = set()
        """Paths of visited modules that have a fused path in torch."""
        self._subjects: dict[tuple[int, FunctionType, tuple[str, ...]], Subject] = {}
        self._wants: dict[tuple[int, str], Want] = {}
        self._listed: set[tuple[str, int]] = set()
        self._first_names: dict[tuple[int, str, str, int], str] = {}
        # Not kept: a function's closure may hold the model.
        catalogue = Catalogue(root)
        for number, paths in enumerate(receivers):
            for path in paths:
                search = _Search(self, path, number, catalogue)
                search.module(root, "", path.start, 0)
                if not self.wants.setdefault(path.text, []):
                    self.misses.append(CaptureIssue("unmatched", search.miss_text(), path.text))

    def subject(self, module: Module, path: str, name: str, target: CaptureTarget) -> Subject:
        """The subject of a function and a module, made once."""
        key = (id(module), target.function, target.nested)
        subject = self._subjects.get(key)
        if subject is None:
            subject = self._subjects[key] = Subject(
                weakref.ref(module), id(module), is_scripted(module), path, name, target
            )
            self.subjects.append(subject)
        return subject

    def forget_values(self) -> None:
        """Drop the parameters that were saved last, as the model is gone."""
        for subject in self.subjects:
            for want in subject.wants:
                want.last = None
                want.parts.clear()

    @property
    def forgetting(self) -> Callable[[object], None]:
        """The callback of a weak reference to the model, which must not raise."""

        @catching_everywhere
        def forget(_reference: object) -> None:
            try:
                self.forget_values()
            except BaseException as error:
                self.forget_values()
                if not is_asynchronous(error):
                    raise
                later = raise_later(error)
                del later

        return forget

    def want(
        self, path: ValuePath, number: int, module: Module, name: str, kind: str
    ) -> Want | None:
        """The want of this name; None if a wildcard reached the same module under another name.

        A module that occurs in several places of a model goes by its first name.
        """
        if path.is_wild:
            key = (number, path.text, kind, id(module))
            if self._first_names.setdefault(key, name) != name:
                return None
        want = self._wants.get((number, name))
        if want is None:
            want = self._wants[number, name] = Want(name, number)
        wants = self.wants.setdefault(path.text, [])
        # A dictionary, as a path may match thousands of values.
        if (path.text, id(want)) not in self._listed:
            self._listed.add((path.text, id(want)))
            wants.append(want)
        return want


@dataclass(slots=True)
class _Miss:
    """Where a path stopped matching."""

    progress: tuple[int, int]
    """The missing part of the path, and its depth in the model."""
    where: str
    names: list[str]
    """The names there are instead; after ``**``, at all places where the part could match."""


class _Search:
    """Follows one path through a model."""

    def __init__(self, plan: Plan, path: ValuePath, number: int, catalogue: Catalogue) -> None:
        self._plan = plan
        self._path = path
        self._number = number
        self._catalogue = catalogue
        self._miss: _Miss | None = None

    def miss_text(self) -> str:
        """Why nothing was found, as the end of a sentence that begins with the path."""
        miss, parts = self._miss, self._path.parts
        if miss is None:
            return "matches nothing in this model"
        part = miss.progress[0]
        wanted = parts[part].text
        found = ", ".join(nearest(wanted, miss.names))
        has = f"nearest there: {found}" if found else "nothing is there"
        lacks = f"{miss.where} has no {wanted!r}"
        if self._is_anywhere(part):
            before = ".".join(each.text for each in parts[: part - 1])
            lacks = f"no module of this model has anything called {wanted!r}"
            if before:
                lacks = f"nothing in {before!r} is called {wanted!r}"
        return f"matches nothing: {lacks}; {has}"

    def _is_anywhere(self, part: int) -> bool:
        """Return whether a part of the path comes after ``**`` and so may match in many places."""
        return part > 0 and self._path.parts[part - 1] == PathPart(ANY, True)

    def module(self, module: Module, name: str, states: States, depth: int) -> None:
        """Go on at a module."""
        path = self._path
        if isinstance(module, _FUSED):
            self._plan.fused.add(name)
        if name and path.is_complete(states):
            target = function_of(module, FORWARD)
            if target is not None:
                self._want_return(module, name, FORWARD, target, name)
        if not path.goes_on(states):
            return
        children = dict(children_of(module))
        functions = self._functions(module, states, children)
        for inner, target in functions.items():
            is_hidden = inner.startswith("__") or inner not in self._catalogue.called
            is_hidden = is_hidden or is_torchs_own(target.function, module)
            following = path.after(states, inner, by_name=is_hidden)
            if following:
                self._function(module, name, inner, target, following, states, depth + 1)
        for inner, child in children.items():
            following = path.after(states, inner)
            if following:
                self.module(child, joined(name, inner), following, depth + 1)
        where = f"module {name!r}" if name else f"the model ({type(module).__name__})"
        self._note_miss(depth, where, states, [*children, *functions])

    def _function(
        self,
        module: Module,
        owner: str,
        name: str,
        target: CaptureTarget,
        states: States,
        spent: States,
        depth: int,
        *,
        returns: bool = True,
    ) -> None:
        path = self._path
        if returns and path.is_complete(states):
            self._want_return(module, owner, name, target, joined(owner, name))
        if not path.goes_on(states):
            return
        names, nested = self._catalogue.variables(target), target.nested_names()
        for inner in names:
            following = path.after(states, inner, spent=spent)
            # The plain path of a nested function stands for what it returns.
            if not following or (inner in nested and path.after(states, inner, by_name=True)):
                continue
            full = joined(owner, name, inner)
            want = self._plan.want(path, self._number, module, full, f"{name}.{inner}")
            if want is None:
                continue
            want.whole = want.whole or path.is_complete(following)
            if path.goes_on(following):
                want.routes.append((path, following))
            subject = self._plan.subject(module, owner, name, target)
            wants = subject.locals.setdefault(inner, [])
            if want not in wants:
                wants.append(want)
        for inner in nested:
            following = path.after(states, inner)
            if following:
                within = target.inside(inner)
                full = f"{name}.{inner}"
                is_named = bool(path.after(states, inner, by_name=True))
                self._function(
                    module, owner, full, within, following, spent, depth + 1, returns=is_named
                )
        self._note_miss(depth, f"function {joined(owner, name)!r}", states, [*names, *nested])

    def _want_return(
        self, module: Module, owner: str, name: str, target: CaptureTarget, called: str
    ) -> None:
        kind = "" if called == owner else name
        want = self._plan.want(self._path, self._number, module, called, kind)
        if want is not None:
            want.whole = True
            returns = self._plan.subject(module, owner, name, target).returns
            if want not in returns:
                returns.append(want)

    def _functions(
        self, module: Module, states: States, children: dict[str, Module]
    ) -> dict[str, CaptureTarget]:
        """The functions of a module that match the next part of the path, and the names of all."""
        catalogue = self._catalogue
        methods = catalogue.methods(module)
        found = dict(methods)
        literal = self._path.named_next(states)
        named = [name for name in literal if name not in children and name not in found]
        for name in named:
            target = function_of(module, name)
            if target is not None:
                found[name] = target
        is_wild = len(literal) < sum(state < len(self._path.parts) for state in states)
        if is_wild or any(name not in found for name in named):
            for name, target in catalogue.helpers(module).items():
                found.setdefault(name, target)
        for name in named:
            if name not in found:
                target = self._elsewhere(name, methods)
                if target is not None:
                    found[name] = target
        return found

    @staticmethod
    def _elsewhere(name: str, methods: dict[str, CaptureTarget]) -> CaptureTarget | None:
        """A function nested in a method, or called by a method that no ``forward`` calls."""
        for method in methods.values():
            inner = method.inside(name)
            if inner.code is not None:
                return inner
        return helpers_of(methods.values()).get(name)

    def _note_miss(self, depth: int, where: str, states: States, names: list[str]) -> None:
        parts, miss = self._path.parts, self._miss
        missing = [
            state
            for state in states
            if state < len(parts) and not parts[state].is_wild and parts[state].text not in names
        ]
        if not missing:
            return
        part = max(missing)
        if miss is not None and miss.progress[0] == part and self._is_anywhere(part):
            miss.names.extend(names)
        elif miss is None or (part, depth) > miss.progress:
            self._miss = _Miss((part, depth), where, list(names))
