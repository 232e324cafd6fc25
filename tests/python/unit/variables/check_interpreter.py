"""A check of following in an interpreter that has no torch, and NumPy only where it is there.

python check_interpreter.py <folder of the backend> <folder of the repository>
"""

from __future__ import annotations

import asyncio
import pickle
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

sys.path[:0] = sys.argv[1:3]

from tests.python.unit.variables.programs import Program, text  # noqa: E402

PLAIN = "from shapetrace import auto_diff, var_tracker\n"

TEXT = """
@var_tracker("x", "table['a']", "n", handler=told)
def f(x, table):
    for n in range(2):  # loop
        x = x + n  # sum
    table["a"] = [i for i in (1, 2)]  # item
    try:
        x = x / 0  # never
    except ZeroDivisionError:
        x = None  # none
    with open(__file__):
        n = n + 1  # last

@var_tracker("x", handler=told)
async def later(x):
    x = await one()  # awaited
    return [y async for y in steps(x)]

@auto_diff(handler=told)
async def one():
    return 1

@var_tracker("n", handler=told)
async def steps(n):
    while n < 3:
        yield n
        n += 1  # step

@auto_diff(handler=told)
def fails(x):
    raise ValueError(x)  # raise

def make(k):
    @var_tracker("y", handler=told)
    def inner(x):
        nonlocal k
        y = k = k + x  # inner
        return y
    return inner
"""

ARRAYS = """
import numpy as np

@var_tracker("video", "sample['mask']", stats=True, tolerance=0.5, handler=told)
def transform(video, sample):
    video = video.astype("float32") / 255  # floats
    video = video.transpose(2, 0, 1)  # moved
    video += 0.25  # within
    video[0] = np.nan  # nan
    sample["mask"][0] = True  # mask
    return video

def outcome():
    return transform(np.zeros((4, 5, 3), "uint8"), {"mask": np.zeros(3, bool)})
"""


def error_of(function: Any) -> list[str]:
    """The functions that an error came through."""
    try:
        function(1)
    except ValueError as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    return []


def check_plain(folder: Path) -> None:
    it = Program(folder, TEXT, PLAIN)
    module: Any = it.module
    module.f(1, {})
    assert it.history() == [
        "loop n nothing -> 0 new",
        "loop n 0 -> 1 values",
        "sum x 1 -> 2 values",
        "item table['a'] nothing -> [1, 2] new",
        "none x 2 -> None kind",
        "last n 1 -> 2 values",
    ], it.history()
    it.events.clear()
    assert asyncio.run(module.later(0)) == [1, 2]
    assert it.history() == [
        "awaited x 0 -> 1 values",
        "step n 1 -> 2 values",
        "step n 2 -> 3 values",
    ], it.history()
    it.events.clear()
    raised = error_of(module.fails)
    assert raised == ["error_of", "fails"], raised
    assert [(each.outcome, each.line) for each in it.ended] == [("raised", it.line("raise"))]
    it.events.clear()
    inner = module.make(10)
    assert (inner(1), inner(1)) == (11, 12)
    assert it.history() == ["inner y nothing -> 11 new", "inner y nothing -> 12 new"]
    assert pickle.loads(pickle.dumps(module.f)) is module.f


def check_arrays(folder: Path) -> None:
    it = Program(folder, ARRAYS, PLAIN)
    module: Any = it.module
    module.outcome()
    assert it.history() == [
        "floats video u8[4,5,3] -> f32[4,5,3] dtype tolerance",
        "moved video f32[4,5,3] -> f32[3,4,5] shape",
        "within video f32[3,4,5] -> f32[3,4,5] tolerance",
        "nan video f32[3,4,5] -> f32[3,4,5] values",
        "mask sample['mask'] bool[3] -> bool[3] values",
    ], it.history()
    statistics = it.changes[3].after.statistics
    assert statistics is not None
    assert (statistics.not_numbers, statistics.low, statistics.total) == (20, 0.25, 60)
    assert text(it.ended[0].value) == "f32[3,4,5]"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_plain(Path(folder))
        try:
            import numpy
        except ImportError:
            has_arrays = False
        else:
            has_arrays = numpy is not None
            check_arrays(Path(folder))
    print("fine", "with NumPy" if has_arrays else "without NumPy", "torch" in sys.modules)


main()
