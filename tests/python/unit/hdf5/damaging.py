"""Files of captured values, damaged in many ways and read, each in a process of its own.

Run as a program: reads a file ``good.h5`` damaged in so many ways, and prints what came of it as
JSON.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path

from shapetrace._errors import CaptureFileError
from shapetrace.hdf5.file_summary import read_summary
from shapetrace.hdf5.saver import H5PYSaverCallback

SECONDS = 0.4
"""Of processor time. HDF5 reads some files for ever."""
MEMORY = 3 << 30

_NUMBERS = (
    *(b"\0", b"\1", b"\2", b"\x7f", b"\x80", b"\xff", b"\0" * 8, b"\xff" * 4, b"\xff" * 8),
    *(b"\xff\xff\xff\x7f", b"\0\0\0\0\1\0\0\0", b"\0\0\0\0\0\0\0\x40"),
)


def write_file(path: Path) -> bytes:
    """A file with everything in it that is read in a way of its own."""
    import torch

    with H5PYSaverCallback(path, compression="gzip") as saver:
        for step in range(6):
            saver("x", [torch.full((4, 5), float(step))], [step])
            saver("text", ["text" * step], [step])
            saver("ragged", [torch.ones(step + 1, 3)], [step])
            saver("nested", [{"a": torch.zeros(2), "b": [1, None, (True, "text")]}], [step])
            saver("sparse", [torch.eye(4).to_sparse()], [step])
            saver("stacked", [torch.ones(2)], list(range(step + 1)), [0] * (step + 1))
            saver("kinds", [torch.ones(2) if step % 2 else [torch.ones(3)]], [step])
    assert not saver.problems
    return path.read_bytes()


def damaged(good: bytes, chance: random.Random) -> bytes:
    """A file that is cut off, or has other bytes in some places."""
    content = bytearray(good)
    written = [place for place, byte in enumerate(good) if byte]
    way = chance.randrange(10)
    if way == 0:
        return bytes(content[: chance.randrange(len(content))])
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        place = chance.choice(written) if chance.random() < 0.8 else chance.randrange(len(good))
        if way < 4:
            content[place] = chance.randrange(256)
        elif way < 8:
            number = chance.choice(_NUMBERS)
            content[place : place + len(number)] = number
        elif way == 8:
            start, size = chance.choice(written), chance.choice((4, 8, 24, 100))
            content[place : place + size] = good[start : start + size]
        else:
            del content[place : place + chance.choice((1, 8, 64))]
    return bytes(content)


def outcome(path: Path) -> str:
    """``read``, ``refused``, or what should not have happened, in a process that may crash."""
    child = os.fork()
    if not child:
        code = 3
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            read_summary(path)
            code = 0
        except CaptureFileError as error:
            code = 1 if str(error).count("\n") == 0 else 2
        except BaseException:
            Path(f"{path}.error").write_text(traceback.format_exc())
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        # HDF5's own, which is why show reads in another process.
        return "died"
    return {0: "read", 1: "refused", 2: "lines"}.get(os.WEXITSTATUS(status), "raised")


def main() -> None:
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    good = (folder / "good.h5").read_bytes()
    chance = random.Random(seed)
    found: Counter[str] = Counter()
    path = folder / "damaged.h5"
    for _ in range(count):
        content = damaged(good, chance)
        path.write_bytes(content)
        found[outcome(path)] += 1
        if path.read_bytes() != content:
            found["written"] += 1
    errors = [each.read_text() for each in folder.glob("*.error")]
    beside = sorted(set(os.listdir(folder)) - {"good.h5", "damaged.h5"})
    print(json.dumps({"found": found, "errors": errors, "beside": beside}))


if __name__ == "__main__":
    main()
