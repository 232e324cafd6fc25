"""One model whose values are captured, from ``start`` to ``stop``."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from torch.nn import Module

from shapetrace.capture.installing import ListenerInstaller
from shapetrace.capture.iterations import Iteration, Iterations
from shapetrace.capture.listeners import Capture, RootListener
from shapetrace.capture.outcome import silent_paths
from shapetrace.capture.plan import Plan
from shapetrace.capture.problems import CaptureIssue
from shapetrace.capture.receivers import Receiver
from shapetrace.capture.results import Mode
from shapetrace.capture.structure import unwrapped, wrappers_of


class CaptureSession:
    """Passes changed values to its receivers, from ``start`` to ``stop``.

    Args:
        model: it is held weakly.
        receivers: who gets which values.
        counts: how many iterations there were of each mode; counted on.
        note: is told what cannot be captured.
        ended: is told of each iteration that is over.
        unseen: wraps what is called while the model runs, to hide it from a debugger.

    """

    def __init__(
        self,
        model: Module,
        receivers: Sequence[Receiver],
        counts: dict[Mode, int],
        note: Callable[[CaptureIssue], None],
        ended: Callable[[Iteration], None],
        unseen: Callable[[Any], Any] | None = None,
    ) -> None:
        self._receivers = receivers
        self._counts = counts
        self._note = note
        self._began_at = dict(counts)
        self._known_dues: dict[frozenset[int], frozenset[int]] = {}
        self._iterations = Iterations(wrappers_of(model), counts, self._due, ended)
        self._capture = Capture(receivers, self._iterations, note, unseen)
        root = unwrapped(model)
        plan = self._plan = Plan(root, [receiver.paths for receiver in receivers])
        self._root = weakref.ref(root, plan.forgetting)
        self._undo: list[Callable[[], None]] = []
        """Undoes each step of ``start``, last first."""

    @property
    def is_forked(self) -> bool:
        """Whether this is a forked child of the capturing process; it captures nothing."""
        return self._iterations.is_forked

    @property
    def deferred(self) -> BaseException | None:
        """An exception of a callback that could not be raised where it occurred."""
        return self._capture.deferred

    def start(self, model: Module) -> None:
        """Begin to listen."""
        for miss in self._plan.misses:
            self._note(miss)
        ListenerInstaller(self._capture, model, self._plan).start(self._undo)

    def stop(self) -> None:
        """Restore everything that ``start`` replaced. Can be repeated after an interruption."""
        while self._undo:
            self._undo[-1]()
            del self._undo[-1]

    def root_listener(self) -> RootListener:
        """Counts calls of the model."""
        return RootListener(self._capture)

    def tell_of_silence(self) -> None:
        """Note which paths captured nothing, and why."""
        ran = {mode: count - self._began_at[mode] for mode, count in self._counts.items()}
        for issue in silent_paths(self._plan, self._capture, ran):
            self._note(issue)

    def _due(self, mode: Mode, number: int) -> frozenset[int]:
        """The receivers that get the values captured in an iteration."""
        due = frozenset(
            index
            for index, receiver in enumerate(self._receivers)
            if receiver.is_traced(mode, number)
        )
        return self._known_dues.setdefault(due, due)  # Listeners know it by its identity.
