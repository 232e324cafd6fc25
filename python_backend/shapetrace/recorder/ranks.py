"""Which of the processes of a distributed run this one is. Standard library only."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

_NAMES: Final = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Environment variables of launchers, the surest first."""


_known: tuple[int, int] | None = None
"""What the process group said last; it may have been taken down since."""


def rank_and_world_size() -> tuple[int | None, int | None]:
    """What torch's process group says, once there is one, and until then the environment.

    torch is looked at only where the program has imported it.
    """
    global _known
    _known = _of_process_group() or _known
    return _known or _of_environment()


def _of_process_group() -> tuple[int, int] | None:
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank()), int(distributed.get_world_size())
    except Exception:
        pass  # Not there, or the program is taking it down just now.
    return None


def _of_environment() -> tuple[int | None, int | None]:
    for rank_name, size_name in _NAMES:
        rank, size = _number(rank_name), _number(size_name)
        # Batch systems number lone processes too, shells among them.
        if rank is not None and (rank_name == "RANK" or (size or 0) > 1):
            return rank, size
    return None, None


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
