"""Run one benchmark in this process: ``measure.py MODULE FUNCTION full|quick FILE``.

Started by ``run.py``, which reads the pickled result from the file.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Generator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "python_backend")]

import torch  # noqa: E402

from tests.bench.timing import drive  # noqa: E402

if __name__ == "__main__":
    module, function, extent, path = sys.argv[1:]
    torch.set_num_threads(1)
    result = getattr(importlib.import_module(f"tests.bench.{module}"), function)(extent == "quick")
    # The benchmarks that take times hand out turns, the others are done already.
    if isinstance(result, Generator):
        result = drive(result)
    Path(path).write_bytes(pickle.dumps(result))
