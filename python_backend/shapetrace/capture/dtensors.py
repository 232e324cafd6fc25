"""Plain tensors in place of distributed ones."""

from __future__ import annotations

from typing import Any

from shapetrace._classes import distributed_tensor


def plain(value: Any, *, full: bool = False) -> Any:
    """The local shard of a `DTensor`, or its full tensor; any other value unchanged.

    The full tensor takes a collective call: each rank of the tensor's mesh must make it at the same
    point of the program, or all hang. It is for programs in which each rank captures the same
    values; the default is the shard. A tensor that is replicated is the same either way, and a
    partial one is this rank's summand. The shard of a rank that holds no part of the tensor is
    empty.
    """
    kind = distributed_tensor()
    if kind is None or not isinstance(value, kind):
        return value
    tensor = value.detach()
    local = tensor.full_tensor() if full else tensor.to_local()
    # The pending result of a collective call.
    wait = getattr(local, "wait", None)
    return wait() if callable(wait) else local
