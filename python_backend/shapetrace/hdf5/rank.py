"""The rank of this process."""

from __future__ import annotations

import os
import sys
from typing import Any


def this_process() -> tuple[int, int]:
    """Rank and world size: the process group's, else those set by torchrun."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return max(int(os.environ["RANK"]), 0), max(int(os.environ["WORLD_SIZE"]), 1)
    except (AttributeError, KeyError, ValueError):
        return 0, 1
