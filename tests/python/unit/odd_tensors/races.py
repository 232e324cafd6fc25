"""Has each consumer named read a tensor, the storage of which another thread frees all the time."""

from __future__ import annotations

import itertools
import sys
import threading
import warnings

import torch

from tests.python.unit.odd_tensors.consumers import CONSUMERS
from tests.python.unit.odd_tensors.tensors import nothing

BYTES = 1 << 20
"""Given back to the system at once when it is freed, as the environment says."""
TIMES = 40


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sys.setswitchinterval(1e-5)
    value = torch.ones(BYTES // 4)
    over = threading.Event()
    freed = itertools.count()

    def free_and_make() -> None:
        storage = value.untyped_storage()
        while not over.is_set():
            storage.resize_(0)
            next(freed)
            storage.resize_(BYTES)
            torch.ones(BYTES // 4)  # lets go of the lock while it is there

    thread = threading.Thread(target=free_and_make)
    thread.start()
    try:
        for name in sys.argv[1:]:
            beginning = next(freed)
            for looks in itertools.count():
                if looks >= TIMES and next(freed) >= beginning + TIMES:
                    break
                CONSUMERS[name](value, nothing)
            print(name, flush=True)
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    main()
