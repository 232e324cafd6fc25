"""Programs that save values, in processes of their own that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.python.boundaries.rule import BACKEND

NAMES = ("first", "second", "third")
PER_GATHER = 4

WRITER = """
import os, sys
import torch
from shapetrace.hdf5.saver import H5PYSaverCallback

torch.set_num_threads(1)
path, gathers = sys.argv[1], int(sys.argv[2])
options = {name: True for name in sys.argv[3:]}
saver = H5PYSaverCallback(path, **options)
gather = 0
while gather < gathers:
    iterations = list(range(gather * 4, gather * 4 + 4))
    for width, name in enumerate(("first", "second", "third"), 1):
        saver(name, [torch.full((30 * width, 50), float(i)) for i in iterations], list(iterations))
    saver("text", [f"iteration {i}" for i in iterations], list(iterations))
    saver("ragged", [torch.full((i % 7,), float(i)) for i in iterations], list(iterations))
    saver("nested", [(torch.tensor(i), {"k": [i, 2]}) for i in iterations], list(iterations))
    saver.after_gather()
    gather += 1
    os.write(1, b"%d\\n" % gather)
"""


def start(
    path: Path, gathers: int = 10**9, *options: str, before: Sequence[str] = (), **environment: str
) -> subprocess.Popen[bytes]:
    """Begin to write; each gather that is in the file is a line on its stdout."""
    return subprocess.Popen(
        [*before, sys.executable, "-c", WRITER, str(path), str(gathers), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(BACKEND), "OMP_NUM_THREADS": "1", **environment},
    )
