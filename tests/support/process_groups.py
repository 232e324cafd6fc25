"""Process groups without other members."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def process_group(world_size: int) -> Iterator[None]:
    """A group of so many processes, of which this one is the first and the others are not there."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    hook = sys.excepthook
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world_size)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()
        sys.excepthook = hook  # which torch puts its own in front of, for good
