"""Files of single ranks, and the file that shows them as one."""

from __future__ import annotations

import os


def shard_path(path: str, rank: int) -> str:
    """``run.rank3.h5`` for ``run.h5``."""
    stem, extension = os.path.splitext(path)
    return f"{stem}.rank{rank}{extension}"


def join_shards(path: str) -> None:
    """Not yet."""
