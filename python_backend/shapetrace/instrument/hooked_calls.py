"""Who listens to a function, and which of its calls are being listened to."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace.instrument.interface import Entered, Interest, Listener, LookedAt, Returned

FEW: Final = 64
"""So many calls are remembered at least before those that are over are forgotten."""


class Following:
    """One listener of a function."""

    def __init__(self, interest: Interest, listener: Listener, stop: Callable[[Following], None]):
        self.interest: Final = interest
        self.names: Final = interest.names
        self.merges: Final = interest.merges
        self.error: Exception | None = None
        """What the listener raised, which ended the following."""
        hooks = listener.hooks()
        self.entered: Entered = hooks.entered or nothing
        self.entered_by = hooks.entered_by
        self.entered_with = hooks.entered_with
        self.looked_at: LookedAt = hooks.looked_at
        self.looked_at_all = hooks.looked_at_all
        self.deleted = hooks.deleted
        self.returned: Returned = (hooks.returned if interest.returns else None) or nothing
        self._step_aside = hooks.stepped_aside
        self.is_active = True
        """Whether the listener still hears of the function."""
        self._stop: Callable[[Following], None] | None = stop

    def stop(self) -> None:
        """No longer follow, also in calls that are running. The last one puts the code back."""
        self.is_active = False
        self.entered = self.looked_at = self.returned = nothing
        self.entered_by = self.entered_with = self.looked_at_all = self.deleted = None
        if self._stop is not None:
            self._stop(self)
            self._stop = None

    def step_aside(self) -> None:
        """Tell the listener, once, that it hears nothing while something compiled runs."""
        step_aside, self._step_aside = self._step_aside, None
        if step_aside is not None and self.is_active:
            try:
                step_aside()
            except Exception as error:
                self.fail(error)

    def fail(self, error: Exception) -> None:
        """The listener has raised an error: stop, unless it only had no room on the stack.

        An exception of the program's that came meanwhile is raised again: the hook passes it on.
        """
        if is_asynchronous(error):
            raise error
        if isinstance(error, RecursionError):
            return
        self.error = error.with_traceback(None)
        self.stop()

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def nothing(*values: object) -> None:
    """Do nothing."""


class HookedCall(list[Any]):
    """One call that somebody listens to.

    It lies on the stack of the call's frame, and only there: when it goes, the call is over. It is
    iterated once, where it is empty, and a list is so quickly.
    """

    __slots__ = ("__weakref__", "bound", "listening", "pending")

    listening: tuple[tuple[Following, object], ...]
    bound: frozenset[str]
    """Those names that have a value now, of those where the source alone does not tell."""
    pending: tuple[object, int, int] | None
    """What is to be returned, unless a `finally` raises; its line; in how many of these it was
    said."""


class HookedCalls(dict[int, weakref.ref[HookedCall]]):
    """The calls that somebody listens to, by the id of their frame.

    Those that are over are forgotten only now and then, as most calls get the place in memory that
    another has had.
    """

    __slots__ = ("_generators", "_room")

    def __init__(self) -> None:
        super().__init__()
        self._room = FEW
        self._generators: dict[int, weakref.ref[Any]] = {}
        """Those whose frames are known here, by the id of the frame."""

    def of(self, frame: types.FrameType) -> HookedCall | None:
        """The call that runs in a frame, if anybody listens to it."""
        reference = self.get(id(frame))
        return None if reference is None else reference()

    def hold_until_gone(self, key: int, activation: HookedCall, generator: Any) -> None:
        """Let what runs in a generator's frame belong to a call, until the generator is gone."""
        self[key] = weakref.ref(activation)
        # Called without any code of ours: an exception that comes there would be lost.
        self._generators[key] = weakref.ref(generator, partial(self.pop, key))
        if len(self._generators) > self._room:
            for number, reference in list(self._generators.items()):
                if reference() is None:
                    self._generators.pop(number, None)

    def make_room(self) -> None:
        """Forget calls that are over, if there are many."""
        if len(self) > self._room:
            for key, reference in list(self.items()):
                if reference() is None:
                    gone = self.pop(key, None)
                    if gone is not None and gone is not reference:
                        self[key] = gone  # another thread's call has got the number meanwhile
            self._room = max(FEW, 2 * len(self))
