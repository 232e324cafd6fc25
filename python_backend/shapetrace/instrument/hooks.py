"""What the code of a followed function calls.

Hooks are constants of that code, methods of a site each. A call's state lies on its frame's stack,
and is found by the frame's id: its locals stay as they are. So it goes when the frame does, also if
the call raises or a generator is thrown away.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable, Iterator
from sys import _getframe
from typing import Any, Final, TypeAlias

from shapetrace.instrument.interface import Call, Interest, Listener

UNHEARD: Final[tuple[tuple[()]]] = ((),)
"""What the body of a call is run with that nobody listens to."""

_MODULES: Final = sys.modules
_FEW: Final = 64
"""So many calls are remembered at least before those that are over are forgotten."""

Mark: TypeAlias = tuple[str, int, bool]
"""What a hook's argument is: a name, a line, and whether it was assigned there."""


class Following:
    """One listener of a function."""

    def __init__(self, interest: Interest, listener: Listener, stop: Callable[[Following], None]):
        self.interest: Final = interest
        self.names: Final = interest.names
        self.merges: Final = interest.merges
        self.error: Exception | None = None
        """What the listener raised, which ended the following."""
        self.entered: Callable[[Call], object | None] = listener.entered
        self.entered_by: Callable[[object], object | None] | None = getattr(
            listener, "entered_by", None
        )
        """For listeners that need to know nothing of a call but its first parameter."""
        self.looked_at: Callable[[Any, str, Any, int, bool], None] = listener.looked_at
        self.looked_at_all: Callable[..., None] | None = getattr(listener, "looked_at_all", None)
        """For listeners that are told of all variables of one place at once."""
        self.deleted: Callable[[Any, frozenset[str]], None] | None = getattr(
            listener, "deleted", None
        )
        self.returned: Callable[[Any, Any, int], None] = (
            listener.returned if interest.returns else _nothing
        )
        self._stop: Callable[[Following], None] | None = stop

    @property
    def is_active(self) -> bool:
        """Whether the listener still hears of the function."""
        return self._stop is not None

    def stop(self) -> None:
        """No longer follow, also in calls that are running. The last one puts the code back."""
        stop, self._stop = self._stop, None
        self.entered = self.looked_at = self.returned = _nothing
        self.entered_by = self.looked_at_all = self.deleted = None
        if stop is not None:
            stop(self)

    def fail(self, error: Exception) -> None:
        """The listener has raised an error: stop, unless it only had no room on the stack."""
        if isinstance(error, RecursionError):
            return
        self.error = error.with_traceback(None)
        self.stop()

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _nothing(*values: object) -> None:
    """Do nothing."""


class Activation(list[Any]):
    """One call that somebody listens to.

    It lies on the stack of the call's frame, and only there: when it goes, the call is over. It is
    iterated once, where it is empty, and a list is so quickly.
    """

    __slots__ = ("__weakref__", "bound", "listening", "pending")

    def __init__(self, listening: list[tuple[Following, object]], bound: frozenset[str]) -> None:
        self.listening = listening
        self.bound = bound
        """Those names that have a value now, of those where the source alone does not tell."""
        self.pending: tuple[object, int, int] | None = None
        """What is to be returned, unless a `finally` raises; its line; in how many of these it was
        said."""


class Activations(dict[int, weakref.ref[Activation]]):
    """The calls that somebody listens to, by the id of their frame.

    Those that are over are forgotten only now and then, as most calls get the place in memory that
    another has had.
    """

    __slots__ = ("_room",)

    def __init__(self) -> None:
        super().__init__()
        self._room = _FEW

    def of(self, frame: types.FrameType) -> Activation | None:
        """The call that runs in a frame, if anybody listens to it."""
        reference = self.get(id(frame))
        return None if reference is None else reference()

    def make_room(self) -> None:
        """Forget calls that are over, if there are many."""
        if len(self) > self._room:
            for key, reference in list(self.items()):
                if reference() is None and self.get(key) is reference:
                    del self[key]
            self._room = max(_FEW, 2 * len(self))


class Plan:
    """All that the hooks of one code object share."""

    def __init__(self, function: types.FunctionType, line: int, followings: list[Following]):
        self.function: Final = function
        self.line: Final = line
        self.followings: Final = followings
        self.activations: Final = Activations()
        self.gate: Final = Gate(self)
        self.bound: Final = Bound(self)
        self.sites: Final[list[Site]] = []
        self.leads_with_rest = False
        """Whether its first parameter is `*args`: what is first is the first of these."""
        self.tracked: Final[set[str]] = set()
        """The names where the source alone does not tell whether they are bound."""

    def finish(self) -> None:
        """All sites are known."""
        for site in self.sites:
            if site.binds:
                site.tracks = frozenset(
                    name for name, _, assigned in site.marks if assigned and name in self.tracked
                )


class Gate(frozenset[int]):
    """Has a 0 in it, but to TorchDynamo nothing at all, which so passes all hooks by.

    Dynamo knows frozen sets among constants, and takes what iterating them brings.
    `0 in gate` is what is asked before each hook. With `gate | gate` some are hooks themselves.
    """

    __slots__ = ("__dict__",)
    plan: Plan

    def __new__(cls, plan: Plan) -> Gate:
        """A gate for the hooks of a plan."""
        self = super().__new__(cls, (0,))
        self.plan = plan
        return self

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (frozenset, ())

    def __copy__(self) -> Gate:
        return self

    def __deepcopy__(self, memo: object) -> Gate:
        return self


class Leaving(Gate):
    """The function is about to return without a value."""

    __slots__ = ()
    postponed: int | None = None
    """Where a `finally` comes before that: in how many of these it stands."""

    def __or__(self, other: object) -> Gate:
        frame = _getframe(1)
        activation = self.plan.activations.of(frame)
        if activation is not None:
            line = frame.f_lineno or self.plan.line
            if self.postponed is not None:
                activation.pending = (None, line, self.postponed)
            else:
                _return(activation, None, line)
        return self


class Finishing(Gate):
    """The outermost `finally` is through, and what was to be returned is returned."""

    __slots__ = ()
    within = 0
    """In how many others it stands: what was to be returned before these began is not yet."""

    def __or__(self, other: object) -> Gate:
        activation = self.plan.activations.of(_getframe(1))
        if activation is not None and activation.pending is not None:
            value, line, within = activation.pending
            if within >= self.within:
                activation.pending = None
                _return(activation, value, line)
        return self


class Forgetting(Gate):
    """Variables are about to be deleted, or what was to be returned is not returned."""

    __slots__ = ()
    names: frozenset[str] = frozenset()
    within: int | None = None
    """Where a return is dropped: one that was said in no fewer `finally` than these."""

    def __or__(self, other: object) -> Gate:
        activation = self.plan.activations.of(_getframe(1))
        if activation is not None:
            pending = activation.pending
            if pending is not None and self.within is not None and pending[2] >= self.within:
                activation.pending = None
            activation.bound -= self.names
            if self.names:
                for following, state in activation.listening:
                    try:
                        if following.deleted is not None:
                            following.deleted(state, self.names)
                    except Exception as error:
                        following.fail(error)
        return self


class Bound(Gate):
    """Has the names in it that have a value now, of those where the source alone does not tell."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        activation = self.plan.activations.of(_getframe(1))
        return activation is not None and name in activation.bound


class Site:
    """One place of the code, and the hooks it may have."""

    __slots__ = (
        "binds",
        "depth",
        "find",
        "line",
        "mark",
        "marks",
        "missing",
        "plan",
        "postponed",
        "tracks",
    )

    def __init__(
        self,
        plan: Plan,
        marks: tuple[Mark, ...] = (),
        depth: int = 1,
        line: int = 0,
        postponed: int | None = None,
        binds: bool = True,
    ) -> None:
        self.plan = plan
        self.find = plan.activations.get
        self.missing = plan.gate
        self.marks = marks
        self.mark = marks[0] if marks else ("", 0, False)
        self.depth = depth
        """How many frames up the function's own is: comprehensions have frames in Python 3.11."""
        self.line = line
        self.postponed = postponed
        """Where a `finally` comes between evaluating what is returned and returning it: in how
        many of these that is said."""
        self.binds = binds
        """Whether the variables are the function's own, and not those of a comprehension."""
        self.tracks: frozenset[str] = frozenset()
        """Those names that are bound from now on, of those where the source does not tell."""
        plan.sites.append(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Silence, ())

    def __deepcopy__(self, memo: object) -> Site:
        return self

    @property
    def look(self) -> Callable[..., object]:
        """The hook after variables were assigned, or may have changed."""
        return self.look_at_one if len(self.marks) == 1 else self.look_at_all

    # What follows is written out at length: it runs for every call and nearly every statement.

    def enter(self, *values: object) -> object:
        """A call has begun, with the first parameter and then what the marks say.

        While torch makes a graph of what runs, our hooks are no part of that.
        """
        compiler: Any = _MODULES.get("torch.compiler")
        if compiler is not None:
            try:
                # What is_compiling() asks, but for scripted code, which has no hooks.
                is_compiling = compiler._is_compiling_flag
            except AttributeError:
                is_compiling = _is_compiling(compiler)
            if is_compiling:
                return UNHEARD
        plan = self.plan
        first: Any = values[0]
        if plan.leads_with_rest:
            first = first[0] if first else None
        call: Call | None = None
        listening = []
        for following in plan.followings:
            try:
                if following.entered_by is not None:
                    state = following.entered_by(first)
                else:
                    call = call or Call(plan.function, first, plan.line)
                    state = following.entered(call)
            except Exception as error:
                following.fail(error)
                continue
            if state is not None:
                listening.append((following, state))
        if not listening:
            return UNHEARD
        activation = Activation(listening, self.tracks)
        activations = plan.activations
        activations[id(_getframe(1))] = weakref.ref(activation)
        if len(activations) > _FEW:
            activations.make_room()
        if self.marks:
            self._tell(activation, values[1:])
        return (activation,)

    def look_at_one(self, value: object) -> object:
        """A variable was assigned, or may have changed. Here most of the time is spent."""
        reference = self.find(id(_getframe(self.depth)))
        if reference is not None and (activation := reference()) is not None:
            if self.tracks:
                activation.bound |= self.tracks
            name, line, assigned = self.mark
            for following, state in activation.listening:
                names = following.names
                if names is None or name in names:
                    try:
                        following.looked_at(state, name, value, line, assigned)
                    except Exception as error:
                        following.fail(error)
        return value

    def look_inside(self, *values: object) -> object:
        """Variables of a comprehension were assigned, which has the function's names for them."""
        reference = self.find(id(_getframe(self.depth)))
        if reference is not None and (activation := reference()) is not None:
            for following, state in activation.listening:
                names = following.names
                if following.merges:
                    try:
                        for (name, line, assigned), value in zip(self.marks, values, strict=True):
                            if names is None or name in names:
                                following.looked_at(state, name, value, line, assigned)
                    except Exception as error:
                        following.fail(error)
        return self

    def look_at_all(self, *values: object) -> object:
        """Variables were assigned, or may have changed."""
        reference = self.find(id(_getframe(self.depth)))
        if reference is not None and (activation := reference()) is not None:
            self._tell(activation, values)
        return self

    def look_after_raise(self, *values: object) -> object:
        """A block was left by an exception: what has changed did so on the line that raised it."""
        self.tell_after_raise(_getframe(1), values)
        return self

    def tell_after_raise(self, frame: types.FrameType, values: tuple[object, ...]) -> None:
        """The same, for what runs in a frame."""
        activation = self.plan.activations.of(frame)
        if activation is not None:
            raised = sys.exc_info()[2]
            marks = self.marks
            if raised is not None and raised.tb_frame is frame:
                at = raised.tb_lineno
                marks = tuple((name, line if own else at, own) for name, line, own in marks)
            self._tell(activation, values, marks)

    def return_(self, value: object, *values: object) -> object:
        """The function is about to return a value; the variables may have changed."""
        reference = self.find(id(_getframe(1)))
        if reference is not None and (activation := reference()) is not None:
            if values:
                self._tell(activation, values)
            if self.postponed is not None:
                activation.pending = (value, self.line, self.postponed)
            else:
                for following, state in activation.listening:
                    try:
                        following.returned(state, value, self.line)
                    except Exception as error:
                        following.fail(error)
        return value

    def generate(self, generator: Any) -> object:
        """A generator expression was made: what it does belongs to the call that made it."""
        activations = self.plan.activations
        activation = activations.of(_getframe(self.depth))
        key = id(getattr(generator, "gi_frame", None) or generator.ag_frame)
        activations.pop(key, None)
        if activation is not None:
            activations[key] = weakref.ref(activation)
            _GENERATORS[weakref.ref(generator, _drop)] = (activations, key)
        return generator

    def _tell(
        self,
        activation: Activation,
        values: tuple[object, ...],
        marks: tuple[Mark, ...] | None = None,
    ) -> None:
        if self.tracks:
            activation.bound |= self.tracks
        missing = self.missing
        if marks is None:
            marks = self.marks
        for following, state in activation.listening:
            try:
                looked_at_all = following.looked_at_all
                if looked_at_all is not None:
                    looked_at_all(state, marks, values, missing)
                    continue
                names, looked_at = following.names, following.looked_at
                for (name, line, assigned), value in zip(marks, values, strict=True):
                    if value is not missing and (names is None or name in names):
                        looked_at(state, name, value, line, assigned)
            except Exception as error:
                following.fail(error)


def _return(activation: Activation, value: object, line: int) -> None:
    for following, state in activation.listening:
        try:
            following.returned(state, value, line)
        except Exception as error:
            following.fail(error)


_GENERATORS: Final[dict[weakref.ref[Any], tuple[Activations, int]]] = {}


def _drop(reference: weakref.ref[Any]) -> None:
    activations, key = _GENERATORS.pop(reference)
    activations.pop(key, None)


class _Silence:
    """What sites are in another process, where nobody listens: never asked, as the gate is shut."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


def _is_compiling(compiler: Any) -> bool:
    """Whether a torch that has no flag for it makes a graph of what runs."""
    is_compiling = getattr(compiler, "is_compiling", None)
    return is_compiling is not None and bool(is_compiling())
