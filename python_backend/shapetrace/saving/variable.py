"""Takes values from the place of their change, through ``pre_save``, to the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import CaptureError
from shapetrace._exception_table import covering_jumps
from shapetrace.capture.copies import (
    DEEPEST,
    ON_THE_WAY,
    copied,
    copied_ordinary,
    shown,
    unseen_among,
)
from shapetrace.capture.iterations import Iteration
from shapetrace.capture.receivers import CallbackError, Receiver, interval
from shapetrace.capture.results import Mode, ResultEntry
from shapetrace.inspecting.containers import INSIDE, remade
from shapetrace.saving.callbacks import call_callback, call_pre_save, prepared

Callbacks = Sequence[Callable[..., Any]]


class Variable(Receiver):
    """Paths of values that are captured in the same way, and what was captured of them.

    Args:
        paths: a list of paths, such as ``["forward", "layers.*.attn.forward.scores"]``.
        trace_interval: capture in every so many iterations.
        gather_interval: gather after every so many iterations.
        pre_save_callbacks: ``(name, value, iteration) -> value``: returns the value to keep
        instead.
            It gets the original value, before it is copied, and must not change it.
        pre_gather_callbacks: ``(name, values, iterations[, ranks])``, on each rank.
        post_gather_callbacks: ``(name, values, iterations, ranks)``, on rank 0 after each gather.
        post_trace_callbacks: ``(name, values, iterations, ranks)``, on rank 0 at the end.
        mode: ``"train"`` or ``"eval"`` for iterations of one kind only.

    """

    def __init__(
        self,
        paths: Iterable[str],
        trace_interval: int = 1,
        gather_interval: int = 1,
        pre_save_callbacks: Callbacks = (),
        pre_gather_callbacks: Callbacks = (),
        post_gather_callbacks: Callbacks = (),
        post_trace_callbacks: Callbacks = (),
        mode: Literal["train", "eval"] | None = None,
    ) -> None:
        if isinstance(paths, str):
            raise CaptureError(f"paths are a list: write [{paths!r}] in place of {paths!r}")
        refuse_all_but_lists(
            pre_save_callbacks=pre_save_callbacks,
            pre_gather_callbacks=pre_gather_callbacks,
            post_gather_callbacks=post_gather_callbacks,
            post_trace_callbacks=post_trace_callbacks,
        )
        super().__init__(paths, trace_interval, mode)
        self.gather_interval = interval("gather_interval", gather_interval)
        self.pre_save_callbacks = tuple(pre_save_callbacks)
        self._of_gathers = [prepared(callback) for callback in post_gather_callbacks]
        self.pre_gather_callbacks = tuple(pre_gather_callbacks)
        self.post_gather_callbacks = tuple(post_gather_callbacks)
        self.post_trace_callbacks = tuple(post_trace_callbacks)
        self.results: dict[str, ResultEntry] = {}
        """The gathered values by name; on rank 0 only."""
        self._local: dict[Mode, dict[str, ResultEntry]] = {"train": {}, "eval": {}}
        self._gathered: dict[Mode, int] = {"train": 0, "eval": 0}
        self.rank = 0
        """The process that captures, as far as is known."""

    @property
    def local_results(self) -> dict[str, ResultEntry]:
        """The values that this process has captured since the last gather, by name."""
        found: dict[str, ResultEntry] = {}
        for entries in self._local.values():
            for name, entry in list(entries.items()):
                found.setdefault(name, ResultEntry()).extend(_of_rank(entry, self.rank))
        return found

    def save(self, name: str, value: Any, iteration: Iteration) -> None:
        """Keep a value that has changed; raises ``CannotCopyError`` or ``CallbackError``."""
        kept = self.reduced(name, value, iteration.number) if self.pre_save_callbacks else value
        self._keep(name, copied(kept), iteration)

    def save_ordinary(self, name: str, value: torch.Tensor, iteration: Iteration) -> None:
        """Like ``save``, for an ordinary tensor."""
        if self.pre_save_callbacks:
            self.save(name, value, iteration)
        else:
            self._keep(name, copied_ordinary(value), iteration)

    def _keep(self, name: str, copy: Any, iteration: Iteration) -> None:
        entries = self._local[iteration.mode]
        entry = entries.get(name)
        if entry is None:
            entries[name] = ResultEntry([iteration.number], [self.rank], [copy])
            self.captured.add(name)
        else:
            entry.iterations.append(iteration.number)
            entry.ranks.append(self.rank)
            entry.values.append(copy)

    def reduced(self, name: str, value: Any, iteration: int) -> Any:
        """The result of the ``pre_save`` callbacks; raises like ``save``."""

        def reduce(value: Any) -> Any:
            try:
                for callback in self.pre_save_callbacks:
                    value = call_pre_save(callback, name, value, iteration)
            except BaseException as error:
                if is_asynchronous(error):
                    raise
                raise CallbackError(error) from error
            return value

        return shown(value, reduce)

    def is_due(self, mode: Mode, iteration: int) -> bool:
        """Return whether a gather is due after this iteration."""
        return self.mode in (None, mode) and iteration % self.gather_interval == 0

    def next_gather(self, mode: Mode, iteration: int) -> int:
        """The number of the gather that what is left over at the end belongs to."""
        number = -(-iteration // self.gather_interval) * self.gather_interval
        if number <= self._gathered[mode]:
            number = self._gathered[mode] + self.gather_interval
        return number

    def has_local(self, mode: Mode) -> bool:
        """Return whether anything waits to be gathered."""
        return bool(self._local[mode])

    @covering_jumps
    def hand_over(self, mode: Mode, number: int, rank: int) -> dict[str, ResultEntry]:
        """The values captured since the last call, after the ``pre_gather`` callbacks."""
        self._gathered[mode] = number
        entries, self._local[mode] = self._local[mode], {}
        if ON_THE_WAY.arrive():
            for entry in entries.values():
                # Pinned memory is scarce; results may be kept for hours.
                with unseen_among(entry.values):
                    entry.values[:] = [_in_ordinary_memory(value) for value in entry.values]
        if rank != self.rank:
            self.rank = rank  # The process group was made only now.
            for kept in (entries, *self._local.values()):
                for entry in kept.values():
                    entry.ranks = [rank] * len(entry.iterations)
        try:
            for name, entry in entries.items():
                for callback in self.pre_gather_callbacks:
                    if hasattr(callback, "after_gather"):
                        # It determines the rank by itself, and so knows that it runs before the
                        # gather.
                        callback(name, entry.values, entry.iterations)
                        if not entry.iterations:
                            entry.ranks.clear()
                    else:
                        call_callback(callback, name, entry)
        finally:
            _after_gather(self.pre_gather_callbacks)
        return entries

    @covering_jumps
    def take_in(self, entries: dict[str, ResultEntry]) -> None:
        """Add what was gathered to the results, after the ``post_gather`` callbacks."""
        try:
            for name, entry in entries.items():
                for call in self._of_gathers:
                    call(name, entry)
                known = self.results.get(name)
                if known is None:
                    self.results[name] = entry
                    self.captured.add(name)
                elif entry.iterations or entry.values:
                    known.extend(entry)
        finally:
            _after_gather(self.post_gather_callbacks)

    def finish(self) -> None:
        """Call the ``post_trace`` callbacks."""
        try:
            for name, entry in self.results.items():
                for callback in self.post_trace_callbacks:
                    call_callback(callback, name, entry)
        finally:
            _after_gather(self.post_trace_callbacks)


def _of_rank(entry: ResultEntry, rank: int) -> ResultEntry:
    return ResultEntry(entry.iterations, [rank] * len(entry.iterations), entry.values)


def _after_gather(callbacks: Callbacks) -> None:
    """Tell the callbacks with ``after_gather`` that all names of a gather were handed over."""
    for callback in callbacks:
        after_gather = getattr(callback, "after_gather", None)
        if after_gather is not None:
            after_gather()


def _in_ordinary_memory(value: Any) -> Any:
    return remade(value, _unpinned, _itself, _itself, DEEPEST)


def _unpinned(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone() if value.is_pinned() else value
    return INSIDE


def _itself(value: Any) -> Any:
    return value


def refuse_all_but_lists(**given: object) -> None:
    """Raise ``CaptureError`` for the first of these that is not a list."""
    for name, value in given.items():
        if not isinstance(value, Iterable):
            shown = getattr(value, "__name__", repr(value))
            raise CaptureError(f"{name} are a list: write [{shown}] in place of {shown}")
