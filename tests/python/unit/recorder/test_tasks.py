"""Threads, tasks, generators and context variables: the same results, each call in its place."""

from __future__ import annotations

import pytest

from tests.python.unit.recorder.corpus_of_threads import PROGRAMS, THREADED
from tests.support.recorder import Harmless, outline, unindented


@pytest.mark.slow
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_results_are_the_same(text: str, harmless: Harmless) -> None:
    harmless(THREADED + text)


def test_tasks_keep_their_operations_apart(harmless: Harmless) -> None:
    trace = harmless(
        THREADED
        + """
async def first():
    await asyncio.sleep(0)
    return net(x * 2)

async def second():
    y = x + 1
    await asyncio.sleep(0)
    return y.sum()

async def together():
    return await asyncio.gather(first(), second())

def main():
    return asyncio.run(together())
"""
    )
    functions = [(op.name.rsplit(".", 1)[-1], op.function) for op in trace.ops if op.direct]
    assert functions == [
        ("add", "second"),
        ("mul", "first"),
        ("relu", "Block.forward"),
        ("sum", "second"),
    ]
    frames = {frame.id: frame.function for frame in trace.frames}
    stacks = {op.name.rsplit(".", 1)[-1]: [frames[each] for each in op.stack] for op in trace.ops}
    assert "first" not in stacks["sum"]
    assert stacks["relu"][-2:] == ["first", "Block.forward"]


def test_generator_is_shown_where_it_is_consumed(harmless: Harmless) -> None:
    trace = harmless(
        THREADED
        + """
class Making(nn.Module):
    def forward(self, x):
        def rows():
            for row in x:
                yield row * 2
        return rows()

class Using(nn.Module):
    def forward(self, rows):
        return sum(row.sum() for row in rows)

making, using = Making(), Using()

def main():
    rows = making(x)
    return next(rows), using(rows)
"""
    )
    assert outline(trace) == unindented(
        """
        root: Making(f32[2,3]) -> generator
        unbind(0) (f32[2,3]) -> (f32[3], f32[3]) inside
        * (f32[3]) -> f32[3]
        root: Using(generator) -> f32[]
          * (f32[3]) -> f32[3]
          sum() (f32[3]) -> f32[]
          add(0) (f32[]) -> f32[] inside
        """
    )
