"""Distributed tensors as plain ones."""

from __future__ import annotations

from typing import Any

from shapetrace._classes import distributed_tensor


def plain(value: Any, *, full: bool = False) -> Any:
    """The shard of a `DTensor` that lies here, or all of it; any other value as it is.

    All of it is a collective: every rank of the tensor's mesh has to ask at the same point of the
    program, or all hang. So it is for those who know that each rank captures the same values, and
    the shard is what one gets otherwise. A tensor that is replicated is the same either way, and a
    partial one is this rank's summand. Where the tensor has a shard of which this rank has nothing,
    the shard is empty.
    """
    kind = distributed_tensor()
    if kind is None or not isinstance(value, kind):
        return value
    tensor = value.detach()
    local = tensor.full_tensor() if full else tensor.to_local()
    # What a collective that still runs will be.
    wait = getattr(local, "wait", None)
    return wait() if callable(wait) else local
