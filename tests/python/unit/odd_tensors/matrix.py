"""Has each consumer read each tensor, and prints one line of JSON for each pair.

Those of one tensor are in one forked process, and go on in another where it dies.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import traceback
import warnings
from typing import Any

import torch

from tests.python.unit.odd_tensors.consumers import CONSUMERS
from tests.python.unit.odd_tensors.tensors import TENSORS

_SECONDS = 300
"""What all consumers of one tensor take at most, on a machine that is busy."""


def main() -> None:
    only = sys.argv[1:]
    for name in ("bfloat16", "wrapper", "jagged"):
        for consumer in CONSUMERS:
            _outcome(name, consumer)  # So that not each fork imports the same again.
    for name in TENSORS:
        if only and name not in only:
            continue
        left = list(CONSUMERS)
        while left:
            done, ending = _in_a_fork(name, left)
            for consumer, outcome in zip(left, done, strict=False):
                _print(name, consumer, outcome)
            left = left[len(done) :]
            if left and ending:
                _print(name, left.pop(0), f"died: {ending}")


def _print(tensor: str, consumer: str, outcome: str) -> None:
    print(json.dumps([tensor, consumer, outcome]), flush=True)


def _in_a_fork(name: str, consumers: list[str]) -> tuple[list[str], int]:
    """What came of these, as far as the process went, and how that ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        with os.fdopen(writer, "w") as lines:
            for consumer in consumers:
                outcome = _outcome(name, consumer)
                lines.write(json.dumps(outcome) + "\n")
                lines.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        done = [json.loads(line) for line in lines]
    return done, os.waitpid(child, 0)[1]


def _outcome(name: str, consumer: str) -> str:
    found: list[str] = []

    def use(value: Any, then: Any) -> None:
        try:
            before = _facts(value)
            outcome = CONSUMERS[consumer](value, then)
            after = _facts(value)
            found.append(outcome if before == after else f"changed: {before} {after}")
        except Exception:
            found.append(f"raised: {traceback.format_exc()}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TENSORS[name](use)
        except Exception:
            found.append(f"not made: {traceback.format_exc()}")
    return found[0] if found else "not used"


def _facts(value: Any) -> list[object]:
    """What a reader must leave as it was."""
    facts: list[object] = [
        torch.random.initial_seed(),
        torch.get_rng_state().sum().item() if torch._C._len_torch_dispatch_stack() == 0 else None,
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
    ]
    for name in ("_version", "requires_grad", "grad_fn", "is_leaf"):
        try:
            with torch._C.DisableTorchFunction():
                facts.append(getattr(torch._C.TensorBase, name).__get__(value))
        except Exception as error:
            facts.append(type(error).__name__)
    return facts


if __name__ == "__main__":
    main()
