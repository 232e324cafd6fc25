"""A disk that is really full: a small one of its own, in namespaces that need no rights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.boundaries.rule import BACKEND
from tests.support.machine import needs_namespaces

pytestmark = pytest.mark.e2e

PROGRAM = """
import os, sys
import h5py, torch
from shapetrace.hdf5.saver import H5PYSaverCallback

folder = sys.argv[1]
path = os.path.join(folder, "run.h5")
saver = H5PYSaverCallback(path)

def gather(iteration):
    saver("x", [torch.full((100, 1000), float(iteration))], [iteration])
    saver("small", [iteration], [iteration])
    saver.after_gather()

def stored():
    with h5py.File(path) as file:
        rows = file["small"][:].tolist()
        assert file["x"][:, 7, 7].tolist() == rows
        return rows

for iteration in range(12):
    gather(iteration)
kept = stored()
assert kept == list(range(len(kept))) and 1 <= len(kept) < 12, kept
assert len(saver.problems) == 1, saver.problems

# Somebody makes room, by and by.
ballast = os.path.join(folder, "ballast")
with open(ballast, "wb") as file:
    try:
        file.write(bytes(1 << 24))
    except OSError:
        pass
gather(12)
assert stored() == kept
os.unlink(ballast)
# With the device, the mount's own options are not read: its user is another one in here.
os.system(f"mount -o remount,size=16m none {folder}")
for iteration in range(13, 16):
    gather(iteration)
assert stored() == [*kept, 13, 14, 15], stored()
assert saver.problems[0].endswith("are missing in it (no space left on device)"), saver.problems
saver.close()
assert os.listdir(folder) == ["run.h5"], os.listdir(folder)
print("kept", len(kept))
"""


@needs_namespaces
def test_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"),
            f'mount -t tmpfs -o size=2m none "{folder}"; exec "$@"',
            *("sh", sys.executable, "-c", PROGRAM, str(folder)),
        ],
        env={"PYTHONPATH": str(BACKEND), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 2, lines
    assert "no space left on device; 1 value (iteration " in lines[0]
    assert "saving again; " in lines[1]
