"""The listeners of a function, and its calls that are being followed."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace.instrument.interface import Entered, Interest, Listener, LookedAt, Returned

FEW: Final = 64
"""Number of remembered calls from which on those that are over are forgotten."""


class Following:
    """One listener of a function."""

    def __init__(self, interest: Interest, listener: Listener, stop: Callable[[Following], None]):
        self.interest: Final = interest
        self.names: Final = interest.names
        self.merges: Final = interest.merges
        self.error: Exception | None = None
        """The listener's exception, which ended the following."""
        hooks = listener.hooks()
        self.entered: Entered = hooks.entered or nothing
        self.entered_by = hooks.entered_by
        self.entered_with = hooks.entered_with
        self.looked_at: LookedAt = hooks.looked_at
        self.looked_at_all = hooks.looked_at_all
        self.deleted = hooks.deleted
        self.returned: Returned = (hooks.returned if interest.returns else None) or nothing
        self.is_hidden: Final = hooks.is_hidden
        self._step_aside = hooks.stepped_aside
        self.is_active = True
        """Whether the listener still gets calls."""
        self._stop: Callable[[Following], None] | None = stop

    def stop(self) -> None:
        """Stop following, also in running calls. The last listener's stop restores the code."""
        self.is_active = False
        self.entered = self.looked_at = self.returned = nothing
        self.entered_by = self.entered_with = self.looked_at_all = self.deleted = None
        if self._stop is not None:
            self._stop(self)
            self._stop = None

    def step_aside(self) -> None:
        """Tell the listener, once, that compiled code is not followed."""
        step_aside, self._step_aside = self._step_aside, None
        if step_aside is not None and self.is_active:
            try:
                step_aside()
            except Exception as error:
                self.fail(error)

    def fail(self, error: Exception) -> None:
        """Stop after an error of the listener, but not if there was only no room on the stack.

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
    """One call that is followed.

    It lies on the stack of the call's frame, and only there: when it goes, the call is over. It is
    an empty list, as the code iterates it once and iterating a list is fast.
    """

    __slots__ = ("__weakref__", "bound", "listening", "pending")

    listening: tuple[tuple[Following, object], ...]
    bound: frozenset[str]
    """The names bound now, of those for which the source alone does not tell."""
    pending: tuple[object, int, int] | None
    """The pending return value, its line, and the depth of `finally` that it was returned in."""


class HookedCalls(dict[int, weakref.ref[HookedCall]]):
    """The calls that are followed, by the id of their frame.

    Those that are over are forgotten only now and then: most calls get the address of an earlier
    one.
    """

    __slots__ = ("_generators", "_room")

    def __init__(self) -> None:
        super().__init__()
        self._room = FEW
        self._generators: dict[int, weakref.ref[Any]] = {}
        """Generators whose frames are among the keys, by the id of the frame."""

    def of(self, frame: types.FrameType) -> HookedCall | None:
        """The call of a frame, if it is followed."""
        reference = self.get(id(frame))
        return None if reference is None else reference()

    def hold_until_gone(self, key: int, activation: HookedCall, generator: Any) -> None:
        """Map a generator's frame to a call, until the generator is gone."""
        self[key] = weakref.ref(activation)
        # A C function: an exception that came in code of ours would be lost here.
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
                        self[key] = gone  # another thread's call has got the id meanwhile
            self._room = max(FEW, 2 * len(self))
