"""One case run plain, traced, and under each of the independent watchers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

import torch

import shapetrace
from shapetrace.events.model import Trace
from tests.models.case import ModelCase, Program, tensors_of
from tests.support.reference.calls import Call
from tests.support.reference.lines import LineWatch, watch_lines
from tests.support.reference.mode import ReferenceMode
from tests.support.reference.modules import ModuleFacts, watch_modules


@dataclass(frozen=True)
class Results:
    """The tensors that a run gave, and the state of chance behind it."""

    tensors: tuple[torch.Tensor, ...]
    chance: torch.Tensor

    @classmethod
    def of(cls, program: Program) -> Results:
        """Run a program."""
        return cls(tuple(tensors_of(program())), torch.get_rng_state())

    def difference(self, other: Results) -> str:
        """Say where two runs differ in any bit; nothing when they do not."""
        if len(self.tensors) != len(other.tensors):
            return f"{len(self.tensors)} tensors and {len(other.tensors)}"
        pairs = enumerate(zip(self.tensors, other.tensors, strict=True))
        unequal = [str(index) for index, (one, two) in pairs if not _same_bits(one, two)]
        if unequal:
            return f"tensors {', '.join(unequal)} of {len(self.tensors)} differ"
        return "" if torch.equal(self.chance, other.chance) else "the random state differs"


def _same_bits(one: torch.Tensor, two: torch.Tensor) -> bool:
    same_kind = (one.dtype, one.shape, one.requires_grad) == (
        two.dtype,
        two.shape,
        two.requires_grad,
    )
    return same_kind and _bytes(one) == _bytes(two)


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().view(-1).numpy().tobytes()


@cache
def program_of(case: ModelCase) -> Program:
    """Build a case once."""
    return case.build()


@cache
def plain(case: ModelCase) -> Results:
    """Run a case with nothing watching."""
    return Results.of(program_of(case).fresh())


@cache
def traced(case: ModelCase) -> tuple[Results, Trace]:
    """Run a case under the recorder."""
    program = program_of(case).fresh()
    with shapetrace.trace(program.model) as recording:
        results = Results.of(program)
    return results, recording.trace


@cache
def reference_calls(case: ModelCase) -> Counter[Call]:
    """Run a case under the reference mode."""
    program = program_of(case).fresh()
    with ReferenceMode() as mode:
        program()
    return mode.count()


@cache
def reference_modules(case: ModelCase) -> Counter[ModuleFacts]:
    """Run a case with hooks on every module."""
    program = program_of(case).fresh()
    with watch_modules(program.model) as calls:
        program()
    return calls


@cache
def assigned_lines(case: ModelCase) -> LineWatch:
    """Run a case while watching the lines of its own source."""
    program = program_of(case).fresh()
    with watch_lines(case.own) as watch:
        program()
    return watch
