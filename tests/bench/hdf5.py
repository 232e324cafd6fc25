"""Saving captured values, beside h5py writing the same chunks directly."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from shapetrace.hdf5.saver import H5PYSaverCallback
from tests.bench.results import Bar, Comparison, Line, Result
from tests.bench.timing import Turn, Turns, in_rounds, ratio

PER_GATHER = 4

MEMORY = Path("/dev/shm")
"""Files in here cost no disk, whose own ways would hide everything else."""


@dataclass(frozen=True)
class Work:
    """What is saved: so many names, each a tensor of this shape in every iteration."""

    title: str
    names: int
    shape: tuple[int, ...]
    gathers: int
    compression: str | None = None
    has_bar: bool = True


WORKS = (
    Work("8 names of 256 KB", 8, (16, 64, 64), 12),
    Work("2 names of 8 MB", 2, (32, 128, 512), 3),
    Work("100 names of 4 KB", 100, (16, 64), 8, has_bar=False),
    Work("8 names of 256 KB, gzip", 8, (16, 64, 64), 2, "gzip"),
)


def writing(quick: bool) -> Turns[Result]:
    """The bar is for tensors; small values cost what HDF5 takes for each dataset."""
    bars: list[Bar] = []
    comparisons: list[Comparison] = []
    torch.manual_seed(0)
    for work in WORKS:
        values = [torch.randn(work.shape) for _ in range(PER_GATHER)]
        contenders: list[tuple[str, Turn]] = [
            ("h5py", _turn(work, values, _save_directly)),
            ("h5py, once more", _turn(work, values, _save_directly)),
            ("shapetrace", _turn(work, values, _save)),
            ("shapetrace, stacked", _turn(work, values, _save_stacked)),
        ]
        yield from in_rounds(contenders, 1)
        seconds = yield from in_rounds(contenders, 3 if quick else 12)
        plain = seconds["h5py"]
        lines = tuple(
            Line(
                f"**{name.partition(',')[0]}**{name[10:]}" if name.startswith("shape") else name,
                ratio(those, plain),
            )
            for name, those in seconds.items()
        )
        comparisons.append(Comparison(f"HDF5, {work.title}", lines, base="h5py"))
        if not work.has_bar:
            continue
        for name in ("shapetrace", "shapetrace, stacked"):
            speed = ratio(plain, seconds[name])
            bars.append(
                Bar(
                    "HDF5",
                    f"{work.title}{name.removeprefix('shapetrace')}",
                    "≥ 80 % of h5py's speed",
                    f"{speed.middle:.0%} ({speed.low:.0%} – {speed.high:.0%})",
                    speed.middle >= 0.8,
                )
            )
    return Result(tuple(bars), tuple(comparisons))


Save = Callable[[Path, Work, list[torch.Tensor]], None]


def _turn(work: Work, values: list[torch.Tensor], save: Save) -> Turn:
    """Seconds for one file, from making it to having closed it."""

    def turn() -> float:
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            start = time.perf_counter()
            save(Path(folder) / "run.h5", work, values)
            return time.perf_counter() - start

    return turn


def _save(path: Path, work: Work, values: list[torch.Tensor]) -> None:
    with H5PYSaverCallback(path, compression=work.compression) as saver:
        for gather in range(work.gathers):
            first = gather * PER_GATHER
            for number in range(work.names):
                iterations = list(range(first, first + PER_GATHER))
                saver(f"layer{number}", list(values), iterations, [0] * PER_GATHER)
            saver.after_gather()


def _save_stacked(path: Path, work: Work, values: list[torch.Tensor]) -> None:
    with H5PYSaverCallback(path, compression=work.compression) as saver:
        stacked = torch.stack(values)
        for gather in range(work.gathers):
            first = gather * PER_GATHER
            for number in range(work.names):
                iterations = list(range(first, first + PER_GATHER))
                saver(f"layer{number}", [stacked], iterations, [0] * PER_GATHER)
            saver.after_gather()


def _save_directly(path: Path, work: Work, values: list[torch.Tensor]) -> None:
    """The same chunks, iterations and ranks as a program would write that cares for nothing else.

    It flushes after each gather, as what is in memory is in no file.
    """
    with h5py.File(path, "w") as file:
        datasets: dict[str, tuple[Any, Any, Any]] = {}
        for gather in range(work.gathers):
            first = gather * PER_GATHER
            for number in range(work.names):
                name = f"layer{number}"
                if name not in datasets:
                    datasets[name] = _make(file, name, work)
                content, iterations, ranks = datasets[name]
                for dataset in (content, iterations, ranks):
                    dataset.resize(first + PER_GATHER, 0)
                for row, value in enumerate(values, first):
                    content[row] = value.numpy()
                iterations[first:] = np.arange(first, first + PER_GATHER)
                ranks[first:] = 0
            file.flush()


def _make(file: h5py.File, name: str, work: Work) -> tuple[Any, Any, Any]:
    content = file.create_dataset(
        name,
        shape=(0, *work.shape),
        maxshape=(None, *work.shape),
        chunks=(1, *work.shape),
        dtype="f4",
        compression=work.compression,
    )
    numbers = [
        file.create_dataset(
            f"{name}_{what}", shape=(0,), maxshape=(None,), chunks=(256,), dtype=dtype
        )
        for what, dtype in (("iterations", "i8"), ("ranks", "i4"))
    ]
    return content, numbers[0], numbers[1]
