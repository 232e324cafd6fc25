"""Which of the processes of a distributed run this one is. Standard library only."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous

_NAMES: Final = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Environment variables of launchers, the surest first."""


class ThisProcess:
    """The process that this is, as one recording or one debug session knows it."""

    def __init__(self) -> None:
        self.id: Final = os.getpid()
        self._known: tuple[int, int] | None = None
        """The last answer of the process group, which may be gone since."""

    def look(self) -> tuple[int | None, int | None]:
        """Ask torch's process group, if there is one; only where the program has imported it."""
        self._known = _of_process_group() or self._known
        return self.rank_and_world_size

    @property
    def rank_and_world_size(self) -> tuple[int | None, int | None]:
        """The answer of the process group, if there is one, otherwise that of the environment."""
        return self._known or _of_environment()


def _of_process_group() -> tuple[int, int] | None:
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank()), int(distributed.get_world_size())
    except BaseException as error:
        if is_asynchronous(error):
            raise
        # Not there, or the program is taking it down just now.
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
