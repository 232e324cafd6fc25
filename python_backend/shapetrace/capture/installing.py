"""Installs listeners on a model's functions, and removes them.

Functions are followed by rewriting them (``instrument``). Where that is impossible, and around
compiled code, modules and methods are followed from the outside: by arguments and results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias

from torch.nn import Module

from shapetrace._asynchronous import is_asynchronous
from shapetrace.capture.fused_steps import hear_of_fused_steps
from shapetrace.capture.listeners import Capture, FunctionListener, ModuleListener, RootListener
from shapetrace.capture.plan import FORWARD, Plan, Subject
from shapetrace.capture.problems import CaptureIssue
from shapetrace.capture.replacing import can_be_replaced, listen, stop_listening
from shapetrace.capture.structure import function_of, is_compiled, wrappers_of
from shapetrace.capture.watch_importlib_bootstrap import CallListener, Wrapped
from shapetrace.instrument import CannotFollowError, Interest, follow

Undo: TypeAlias = list[Callable[[], None]]


class ListenerInstaller:
    """Installs the listeners of one plan; short-lived, as it holds the model."""

    def __init__(self, capture: Capture, model: Module, plan: Plan) -> None:
        self._capture = capture
        self._chain = wrappers_of(model)
        self._root = self._chain[-1]
        self._plan = plan

    def start(self, undo: Undo) -> None:
        """Install the listeners; the function that undoes each step is appended to a list."""
        hear_of_fused_steps(undo)
        inside, outside = self._apart()
        for (function, nested), subjects in _by_function(inside).items():
            self._follow(undo, function, nested, subjects, outside)
        if not any(is_compiled(module) for module in self._chain):
            self._count_direct_calls(undo, inside)
        self._listen_from_outside(undo, outside)
        # Last, so that the iteration begins before any function in it is reported.
        for kind in {type(module) for module in self._chain}:
            root = RootListener(self._capture)
            self._listen(undo, kind, "__call__", root, outermost=True)

    def _apart(self) -> tuple[list[Subject], list[Subject]]:
        """Split subjects into those that can be followed and those in compiled code."""
        compiled: dict[str, Module] = {}
        around = any(is_compiled(module) for module in self._chain)
        for name, module in self._root.named_modules():
            if is_compiled(module):
                compiled[name] = module
        if not compiled and not around:
            return self._plan.subjects, []
        inside: list[Subject] = []
        outside: list[Subject] = []
        lost: list[Subject] = []
        for subject in self._plan.subjects:
            within = _innermost_around(subject.path, compiled)
            if within is None and not around:
                inside.append(subject)
            elif subject.name == FORWARD and subject.path == ("" if around else within):
                outside.append(subject)
                known = _parameters(subject.target.function)
                if any(name not in known for name in subject.locals):
                    lost.append(subject)
            else:
                lost.append(subject)
        if lost:
            self._capture.lost.update(lost)
            text = (
                f"{_listed(subject.full_name for subject in lost)}: run in code that torch.compile "
                "made; only what a compiled module is called with and returns can be captured"
            )
            self._capture.note(CaptureIssue("unfollowed", text))
        return inside, outside

    def _follow(
        self,
        undo: Undo,
        function: FunctionType,
        nested: tuple[str, ...],
        subjects: list[Subject],
        outside: list[Subject],
    ) -> None:
        """Follow a function for its variables, its result, or both."""
        names = frozenset(
            name
            for subject in subjects
            if subject.target.function is function
            for name in subject.locals
        )
        returns = any(subject.returns for subject in subjects if _returns_from(subject) is function)
        target = subjects[0].target
        counts = _is_forward_of(subjects, self._root, function)
        listener = FunctionListener(
            self._capture,
            subjects,
            is_method=target.is_method and not nested,
            wants_locals=target.function is function,
            wants_returns=_returns_from(subjects[0]) is function,
            model=self._root if counts else None,
        )
        try:
            following = follow(function, Interest(names, returns or counts, nested), listener)
        except CannotFollowError as error:
            self._fall_back(undo, function, subjects, names, returns, outside, error.reason)
            return
        undo.append(following.stop)

    def _fall_back(
        self,
        undo: Undo,
        function: FunctionType,
        subjects: list[Subject],
        names: frozenset[str],
        returns: bool,
        outside: list[Subject],
        reason: str,
    ) -> None:
        """Follow from the outside what cannot be rewritten."""
        shown = _listed([subject.full_name for subject in subjects])
        known = _parameters(function)
        lost = sorted(names - set(known))
        target = subjects[0].target
        is_put_on_modules = not target.is_method and all(each.name == FORWARD for each in subjects)
        if target.nested or not (target.is_method or is_put_on_modules):
            text = f"{shown} cannot be followed: {reason}"
            self._capture.note(CaptureIssue("unfollowed", text))
            self._capture.lost.update(subjects)
            return
        if lost:
            text = f"{shown} cannot be followed for {_listed(lost)}: {reason}"
            self._capture.note(CaptureIssue("unfollowed", text))
            self._capture.lost.update(subjects)
        if not returns and len(lost) == len(names):
            return
        for subject in subjects:
            if subject.name == FORWARD:
                outside.append(subject)
        methods = [subject for subject in subjects if subject.name != FORWARD]
        for kind, name in {(type(each.module), each.name) for each in methods}:
            listener = ModuleListener(self._capture, methods)
            if can_be_replaced(kind, name):
                self._listen(undo, kind, name, listener)

    def _count_direct_calls(self, undo: Undo, inside: Iterable[Subject]) -> None:
        """Count ``model.forward(x)`` as an iteration where no other listener does."""
        target = function_of(self._root, FORWARD)
        if target is None or not target.is_method:
            return
        for subject in inside:
            is_heard = subject.returns or subject.target.function is target.outer
            if is_heard and subject.module is self._root and _returns_from(subject) is target.outer:
                return
        listener = FunctionListener(self._capture, (), is_method=True, model=self._root)
        try:
            following = follow(target.outer, Interest(frozenset(), True), listener)
        except CannotFollowError:
            return  # Then only calls of the module itself count.
        undo.append(following.stop)

    def _listen_from_outside(self, undo: Undo, outside: list[Subject]) -> None:
        chain = {id(self._root): self._chain[0]}
        for kind in {type(chain.get(id(each.module), each.module)) for each in outside}:
            listener = ModuleListener(self._capture, outside)
            for each in outside:
                if each.module is self._root and type(self._chain[0]) is kind:
                    listener.stands_for(self._chain[0], self._root)
            self._listen(undo, kind, "__call__", listener)

    def _listen(
        self, undo: Undo, kind: type, name: str, listener: CallListener, *, outermost: bool = False
    ) -> None:
        if self._capture.unseen is not None:
            listener = Wrapped(listener, self._capture.unseen)
        # First: an exception of the program's may interrupt the lines below.
        undo.append(partial(stop_listening, kind, name, listener))
        listen(kind, name, listener, outermost=outermost)


def _by_function(
    subjects: Iterable[Subject],
) -> dict[tuple[FunctionType, tuple[str, ...]], list[Subject]]:
    """The functions to follow; of a decorated one, the wrapped function and the wrapper."""
    found: dict[tuple[FunctionType, tuple[str, ...]], list[Subject]] = {}
    for subject in subjects:
        target = subject.target
        if subject.locals or target.nested or target.outer is target.function:
            found.setdefault((target.function, target.nested), []).append(subject)
        if subject.returns and not target.nested and target.outer is not target.function:
            found.setdefault((target.outer, ()), []).append(subject)
    return found


def _returns_from(subject: Subject) -> FunctionType:
    """The function that returns what callers get."""
    return subject.target.function if subject.target.nested else subject.target.outer


def _is_forward_of(subjects: Iterable[Subject], root: Module, function: FunctionType) -> bool:
    return any(
        subject.module is root and subject.name == FORWARD and _returns_from(subject) is function
        for subject in subjects
    )


def _innermost_around(path: str, compiled: dict[str, Module]) -> str | None:
    """The path of the compiled module that a module is or lies in."""
    found = [name for name in compiled if path == name or not name or path.startswith(f"{name}.")]
    return min(found, key=len) if found else None


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return []


def _listed(names: Iterable[str], most: int = 3) -> str:
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
