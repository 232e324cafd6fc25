"""Steps of fused optimizers, which change parameters without counting that as other changes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch._C import DisableTorchFunction
from torch.optim.optimizer import register_optimizer_step_post_hook

from shapetrace._dynamo import Bystander, stand_by

_steps: Final[dict[int, int]] = {}
"""How often a parameter was changed so, by its number; who asks has the parameter."""
_hooks: Final[list[object]] = []


def fused_steps_of(tensor: object) -> int:
    """How many fused steps have changed a tensor while somebody heard of them."""
    return _steps.get(id(tensor), 0)


def hear_of_fused_steps() -> Callable[[], None]:
    """Count them from now on; returns how to stop that."""
    hook = _Hook()
    _hooks.append(hook)

    def stop() -> None:
        hook.stop()
        _hooks.remove(hook)
        if not _hooks:
            _steps.clear()

    return stop


class _Hook(Bystander):
    """A hook of all optimizers, but where Dynamo guards on how many there are."""

    def __init__(self) -> None:
        self._regions: set[int] = set()
        self._handle: Any = register_optimizer_step_post_hook(_stepped)
        self._go = stand_by(self)

    def stop(self) -> None:
        """Hear of no more steps."""
        self._go()
        self._handle.remove()

    def enter(self, thread: int) -> None:
        """Something compiled runs, which may be a step."""
        self._regions.add(thread)
        self._handle.remove()

    def leave(self, thread: int) -> None:
        """It has returned."""
        self._regions.discard(thread)
        if not self._regions:
            self._handle = register_optimizer_step_post_hook(_stepped)


def _stepped(optimizer: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
    if torch.compiler.is_compiling():
        return
    for group in optimizer.param_groups:
        if group.get("fused"):
            with DisableTorchFunction():  # Asking for a gradient is a call, too.
                changed = [each for each in group["params"] if each.grad is not None]
            for parameter in changed:
                _steps[id(parameter)] = _steps.get(id(parameter), 0) + 1
