"""What a program leaves behind: numbers to the bit, random states, files, compiled frames."""

import hashlib
import json
import os
import random
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

random.seed(0)


def digest(values: Iterable[torch.Tensor]) -> str:
    """Return a digest of the bytes of tensors, in their order."""
    found = hashlib.sha256()
    for value in values:
        plain = value.detach().to("cpu").contiguous()
        found.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        found.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def report(model: torch.nn.Module | None = None, **more: Any) -> None:
    """Print what this process has come to, as one line of JSON."""
    state: dict[str, Any] = {"rank": os.environ.get("RANK"), **more}
    if model is not None:
        tensors = [(name, value) for name, value in sorted(model.state_dict().items())]
        state["names"] = hashlib.sha256(repr([name for name, _ in tensors]).encode()).hexdigest()[
            :8
        ]
        state["parameters"] = digest(value for _, value in tensors)
        state["gradients"] = digest(it.grad for it in model.parameters() if it.grad is not None)
        state["hooks"] = sum(
            len(it._forward_hooks) + len(it._forward_pre_hooks) + len(it._backward_hooks)
            for it in model.modules()
        )
    state["torch"] = digest([torch.get_rng_state()])
    state["random"] = hashlib.sha256(repr(random.getstate()).encode()).hexdigest()[:8]
    state["threads"] = torch.get_num_threads()
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        counters = dynamo.counters
        state["frames"] = dict(counters["frames"])
        state["graphs"] = counters["stats"].get("unique_graphs")
        state["breaks"] = len(counters["graph_break"])
    print("state", json.dumps(state, sort_keys=True, default=_plain), flush=True)


def exact(value: float) -> str:
    """Return a number to the bit."""
    return float(value).hex()


def file_digest(path: str | Path) -> str:
    """Return a digest of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return repr(value)
