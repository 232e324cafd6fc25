"""Finds the default process group of torch.distributed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from shapetrace._asynchronous import is_asynchronous


@dataclass(frozen=True, slots=True)
class RankGroup:
    """A process group, and the store that it was made with."""

    rank: int
    world_size: int
    store: Any
    """None if other ranks cannot be reached by any."""
    trouble: str = ""


def default_group() -> RankGroup | None:
    """The default process group, if there is one by now. Imports nothing."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    try:
        if distributed.get_backend() == "fake":
            return RankGroup(rank, world_size, None)  # One process that simulates many.
        store = distributed.distributed_c10d._get_default_store()
    except Exception as error:
        if is_asynchronous(error):
            raise
        store = None
        reason = f" ({error})"
    else:
        reason = ""
    if store is None and world_size > 1:
        trouble = (
            f"the process group has no key-value store{reason}: each process keeps what it "
            f"captures. Give init_process_group() an init_method or a store."
        )
        return RankGroup(rank, world_size, None, trouble)
    return RankGroup(rank, world_size, store)
