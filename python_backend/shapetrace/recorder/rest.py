"""Sampling: when to stop recording because nothing is new, and when to record again.

A recording settles after some forward passes that brought nothing new. From then on only the
outermost module calls are noticed. A pass is looked at again when it is the first of another
module, when anything about its inputs is new, and otherwise once in ``SAMPLE_EVERY`` passes, and
half as often each time that brought nothing new, down to once in ``SAMPLE_AT_LEAST_EVERY``.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.nn import Module

from shapetrace._exception_table import leaving_surely
from shapetrace.recorder.describe import describe_value

SAMPLE_EVERY: Final = 64
"""While recording pauses, one pass in so many is recorded."""
SAMPLE_AT_LEAST_EVERY: Final = 1024
MOST_SIGNATURES: Final = 256


class Rest:
    """Counts passes that brought nothing new, and remembers the ones that are known."""

    def __init__(self, settle_after: int | None) -> None:
        self._settle_after = settle_after
        self._quiet_passes = 0
        self._known: set[Any] = set()
        self.asleep = False
        self.stays_awake = False
        """Whether every pass is recorded, even without anything new."""
        self.slept_at: int | None = None
        """The last pass before recording paused."""
        self.missed = 0
        """Passes that were not recorded."""
        self._since_sample = 0
        self._sample_every = SAMPLE_EVERY

    def after_pass(self, new: bool, signature: Any, passes: int) -> bool:
        """Note that a pass is over; True when it is time to rest."""
        if self._settle_after is None or self.stays_awake:
            return False
        if signature is not None and len(self._known) < MOST_SIGNATURES:
            self._known.add(signature)
        self._quiet_passes = 0 if new else self._quiet_passes + 1
        if new:
            self._sample_every = SAMPLE_EVERY
        if self._quiet_passes < self._settle_after:
            self.asleep = False
            return False
        self.asleep = True
        self.slept_at = passes
        self._since_sample = 0
        return True

    def wants_to_look(self, signature: Any) -> bool:
        """Return whether a pass that begins during a pause is recorded."""
        if signature not in self._known:
            self._quiet_passes = 0
            return True
        self._since_sample += 1
        if self._since_sample >= self._sample_every:
            self._since_sample = 0
            self._sample_every = min(2 * self._sample_every, SAMPLE_AT_LEAST_EVERY)
            return True
        self.missed += 1
        return False

    def wake(self) -> None:
        """Look at everything again from the next pass on."""
        self.asleep = False
        self._quiet_passes = 0
        self._known.clear()

    @property
    def needs_signatures(self) -> bool:
        """Whether the signatures of passes are needed."""
        return self._settle_after is not None


@leaving_surely
def signature_of(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The properties of a pass that may change what happens in it: module, state, all inputs."""
    with torch._C.DisableTorchFunction():
        return (
            type(module),
            id(module),
            module.training,
            torch.is_grad_enabled(),
            torch.is_autocast_enabled(),
            tuple([describe_value(value) for value in args]),
            tuple([(name, describe_value(value)) for name, value in kwargs.items()]),
        )
