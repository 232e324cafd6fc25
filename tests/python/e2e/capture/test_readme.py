"""The usage of TensorTracer's own document, in one process and in two."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.python.e2e.capture.ranks import torchrun
from tests.python.e2e.cli.programs import python
from tests.support.documents import blocks

pytestmark = pytest.mark.e2e

SNIPPETS = Path(__file__).parents[1] / "snippets"
PROGRAMS = [
    "\n".join(block.lines)
    for block in blocks((SNIPPETS / "tensortrace_readme.md").read_text("utf-8"))
]
PRELUDE = f"""
import runpy
globals().update(runpy.run_path({str(SNIPPETS / "prelude_of_training.py")!r}))
"""
SAVED = """
import torch
if rank == 0:
    saved = {name: (entry.values, entry.iterations, entry.ranks)
             for name, entry in tracer.results.items()}
    torch.save((saved, tracer.problems), "saved.pt")
if torch.distributed.is_initialized():
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
"""


def run(
    folder: Path, program: str, ranks: int, **extra: str
) -> tuple[str, dict[str, Any], list[str]]:
    """What a program prints, and what it has captured."""
    source = PRELUDE + program + SAVED
    if ranks > 1:
        outcome = torchrun(folder, source, ranks, **extra)
        assert outcome.code == 0, outcome.stderr
        printed = outcome.stdout
    else:
        (folder / "program.py").write_text(source, "utf-8")
        alone = python("program.py", cwd=folder)
        assert (alone.code, alone.stderr) == (0, "")
        printed = alone.stdout
    saved, problems = torch.load(folder / "saved.pt", weights_only=False)
    return printed, saved, problems


def inputs(ranks: int) -> list[list[torch.Tensor]]:
    """The batches of each rank, epoch after epoch."""
    names = runpy.run_path(str(SNIPPETS / "prelude_of_training.py"))
    data = names["dataset"].tensors[0]
    return [list(data[rank::ranks].split(4)) * 4 for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_first_example(tmp_path: Path, ranks: int) -> None:
    printed, saved, problems = run(tmp_path, PROGRAMS[0], ranks)
    assert problems == []
    iterations = 32 // ranks
    # (N//G,W,G,B,C), as the document has it.
    shape = [iterations // 4, ranks, 4, 4, 3]
    assert printed == f"torch.Size({shape})\n"
    values, numbers, from_ranks = saved["forward.x"]
    reference = torch.stack([torch.stack(batches) for batches in inputs(ranks)])
    reference = reference.reshape(ranks, iterations // 4, 4, 4, 3).transpose(0, 1)
    assert torch.equal(values[0], reference)
    blocks_of = [range(first, first + 4) for first in range(1, iterations + 1, 4)]
    assert numbers == [number for block in blocks_of for _ in range(ranks) for number in block]
    assert from_ranks == [rank for _ in blocks_of for rank in range(ranks) for _ in range(4)]
    assert saved["forward"][0][0].shape == tuple(shape)


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_second_example_writes_a_file(tmp_path: Path, ranks: int) -> None:
    import h5py

    printed, saved, problems = run(tmp_path, PROGRAMS[1] + "\nsaver_callback.close()\n", ranks)
    assert problems == []
    assert "forward.x" in printed
    assert saved["forward.x"] == ([], [], [])
    iterations = 32 // ranks
    with h5py.File(tmp_path / "test.h5") as file:
        # (N//G,G*W,B,C), as the document has it.
        dataset = file["forward.x"]
        assert isinstance(dataset, h5py.Dataset)
        found = torch.from_numpy(dataset[()])
    assert found.numel() == iterations * ranks * 4 * 3
    reference = torch.stack([torch.stack(batches) for batches in inputs(ranks)])
    reference = reference.reshape(ranks, iterations // 2, 2, 4, 3).transpose(0, 1)
    assert torch.equal(found.reshape(-1), reference.reshape(-1))


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_third_example_keeps_means(tmp_path: Path, ranks: int) -> None:
    program = PROGRAMS[2].replace("range(100)", "range(4)")
    assert program != PROGRAMS[2]
    # It has no group of processes: each looks at results of its own.
    _, saved, problems = run(tmp_path, program, ranks, NO_GROUP="1")
    assert len(problems) == ranks - 1
    iterations = 32 // ranks
    values, _, _ = saved["forward.x"]
    # (N//G,C), as the document has it.
    assert values[0].shape == (iterations // 4, 3)
    reference = torch.stack(inputs(ranks)[0]).reshape(iterations // 4, 4 * 4, 3).mean(1)
    assert torch.allclose(values[0], reference)
