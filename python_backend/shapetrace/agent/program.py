"""What is asked of the program without importing anything of it."""

from __future__ import annotations

import sys


def torch_version() -> str | None:
    """The version of torch, where the program has imported it."""
    version = getattr(sys.modules.get("torch"), "__version__", None)
    return None if version is None else str(version)


def is_worker() -> bool:
    """Whether this process loads data for another one, which counts on it to go on."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None
