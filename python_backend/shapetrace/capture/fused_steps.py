"""Counts steps of fused optimizers, which change parameters without a new version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch._C import DisableTorchFunction
from torch.optim.optimizer import register_optimizer_step_post_hook

from shapetrace._asynchronous import clean
from shapetrace._dynamo import Bystander, stand_aside, stand_by
from shapetrace._exception_table import catching_everywhere, leaving_surely

_steps: Final[dict[int, int]] = {}
"""How many fused steps changed a parameter, by its id; callers keep the parameter alive."""
_hooks: Final[list[object]] = []


def fused_steps_of(tensor: object) -> int:
    """How many fused steps have changed a tensor while they were counted."""
    return _steps.get(id(tensor), 0)


def hear_of_fused_steps(undo: list[Callable[[], None]]) -> None:
    """Count fused steps from now on; the function that ends it is appended to a list."""
    hook = _Hook()
    undo.append(hook.stop)
    hook.begin()


class _Hook(Bystander):
    """A hook of all optimizers, removed where Dynamo guards on their number."""

    def __init__(self) -> None:
        self._regions: set[int] = set()
        self._handle: Any = None

    def begin(self) -> None:
        """Register the hook."""
        _hooks.append(self)
        self._handle = register_optimizer_step_post_hook(_stepped)
        stand_by(self)

    def stop(self) -> None:
        """Remove the hook."""
        stand_aside(self)
        if self._handle is not None:
            self._handle.remove()
        _hooks[:] = [each for each in _hooks if each is not self]
        if not _hooks:
            _steps.clear()

    def enter(self, thread: int) -> None:
        """A compiled function begins, which may be a step."""
        self._regions.add(thread)
        self._handle.remove()

    def leave(self, thread: int) -> None:
        """It has returned."""
        self._regions.discard(thread)
        if not self._regions:
            self._handle = register_optimizer_step_post_hook(_stepped)


@catching_everywhere
@leaving_surely
def _stepped(optimizer: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
    try:
        if torch.compiler.is_compiling():
            return
        for group in optimizer.param_groups:
            if group.get("fused"):
                with DisableTorchFunction():  # Asking for a gradient is a call, too.
                    changed = [each for each in group["params"] if each.grad is not None]
                for parameter in changed:
                    _steps[id(parameter)] = _steps.get(id(parameter), 0) + 1
    except BaseException as error:
        clean(error)
        raise
