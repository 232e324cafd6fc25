"""What is done when a followed function begins, changes a variable and returns."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final, Protocol

from torch.nn import Module

from shapetrace.capture.changes import Seen, seen
from shapetrace.capture.copies import CannotCopyError
from shapetrace.capture.inside import entries_along, where_it_ends
from shapetrace.capture.iterations import Iteration, Iterations, frame_of_program
from shapetrace.capture.plan import Subject, Want
from shapetrace.capture.saving import Variable

_Due = tuple[dict[str, list[Want]], list[Want]]
_OURS_AND_THE_FRAMES: Final = 3


class Call(Protocol):
    """What is told of a call that begins."""

    @property
    def first(self) -> object:
        """The value of the first parameter."""


class Capture:
    """What all listeners of a tracer share."""

    def __init__(self, variables: list[Variable], rank: int, note: Callable[[str], None]) -> None:
        self.variables = variables
        self.rank = rank
        self.note = note
        self.entered: set[Subject] = set()
        """Functions that were called in an iteration that is captured."""
        self.lost: set[Subject] = set()
        """Functions of which not all can be captured, which has been said."""
        self.outside: set[Subject] = set()
        """Functions that were called while the model was not."""
        self.dead_ends: dict[str, tuple[str, str, list[str]]] = {}
        """For what was looked for in a value and was not there: where, what, and what was."""
        self.deferred: BaseException | None = None
        self.iterations: Iterations
        """Set before anything is followed."""

    def defer(self, error: BaseException) -> None:
        """Keep what a callback has raised until it can be raised again."""
        if self.deferred is None:
            self.deferred = error

    def fault(self, error: BaseException) -> None:
        """A mistake of ours, which is not to become the program's."""
        self.note(f"a value may be missing: {type(error).__name__}: {error}")

    def look(self, activation: Activation, want: Want, value: Any, again: bool) -> None:
        """Save of a value what has changed; ``again`` where it may have been seen in this call."""
        if want.whole:
            known = activation.seen.get(want) if again else None
            if known is None or not known.is_still(value):
                self._changed(activation, want, want, want.name, value, value)
        if want.routes:
            for path, states in want.routes:
                met = False
                for name, inner, whole in entries_along(value, path, states, want.name):
                    met = True
                    known = activation.seen.get((want, name))
                    if known is None or not known.is_still(whole):
                        self._changed(activation, want, (want, name), name, inner, whole)
                if not met and value is not None:
                    self.dead_ends.setdefault(
                        path.text, where_it_ends(value, path, states, want.name)
                    )

    def _changed(
        self, activation: Activation, want: Want, key: Any, name: str, value: Any, whole: Any
    ) -> None:
        variable = self.variables[want.variable]
        is_first = key not in activation.seen
        now = activation.seen[key] = seen(whole)
        if is_first and variable.is_known(name, whole):
            return
        try:
            variable.save(name, value, now, activation.iteration, self.rank)
        except CannotCopyError as error:
            self.note(f"{name} is not captured {error}")
        except BaseException as error:
            # A callback's: its author is told when the call of the model is over.
            if activation.iteration.error is None:
                activation.iteration.error = error


class Activation:
    """One call of a followed function."""

    __slots__ = ("iteration", "locals", "owns", "returns", "seen")

    def __init__(
        self, iteration: Iteration, wanted: dict[str, list[Want]], returns: list[Want], owns: bool
    ) -> None:
        self.iteration = iteration
        self.locals = wanted
        self.returns = returns
        self.owns = owns
        """Whether the iteration ends with it."""
        self.seen: dict[Any, Seen] = {}


class FunctionListener:
    """Listens to one function, for all modules that it is wanted of."""

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
        self._subjects = {id(subject.module): subject for subject in subjects}
        self._is_method = is_method
        self._wants_locals = wants_locals
        self._wants_returns = wants_returns
        self._model = model
        """The model, where this is its forward: calling that directly is an iteration too."""
        self._due: dict[tuple[Subject, frozenset[int]], _Due] = {}

    def entered(self, call: Call) -> Activation | None:
        """A call begins."""
        try:
            return self._entered(call)
        except Exception as error:
            self._capture.fault(error)
            return None

    def _entered(self, call: Call) -> Activation | None:
        capture = self._capture
        iterations = capture.iterations
        module = call.first
        owns = None
        if self._model is not None and module is self._model:
            frame = frame_of_program(sys._getframe(2))
            owns = None if frame is None else iterations.begin_in(frame, self._model)
        iteration = owns or iterations.current()
        if not self._is_method:
            module = _owner(frame_of_program(sys._getframe(2)))
        number = id(module)
        if iteration is not None and iteration.replica is not None:
            number = iteration.replica.get(number, number)
        subject = self._subjects.get(number)
        if subject is None or iteration is None or not iteration.due:
            if subject is not None and iteration is None:
                capture.outside.add(subject)
            return None if owns is None else Activation(owns, {}, [], True)
        capture.entered.add(subject)
        wanted, returns = self._of(subject, iteration.due)
        if not wanted and not returns and owns is None:
            return None
        return Activation(iteration, wanted, returns, owns is not None)

    def _of(self, subject: Subject, due: frozenset[int]) -> _Due:
        """What is wanted of a function in an iteration in which these variables are captured."""
        known = self._due.get((subject, due))
        if known is None:
            found: dict[str, list[Want]] = {}
            if self._wants_locals:
                for name, wants in subject.locals.items():
                    chosen = [want for want in wants if want.variable in due]
                    if chosen:
                        found[name] = chosen
            returns = subject.returns if self._wants_returns else []
            known = (found, [want for want in returns if want.variable in due])
            self._due[subject, due] = known
        return known

    def looked_at(
        self, state: Activation, name: str, value: Any, line: int, assigned: bool
    ) -> None:
        """A variable was assigned, or its value may have changed."""
        wants = state.locals.get(name)
        if wants is not None:
            try:
                for want in wants:
                    self._capture.look(state, want, value, True)
            except Exception as error:
                self._capture.fault(error)

    def returned(self, state: Activation, value: Any, line: int) -> None:
        """The call has returned."""
        try:
            for want in state.returns:
                self._capture.look(state, want, value, False)
        except Exception as error:
            self._capture.fault(error)
        if state.owns:
            try:
                self._capture.iterations.end(state.iteration, value)
            except BaseException as error:
                self._capture.defer(error)


class ModuleListener(FunctionListener):
    """Listens to a module from the outside: what it is called with, and what it returns."""

    def __init__(self, capture: Capture, subjects: Iterable[Subject]) -> None:
        super().__init__(capture, subjects, is_method=True)
        self._wrapped: dict[int, Module] = {}

    def stands_for(self, wrapper: Module, module: Module) -> None:
        """Take calls of what a module is wrapped in for calls of it."""
        self._wrapped[id(wrapper)] = module

    def begins(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """It is called."""
        module = self._wrapped.get(id(arguments[0]), arguments[0])
        subject = self._subjects.get(id(module))
        if subject is None:
            return None
        activation = self.entered(_Outside(module))
        if activation is not None and activation.locals:
            try:
                values = _arguments(subject.target.function, arguments, keywords)
            except Exception:
                values = {}
            for name, value in values.items():
                self.looked_at(activation, name, value, 0, True)
        return activation

    def ends(self, state: Activation, result: Any) -> None:
        """It has returned."""
        self.returned(state, result, 0)

    def fails(self, state: Activation) -> None:
        """It has raised."""


class _Outside:
    """A call that is seen from the outside."""

    def __init__(self, first: object) -> None:
        self.first = first


def _arguments(
    function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> dict[str, Any]:
    """The parameters of a call by name, as the function would find them."""
    bound = inspect.signature(function).bind(*arguments, **keywords)
    bound.apply_defaults()
    return dict(bound.arguments)


def _owner(frame: FrameType | None) -> object:
    """The module whose code has called the function that runs in this frame."""
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
    if sys.version_info < (3, 13) and frame.f_trace is None and sys.gettrace() is None:
        # A snapshot, which the frame would keep, and all values in it. A debugger writes it back,
        # and the program may have asked for it by ``locals()``.
        if sys.getrefcount(values) <= _OURS_AND_THE_FRAMES:
            values.clear()
    return first


class RootListener:
    """Counts the outermost calls of the model."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def begins(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Iteration | None:
        """One of the modules that wrap each other is called, or another of its class."""
        try:
            return self._capture.iterations.begin(arguments[0])
        except Exception as error:
            self._capture.fault(error)
            return None

    def ends(self, state: Iteration, result: Any) -> None:
        """The call has returned; raises what a callback has raised."""
        self._capture.iterations.end(state, result)

    def fails(self, state: Iteration) -> None:
        """The call has raised."""
        try:
            self._capture.iterations.end(state, failed=True)
        except BaseException as error:
            self._capture.defer(error)
