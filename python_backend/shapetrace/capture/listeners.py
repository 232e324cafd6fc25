"""Captures values when a followed function begins, assigns a variable and returns."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, TypeAlias

from torch import Tensor
from torch.nn import Module

from shapetrace._asynchronous import is_asynchronous
from shapetrace._dynamo import regions_begun
from shapetrace._exception_table import covering_jumps
from shapetrace._frames import frame_of_program, let_go
from shapetrace.capture.copies import CannotCopyError, function_modes, is_ordinary
from shapetrace.capture.iterations import Iteration, Iterations
from shapetrace.capture.plan import Subject, Want
from shapetrace.capture.problems import CaptureIssue
from shapetrace.capture.receivers import CallbackError, Receiver
from shapetrace.capture.value_changes import SeenInCall, SeenOrdinary
from shapetrace.capture.value_changes import seen as remembered
from shapetrace.capture.value_items import entries_along, where_it_ends
from shapetrace.instrument.interface import Hooks, requests_by_variable

_Wanted: TypeAlias = dict[str, list[tuple[Any, Want]]]

State: TypeAlias = tuple[
    Iteration, _Wanted, list[Want], dict[Any, SeenInCall], dict[str, Want], bool
]
"""One call of a followed function: its iteration, what is wanted of its variables (with keys) and
of what it returns, what it has been seen to hold, by key, of which variables only the whole value
is wanted, and whether the iteration ends with it."""

_Ready: TypeAlias = tuple[Subject, _Wanted, list[Want], dict[str, Want]]


class Capture:
    """What all listeners of a tracer share."""

    def __init__(
        self,
        receivers: Sequence[Receiver],
        iterations: Iterations,
        note: Callable[[CaptureIssue], None],
        unseen: Callable[[Any], Any] | None = None,
    ) -> None:
        self.receivers = receivers
        self.unseen = unseen
        """Wraps what listeners have called, so that a debugger does not look at it."""
        self.iterations = iterations
        self.note = note
        self.lost: set[Subject] = set()
        """Functions that were already reported as partly lost."""
        self.outside: set[Subject] = set()
        """Functions that were called while the model was not."""
        self.refused: set[str] = set()
        """Names of values that were already reported as impossible to copy."""
        self.dead_ends: dict[str, tuple[str, str, list[str]]] = {}
        """For paths that ended inside a value: where, the missing part, and the parts there are."""
        self.deferred: BaseException | None = None
        self._regions_before = regions_begun()

    @property
    def regions(self) -> int:
        """How often the program entered a compiled region, where nothing is captured."""
        return regions_begun() - self._regions_before

    def defer(self, error: BaseException) -> None:
        """Keep a callback's exception until it can be raised."""
        if self.deferred is None:
            self.deferred = error

    def mistake(self, error: BaseException) -> None:
        """Report an error of our own, without raising it into the program."""
        if is_asynchronous(error):
            raise error
        text = f"a value may be missing: {type(error).__name__}: {error}"
        self.note(CaptureIssue("lost", text))

    def not_saved(self, error: BaseException, name: str, iteration: Iteration) -> None:
        """Report that a value could not be saved."""
        if isinstance(error, CannotCopyError):
            self.refused.add(name)
            self.note(CaptureIssue("lost", f"{name} is not captured: {error}"))
        elif isinstance(error, CallbackError):
            # The callback's author sees it when the call of the model ends.
            if iteration.error is None:
                iteration.error = error.error
        else:
            self.mistake(error)

    @covering_jumps
    def look(self, want: Want, key: Any, value: Any, state: State) -> None:
        """Save a value and the wanted parts of it, as far as they have changed."""
        if want.whole:
            self._check(want, key, value, value, state)
        try:
            for path, states in want.routes:
                met = False
                for name, inner, whole in entries_along(value, path, states, want.name):
                    met = True
                    part = want.parts.get(name)
                    if part is None:
                        part = want.parts[name] = Want(name, want.receiver)
                    self._check(part, part, inner, whole, state)
                if not met and value is not None:
                    end = where_it_ends(value, path, states, want.name)
                    self.dead_ends.setdefault(path.text, end)
        except Exception as error:
            self.not_saved(error, want.name, state[0])

    def _check(self, want: Want, key: Any, value: Any, whole: Any, state: State) -> None:
        """Save a value if what tells of its changes differs from what this call or the last saw."""
        iteration, seen = state[0], state[3]
        try:
            known = seen.get(key)
            if known is not None and known.is_still(whole):
                return
            now = seen[key] = remembered(whole)
            last = None if known is not None else want.last
            if last is not None and last.is_still(whole):
                return
            self.receivers[want.receiver].save(want.name, value, iteration)
            want.last = now.lasting()
        except Exception as error:
            self.not_saved(error, want.name, iteration)


class FunctionListener:
    """Listens to one function, for all modules whose values are wanted.

    Code that runs for each call or each statement is inlined for speed.
    """

    def __init__(
        self,
        capture: Capture,
        subjects: Iterable[Subject],
        *,
        is_method: bool,
        wants_locals: bool = True,
        wants_returns: bool = True,
        model: Module | None = None,
    ) -> None:
        self._capture = capture
        self._iterations = capture.iterations
        self._receivers = capture.receivers
        self._subjects = {subject.number: subject for subject in subjects}
        self._is_method = is_method
        self._wants_locals = wants_locals
        self._wants_returns = wants_returns
        self._model = None if model is None else weakref.ref(model)
        """The model, where this is its forward: calling that directly is an iteration too."""
        self._due: frozenset[int] | None = None
        self._ready: dict[int, _Ready] = {}
        """Wanted values of each module that calls the function, in iterations that are due."""

    def hooks(self) -> Hooks:
        """What is called while the function runs."""
        hooks = Hooks(
            self.looked_at,
            self.returned,
            entered_by=self.entered_by,
            looked_at_all=self.looked_at_all,
        )
        return hooks.each(self._capture.unseen)

    def entered_by(self, first: Any) -> State | None:
        """A call begins; ``first`` is its first argument."""
        try:
            iteration = self._iterations.local.iteration
            if iteration is None or iteration.is_special or not self._is_method:
                return self._entered(first)
            if iteration.due is not self._due:
                self._prepare(iteration.due)
            ready = self._ready.get(id(first))
            if ready is None:
                return None
            subject, wanted, returns, simple = ready
            if subject.reference() is not first:
                return None
            subject.was_entered = True
            return (iteration, wanted, returns, {}, simple, False)
        except Exception as error:
            self._capture.mistake(error)
            return None

    def _entered(self, module: Any) -> State | None:
        """The slow path: functions of no module, threads, replicas and outermost calls."""
        iterations = self._iterations
        owns = None
        model = None if self._model is None else self._model()
        if model is not None and module is model:
            frame = frame_of_program(sys._getframe(2))
            owns = None if frame is None else iterations.begin_in(frame, model)
        iteration = owns or iterations.current()
        if not self._is_method:
            module = _owner(frame_of_program(sys._getframe(2)))
        number = id(module)
        subject = self._subjects.get(number)
        is_known = subject is not None and subject.reference() is module
        if iteration is None:
            if subject is not None and is_known:
                self._capture.outside.add(subject)
            return None
        if iteration.replica is not None and number in iteration.replica:
            number, is_known = iteration.replica[number], True
        if iteration.due is not self._due:
            self._prepare(iteration.due)
        ready = self._ready.get(number) if is_known else None
        if ready is None:
            return None if owns is None else (owns, {}, [], {}, {}, True)
        subject, wanted, returns, simple = ready
        subject.was_entered = True
        return (iteration, wanted, returns, {}, simple, owns is not None)

    def _prepare(self, due: frozenset[int]) -> None:
        """The values wanted in iterations in which these receivers are due."""
        chosen: dict[int, _Ready] = {}
        for number, subject in self._subjects.items():
            variables = subject.locals if self._wants_locals else {}
            wanted, simple = requests_by_variable(
                (name, want, want, want.whole and not want.routes)
                for name, wants in variables.items()
                for want in wants
                if want.receiver in due
            )
            returns: list[Want] = []
            if self._wants_returns:
                returns = [want for want in subject.returns if want.receiver in due]
            if wanted or returns:
                chosen[number] = (subject, wanted, returns, simple)
        self._ready, self._due = chosen, due

    def looked_at(self, state: Any, name: str, value: Any, line: int, assigned: bool) -> None:
        """A variable was assigned, or its value may have changed."""
        if type(value) is Tensor and not function_modes():
            known = state[3].get(name)
            if type(known) is SeenOrdinary and value is known() and value._version == known.version:
                return
        self._looked_at(state, name, value)

    def looked_at_all(
        self,
        state: Any,
        marks: tuple[tuple[str, int, bool], ...],
        values: tuple[Any, ...],
        missing: object,
    ) -> None:
        """Several variables may have changed; most have not, which is seen here."""
        seen = state[3]
        is_plain = not function_modes()
        for index, mark in enumerate(marks):
            value = values[index]
            if is_plain and type(value) is Tensor:
                known = seen.get(mark[0])
                if (
                    type(known) is SeenOrdinary
                    and value is known()
                    and value._version == known.version
                ):
                    continue
            elif value is missing:
                continue
            self._looked_at(state, mark[0], value)

    def _looked_at(self, state: State, name: str, value: Any) -> None:
        iteration, wanted, _, seen, simple, _ = state
        want = simple.get(name)
        if want is not None and type(value) is Tensor and is_ordinary(value):
            last = want.last
            if last is not None and name not in seen and last.is_still(value):
                seen[name] = last
            else:
                seen[name] = self._save_ordinary(want, value, iteration)
            return
        for key, want in wanted.get(name, ()):
            self._capture.look(want, key, value, state)

    def _save_ordinary(self, want: Want, value: Tensor, iteration: Iteration) -> SeenOrdinary:
        """Save an ordinary tensor and note its version."""
        want.last = now = SeenOrdinary(value)
        now.version = value._version
        try:
            self._receivers[want.receiver].save_ordinary(want.name, value, iteration)
        except BaseException as error:
            want.last = None
            self._capture.not_saved(error, want.name, iteration)
        return now

    def returned(self, state: Any, value: Any, line: int) -> None:
        """The call has returned."""
        iteration = state[0]
        for want in state[2]:
            if type(value) is Tensor and is_ordinary(value):
                last = want.last
                if last is None or not last.is_still(value):
                    self._save_ordinary(want, value, iteration)
            else:
                self._capture.look(want, want, value, state)
        if state[5]:
            try:
                self._iterations.end(iteration, value)
            except BaseException as error:
                if is_asynchronous(error):
                    raise
                self._capture.defer(error)


class ModuleListener(FunctionListener):
    """Listens to a module from the outside: its arguments and its result."""

    def __init__(self, capture: Capture, subjects: Iterable[Subject]) -> None:
        super().__init__(capture, subjects, is_method=True)
        self._wrapped: dict[int, tuple[weakref.ref[Module], weakref.ref[Module]]] = {}

    def stands_for(self, wrapper: Module, module: Module) -> None:
        """Treat calls of a module's wrapper as calls of the module."""
        self._wrapped[id(wrapper)] = (weakref.ref(wrapper), weakref.ref(module))

    def begins(self, arguments: tuple[Any, ...], keywords: dict[str, Any], frame: int) -> Any:
        """It is called."""
        module = arguments[0]
        wrapper, wrapped = self._wrapped.get(id(module), (None, None))
        if wrapper is not None and wrapped is not None and wrapper() is module:
            module = wrapped()
        subject = self._subjects.get(id(module))
        if subject is None or subject.reference() is not module:
            return None
        state = self.entered_by(module)
        if state is not None and state[1]:
            try:
                own = arguments if subject.target.is_method else arguments[1:]
                values = _arguments(subject.target.function, own, keywords)
            except Exception as error:
                if is_asynchronous(error):
                    raise
                values = {}
            for name, value in values.items():
                self.looked_at(state, name, value, 0, True)
        return state

    def ends(self, state: State, result: Any) -> None:
        """It has returned."""
        self.returned(state, result, 0)

    def fails(self, frame: int) -> None:
        """It has raised."""


def _arguments(
    function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by parameter name."""
    bound = inspect.signature(function).bind(*arguments, **keywords)
    bound.apply_defaults()
    return dict(bound.arguments)


def _owner(frame: FrameType | None) -> object:
    """The module whose code called the function of this frame."""
    frame = None if frame is None else frame.f_back
    while frame is not None:
        first = first_argument(frame)
        if isinstance(first, Module):
            return first
        frame = frame.f_back
    return None


def first_argument(frame: FrameType) -> object:
    """The value of a running function's first parameter."""
    code = frame.f_code
    if not code.co_argcount:
        return None
    values = frame.f_locals
    first = values.get(code.co_varnames[0])
    let_go(values, frame)
    return first


class RootListener:
    """Counts the outermost calls of the model."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def begins(
        self, arguments: tuple[Any, ...], keywords: dict[str, Any], frame: int
    ) -> Iteration | None:
        """A wrapper, the model, or another module of the same class is called."""
        try:
            return self._capture.iterations.begin(arguments[0], owner=frame)
        except Exception as error:
            self._capture.mistake(error)
            return None

    def ends(self, state: Iteration, result: Any) -> None:
        """The call has returned; raises a callback's exception."""
        self._capture.iterations.end(state, result)

    def fails(self, frame: int) -> None:
        """The call has raised, or a listener has at its beginning or end."""
        iterations = self._capture.iterations
        iteration = iterations.local.iteration
        if iteration is None or iteration.owner != frame:
            return
        try:
            iterations.end(iteration, failed=True)
        except BaseException as error:
            if is_asynchronous(error):
                raise
            self._capture.defer(error)
