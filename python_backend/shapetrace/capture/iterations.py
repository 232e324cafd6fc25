"""Which iteration of the model runs, and on which thread.

An iteration is one outermost call of the model. Training and evaluation are counted separately,
from 1.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any, Final

import torch
from torch.nn import Module

from shapetrace._exception_table import leaving_surely
from shapetrace._frames import frame_of_program, innermost_of
from shapetrace._locks import holding
from shapetrace.capture.results import Mode

_LATER: Final = (GeneratorType, CoroutineType, AsyncGeneratorType)


class Iteration:
    """One outermost call of the model."""

    __slots__ = ("due", "error", "is_special", "mode", "number", "owner", "replica", "started_in")

    def __init__(self, mode: Mode, number: int, due: frozenset[int]) -> None:
        self.mode = mode
        self.number = number
        self.due = due
        """The receivers that are due in this iteration."""
        self.error: BaseException | None = None
        """An exception of a callback, raised again when the outermost call ends."""
        self.owner: int | None = None
        """Id of our frame that reports its end."""
        self.is_special = False
        """Whether ``replica`` or ``started_in`` is set."""
        self.replica: dict[int, int] | None = None
        """Modules of the replica that runs, with the modules they were copied from."""
        self.started_in: dict[int, tuple[CodeType, None]] | None = None
        """The frame of a ``forward`` that was called directly, by its id, and its code."""


class _Local(threading.local):
    """State of one thread."""

    iteration: Iteration | None = None


class Iterations:
    """Counts the iterations of a model, and knows the one that runs."""

    def __init__(
        self,
        roots: Iterable[Module],
        counts: dict[Mode, int],
        due: Callable[[Mode, int], frozenset[int]],
        ended: Callable[[Iteration], None],
    ) -> None:
        self.counts = counts
        self.local = _Local()
        if _here.counts_none:
            self.local.iteration = _none()
        self.is_forked = False
        """Whether this is a forked child of the capturing process; it captures nothing."""
        # Weak: the program owns the modules.
        self._roots = tuple(weakref.ref(root) for root in roots)
        self._outermost = self._roots[0]
        self._due = due
        self._ended = ended
        self._lock = threading.Lock()
        self._running: list[Iteration] = []
        self._later: list[tuple[weakref.ref[Any], Iteration]] = []
        """Generators and coroutines returned by a call, which run after it."""
        _all.add(self)

    @property
    def model(self) -> Module | None:
        """The innermost of the modules that wrap each other, as long as it is there."""
        return self._roots[-1]()

    @leaving_surely
    def begin(
        self, module: Module, caller: FrameType | None = None, *, owner: int | None = None
    ) -> Iteration | None:
        """Begin an iteration at the call of a module; None if it begins none."""
        if self.local.iteration is not None and self._current_here(caller) is not None:
            return None
        if self.is_forked:
            return None
        replica = None
        if module is not self._outermost() and not any(module is each() for each in self._roots):
            model = self.model
            if "_is_replica" not in vars(module) or type(module) is not type(model):
                return None
            replica = _counterparts(module, model)
        if torch._C._current_graph_task_id() != -1:
            return None  # A checkpoint that is computed again, in a backward pass.
        mode: Mode = "train" if module.training else "eval"
        with holding(self._lock):
            self.counts[mode] += 1
            number = self.counts[mode]
        iteration = Iteration(mode, number, self._due(mode, number))
        iteration.owner = owner
        iteration.replica = replica
        iteration.is_special = replica is not None
        self.local.iteration = iteration
        self._running.append(iteration)
        return iteration

    def begin_in(self, frame: FrameType, module: Module) -> Iteration | None:
        """Like ``begin``, for a ``forward`` that was called directly and runs in this frame."""
        if self._later and self._of_a_generator(frame) is not None:
            return None
        iteration = self.begin(module, frame.f_back)
        if iteration is not None:
            iteration.started_in = {id(frame): (frame.f_code, None)}
            iteration.is_special = True
        return iteration

    def end(self, iteration: Iteration, result: object = None, *, failed: bool = False) -> None:
        """End an iteration; raise the exception of a callback, unless the call failed."""
        self._let_go(iteration)
        if not isinstance(result, torch.Tensor) and isinstance(result, _LATER):
            self._later = [pair for pair in self._later if pair[0]() is not None]
            self._later.append((weakref.ref(result), iteration))
        try:
            self._ended(iteration)
        finally:
            error, iteration.error = iteration.error, None
            if error is not None and not failed:
                raise error

    def _let_go(self, iteration: Iteration) -> None:
        if self.local.iteration is iteration:
            self.local.iteration = None
        if iteration in self._running:
            self._running.remove(iteration)

    def current(self) -> Iteration | None:
        """The iteration that this thread's running code belongs to."""
        if self.is_forked:
            return None
        iteration = self._current_here()
        if iteration is not None:
            return iteration
        if self._later:
            iteration = self._of_a_generator(sys._getframe(1))
            if iteration is not None:
                return iteration
        # A thread that the model has started, or DataParallel.
        return self._running[0] if len(self._running) == 1 else None

    def _current_here(self, frame: FrameType | None = None) -> Iteration | None:
        iteration = self.local.iteration
        if iteration is not None and iteration.started_in is not None:
            # An exception that ends a ``forward`` is not reported here.
            frame = frame or frame_of_program(sys._getframe(1))
            if innermost_of(frame, iteration.started_in) is None:
                self._let_go(iteration)
                return None
        return iteration

    def _of_a_generator(self, frame: FrameType | None) -> Iteration | None:
        running: dict[int, tuple[CodeType, Iteration]] = {}
        for reference, iteration in self._later:
            later = reference()
            for name in ("gi_frame", "cr_frame", "ag_frame"):
                own = getattr(later, name, None)
                if own is not None:
                    running[id(own)] = (own.f_code, iteration)
        found = innermost_of(frame, running)
        return None if found is None else found[1]


@contextmanager
def none_counted() -> Iterator[None]:
    """Calls of models on this thread count as no iteration within the block."""
    before = [(each, each.local.iteration) for each in _all]
    outer, _here.counts_none = _here.counts_none, True
    for each, _ in before:
        each.local.iteration = _none()
    try:
        yield
    finally:
        _here.counts_none = outer
        for each in list(_all):
            each.local.iteration = None  # Of those that were made meanwhile.
        for each, iteration in before:
            each.local.iteration = iteration


class _Here(threading.local):
    """State of one thread for all models."""

    counts_none = False


_here: Final = _Here()


def _none() -> Iteration:
    """Stands for the iteration where none is counted; nothing is captured."""
    return Iteration("eval", 0, frozenset())


def _counterparts(replica: Module, model: Module) -> dict[int, int]:
    """The modules of a replica by number, with those of the model that they were made from."""
    own = dict(model.named_modules(remove_duplicate=False))
    return {
        id(module): id(own[name])
        for name, module in replica.named_modules(remove_duplicate=False)
        if name in own
    }


_all: weakref.WeakSet[Iterations] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for iterations in list(_all):
        iterations.is_forked = True
        iterations.local = _Local()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
