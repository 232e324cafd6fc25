"""The hooks that a followed function's code calls.

Each hook is a constant of that code, and a method of a site. A call's state lies on its frame's
stack and is found by the frame's id, so the locals stay as they are, and the state goes with the
frame, also if the call raises or a generator is dropped.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from sys import _getframe
from threading import get_ident
from typing import Any, Final, Self, TypeAlias

from shapetrace._asynchronous import clean
from shapetrace._dynamo import REGIONS
from shapetrace._exception_table import catching_everywhere, covering_jumps
from shapetrace.instrument.hidden_twins import hidden_twin
from shapetrace.instrument.hooked_calls import FEW, Following, HookedCall, HookedCalls, nothing
from shapetrace.instrument.interface import Call

UNHEARD: Final[tuple[tuple[()]]] = ((),)
"""The state of a call that is not followed."""

_MODULES: Final = sys.modules

Mark: TypeAlias = tuple[str, int, bool]
"""Describes a hook's argument: a name, a line, and whether it was assigned there."""


class HookPlan:
    """State shared by the hooks of one code object."""

    def __init__(self, function: types.FunctionType, line: int, followings: list[Following]):
        self.function: Final = function
        self.line: Final = line
        self.followings: Final = followings
        self.activations: Final = HookedCalls()
        self.gate: Final = Gate(self)
        self.bound: Final = Bound(self)
        self.sites: Final[list[HookSite]] = []
        self.leads_with_rest = False
        """Whether the only positional parameter is `*args`, whose first item counts as the
        first."""
        with_arguments = [each.entered_with is not None for each in followings]
        self.tells_arguments: Final = any(with_arguments)
        """Whether a listener wants all parameters at once."""
        self.tells_parameters: Final = not all(with_arguments)
        """Whether a listener wants followed parameters one by one."""
        self.tracked: Final[set[str]] = set()
        """The names for which the source alone does not tell whether they are bound."""
        self._shown: Final = [each.names for each in followings if not each.is_hidden]
        """What the listeners ask for that a debugger is not kept out of."""

    def hides_calls(self) -> bool:
        """Return whether a debugger is kept out of the begin and the end of calls."""
        return not self._shown

    def hides(self, marks: tuple[Mark, ...]) -> bool:
        """Return whether a debugger is kept out of a look at these variables."""
        return not any(
            names is None or name in names for names in self._shown for name, _, _ in marks
        )

    def finish(self) -> None:
        """Set the state that needs all sites."""
        for site in self.sites:
            if site.binds:
                site.tracks = frozenset(
                    name for name, _, assigned in site.marks if assigned and name in self.tracked
                )


class Gate(frozenset[int]):
    """A set that contains 0, but is empty to TorchDynamo, which so skips all hooks.

    Dynamo iterates frozen sets among constants to get their items. `0 in gate` is what is asked
    before each hook. With `gate | gate` some are hooks themselves.
    """

    __slots__ = ("__dict__",)
    plan: HookPlan

    def __new__(cls, plan: HookPlan) -> Self:
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


class CallEnding(Gate):
    """The call ends here."""

    __slots__ = ()

    def __new__(cls, plan: HookPlan) -> Self:
        """A gate that a debugger is kept out of, where it is of the listeners."""
        return super().__new__(hidden_twin(cls) if plan.hides_calls() else cls, plan)

    def _tell(self, activation: HookedCall, value: object, line: int) -> None:
        for following, state in activation.listening:
            try:
                following.returned(state, value, line)
            except Exception as error:
                following.fail(error)


class Leaving(CallEnding):
    """The function is about to return without a value."""

    __slots__ = ()
    postponed: int | None = None
    """If a `finally` comes before that: the depth of nested ones."""

    @catching_everywhere
    def __or__(self, other: object) -> Gate:
        try:
            frame = _getframe(1)
            activation = self.plan.activations.of(frame)
            if activation is not None:
                line = frame.f_lineno or self.plan.line
                if self.postponed is not None:
                    activation.pending = (None, line, self.postponed)
                else:
                    self._tell(activation, None, line)
            return self
        except BaseException as error:
            clean(error)
            raise


class Finishing(CallEnding):
    """The outermost `finally` has ended, and the pending value is returned."""

    __slots__ = ()
    within = 0
    """The depth of nested ones: a value that was returned outside of these is still pending."""

    @catching_everywhere
    def __or__(self, other: object) -> Gate:
        try:
            activation = self.plan.activations.of(_getframe(1))
            if activation is not None and activation.pending is not None:
                value, line, within = activation.pending
                if within >= self.within:
                    activation.pending = None
                    self._tell(activation, value, line)
            return self
        except BaseException as error:
            clean(error)
            raise


class Forgetting(Gate):
    """Variables are about to be deleted, or a pending return is dropped."""

    __slots__ = ()
    names: frozenset[str] = frozenset()
    within: int | None = None
    """For a dropped return: the least depth of `finally` of the returns that it drops."""

    @catching_everywhere
    def __or__(self, other: object) -> Gate:
        try:
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
        except BaseException as error:
            clean(error)
            raise


class Bound(Gate):
    """A set of the names bound now, of those for which the source alone does not tell."""

    __slots__ = ()

    @catching_everywhere
    def __contains__(self, name: object) -> bool:
        try:
            activation = self.plan.activations.of(_getframe(1))
            return activation is not None and name in activation.bound
        except BaseException as error:
            clean(error)
            raise


class HookSite:
    """One place in the code, and its hooks."""

    __slots__ = (
        "binds",
        "depth",
        "find",
        "line",
        "marks",
        "missing",
        "others",
        "plan",
        "postponed",
        "tracks",
    )

    def __new__(
        cls, plan: HookPlan, marks: tuple[Mark, ...] = (), calls: bool = False, **_: object
    ) -> Self:
        """A site that a debugger is kept out of, where its listeners are."""
        hides = plan.hides_calls() if calls else plan.hides(marks)
        return super().__new__(hidden_twin(cls) if hides else cls)

    def __init__(
        self,
        plan: HookPlan,
        marks: tuple[Mark, ...] = (),
        calls: bool = False,
        *,
        depth: int = 1,
        line: int = 0,
        postponed: int | None = None,
        binds: bool = True,
    ) -> None:
        """``calls``: whether calls begin or end here."""
        self.plan = plan
        self.find = plan.activations.get
        self.missing = plan.gate
        self.marks = marks
        self.depth = depth
        """Depth of the function's own frame: comprehensions have frames in Python 3.11."""
        self.line = line
        self.postponed = postponed
        """If a `finally` comes between evaluating a returned value and returning it: the depth."""
        self.binds = binds
        """Whether the variables are the function's own, and not those of a comprehension."""
        self.tracks: frozenset[str] = frozenset()
        """The names that this place binds, of those for which the source does not tell."""
        self.others = 1
        """At the begin of a call: index of the first value that the marks describe."""
        plan.sites.append(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Silence, ())

    def __deepcopy__(self, memo: object) -> HookSite:
        return self

    @property
    def look(self) -> Callable[..., object]:
        """The hook after variables were assigned, or may have changed."""
        return self.look_at_one if len(self.marks) == 1 else self.look_at_all

    # Inlined below: it runs for every call and nearly every statement.

    @catching_everywhere
    def enter(self, *values: object) -> object:
        """A call has begun.

        The values are the first parameter, then, if listeners want them, all parameters and those
        that the marks describe. Does nothing while torch makes a graph, nor in compiled regions,
        where TorchDynamo would have to skip all that a listener calls.
        """
        try:
            if REGIONS and get_ident() in REGIONS:
                return UNHEARD
            compiler: Any = _MODULES.get("torch.compiler")
            if compiler is not None:
                try:
                    # As is_compiling(), without its check for scripted code, which has no hooks.
                    is_compiling = compiler._is_compiling_flag
                except AttributeError:
                    is_compiling = _is_compiling(compiler)
                if is_compiling:
                    return UNHEARD
            plan = self.plan
            frame = _getframe(1)
            first: Any = values[0]
            if plan.leads_with_rest:
                first = first[0] if first else None
            listening: tuple[tuple[Following, object], ...] = ()
            for following in plan.followings:
                try:
                    if following.entered_with is not None:
                        state = following.entered_with(frame, values[1 : self.others])
                    elif following.entered_by is not None:
                        state = following.entered_by(first)
                    else:
                        state = following.entered(Call(plan.function, first, plan.line))
                except Exception as error:
                    following.fail(error)
                    continue
                if state is not None:
                    listening += ((following, state),)
            if not listening:
                return UNHEARD
            activation = HookedCall()
            activation.listening = listening
            activation.bound = self.tracks
            activation.pending = None
            activations = plan.activations
            activations[id(frame)] = weakref.ref(activation)
            if len(activations) > FEW:
                activations.make_room()
            if len(values) > self.others:
                unaware = [each for each in listening if each[0].entered_with is None]
                self._tell(unaware, values[self.others :])
            return (activation,)
        except BaseException as error:
            clean(error)
            raise

    @catching_everywhere
    def look_at_one(self, value: object) -> object:
        """A variable was assigned, or may have changed; returns its value."""
        try:
            reference = self.find(id(_getframe(self.depth)))
            if reference is not None and (activation := reference()) is not None:
                if self.tracks:
                    activation.bound |= self.tracks
                self._tell(activation.listening, (value,))
            return value
        except BaseException as error:
            clean(error)
            raise

    @catching_everywhere
    def look_inside(self, *values: object) -> object:
        """Variables of a comprehension were assigned, which has the function's names for them."""
        try:
            reference = self.find(id(_getframe(self.depth)))
            if reference is not None and (activation := reference()) is not None:
                for following, state in activation.listening:
                    names = following.names
                    if following.merges:
                        try:
                            for (name, line, assigned), value in zip(
                                self.marks, values, strict=True
                            ):
                                if names is None or name in names:
                                    following.looked_at(state, name, value, line, assigned)
                        except Exception as error:
                            following.fail(error)
            return self
        except BaseException as error:
            clean(error)
            raise

    @catching_everywhere
    def look_at_all(self, *values: object) -> object:
        """Variables were assigned, or may have changed."""
        try:
            reference = self.find(id(_getframe(self.depth)))
            if reference is not None and (activation := reference()) is not None:
                if self.tracks:
                    activation.bound |= self.tracks
                self._tell(activation.listening, values)
            return self
        except BaseException as error:
            clean(error)
            raise

    @catching_everywhere
    def look_after_raise(self, *values: object) -> object:
        """A block was left by an exception: what has changed did so on the line that raised it."""
        try:
            self.tell_after_raise(_getframe(1), values)
            return self
        except BaseException as error:
            clean(error)
            raise

    def tell_after_raise(self, frame: types.FrameType, values: tuple[object, ...]) -> None:
        """Report after a raise, if the frame has a followed call."""
        activation = self.plan.activations.of(frame)
        if activation is not None:
            raised = sys.exc_info()[2]
            marks = self.marks
            if raised is not None and raised.tb_frame is frame:
                at = raised.tb_lineno
                marks = tuple((name, line if own else at, own) for name, line, own in marks)
            if self.tracks:
                activation.bound |= self.tracks
            self._tell(activation.listening, values, marks)

    @catching_everywhere
    def return_(self, value: object, *values: object) -> object:
        """The function is about to return a value; the variables may have changed."""
        try:
            reference = self.find(id(_getframe(1)))
            if reference is not None and (activation := reference()) is not None:
                if values:
                    self._tell(activation.listening, values)
                if self.postponed is not None:
                    activation.pending = (value, self.line, self.postponed)
                else:
                    for following, state in activation.listening:
                        try:
                            following.returned(state, value, self.line)
                        except Exception as error:
                            following.fail(error)
            return value
        except BaseException as error:
            clean(error)
            raise

    @catching_everywhere
    def generate(self, generator: Any) -> object:
        """A generator expression was made; its frame belongs to the call that made it."""
        try:
            activations = self.plan.activations
            activation = activations.of(_getframe(self.depth))
            key = id(getattr(generator, "gi_frame", None) or generator.ag_frame)
            activations.pop(key, None)
            if activation is not None:
                activations.hold_until_gone(key, activation, generator)
            return generator
        except BaseException as error:
            clean(error)
            raise

    @covering_jumps
    def _tell(
        self,
        listening: Iterable[tuple[Following, object]],
        values: tuple[object, ...],
        marks: tuple[Mark, ...] | None = None,
    ) -> None:
        missing = self.missing
        if marks is None:
            marks = self.marks
        for following, state in listening:
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


class _Silence:
    """Stands for sites in another process, where the gate is shut and no hook is called."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing


def _is_compiling(compiler: Any) -> bool:
    """Return whether torch makes a graph, for versions without a flag for it."""
    is_compiling = getattr(compiler, "is_compiling", None)
    return is_compiling is not None and bool(is_compiling())
