"""Exporting, scripting and tracing: the same results and the same artifacts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch._dynamo

from tests.support.recorder import LEVELS, Harmless, Traced, names_of, paths_of
from tests.support.torches import needs

pytestmark = pytest.mark.filterwarnings("ignore")  # Dynamo fails where a warning is an error


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


NET = """
import io, re

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x):
        return self.second(F.pad(self.first(x), (0, 0)))

net = Net().eval()
x = torch.ones(2, 4)

def clean(text):
    return re.sub(r"___torch_mangle_[0-9]+[.]", "", str(text))
"""

HARMLESS = {
    "jit script": """
def main():
    scripted = torch.jit.script(net)
    return scripted(x), clean(scripted.graph), clean(scripted.code), scripted.second(x)
""",
    "jit script of a function": """
def double(x: torch.Tensor, by: int = 2) -> torch.Tensor:
    if by > 1:
        return F.softmax(x * by, dim=-1)
    return x

def main():
    scripted = torch.jit.script(double)
    return scripted(x), scripted(x, 1), clean(scripted.graph)
""",
    "jit trace": """
def main():
    traced = torch.jit.trace(net, x)
    # The line that a node's operator was called from; the stack below it shows that it is watched.
    ranges = [node.sourceRange().splitlines()[:1] for node in traced.inlined_graph.nodes()]
    return traced(x), clean(traced.graph), clean(traced.code), ranges
""",
    "jit trace of a function": """
def main():
    traced = torch.jit.trace(lambda x: F.pad(x.sin(), (1, 1)) * x.shape[0], x)
    return traced(x), clean(traced.graph), clean(traced.code)
""",
    "calling what was scripted and traced before": """
scripted, traced = torch.jit.script(net), torch.jit.trace(net, x)

def main():
    return scripted(x), traced(x), scripted.second(x), torch.jit.freeze(scripted)(x)
""",
    "export": """
def main():
    batch = torch.export.Dim("batch", min=2)
    programs = [
        torch.export.export(net, (x,), strict=strict, dynamic_shapes=shapes)
        for strict in (True, False)
        for shapes in (None, {"x": {0: batch}})
    ]
    traces = [[node.meta.get("stack_trace") for node in each.graph.nodes] for each in programs]
    return [str(each) for each in programs], traces, [each.module()(x) for each in programs]
""",
    "fx": """
def main():
    graph = torch.fx.symbolic_trace(net)
    return graph.code, graph(x), [node.stack_trace for node in graph.graph.nodes]
""",
    "make_fx": """
from torch.fx.experimental.proxy_tensor import make_fx

def wave(x):
    return F.pad(torch.cat([x, x.sin()]), (0, 1)).view(-1, x.shape[0]) * 2

def main():
    return [
        make_fx(wave, tracing_mode=mode, pre_dispatch=pre_dispatch)(x).code
        for mode in ("real", "fake", "symbolic")
        for pre_dispatch in (False, True)
    ]
""",
    "higher-order operators": """
from torch.nn.attention.flex_attention import flex_attention

def main():
    q = torch.ones(1, 2, 4, 8)
    return (
        torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)),
        flex_attention(q, q, q),
    )
""",
    "custom operator": """
from torch.library import custom_op

@custom_op("shapetrace_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x.clone() * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

def main():
    return twice(x), torch.ops.shapetrace_test.twice(x), torch.ops.aten.mul.Tensor(x, x)
""",
    "stance": """
import torch._dynamo

def main():
    torch._dynamo.reset()
    step = torch.compile(lambda x: x * 2, backend="eager")
    with torch.compiler.set_stance("force_eager"):
        first = step(x)
    return first, step(x), torch.compiler.is_compiling()
""",
}


NEEDED = {
    "higher-order operators": "torch.nn.attention.flex_attention",
    "stance": "torch.compiler.set_stance",
}
"""What torch 2.4 does not have."""


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", HARMLESS)
def test_results_and_artifacts_are_the_same(name: str, level: str, harmless: Harmless) -> None:
    needs(NEEDED.get(name, "torch"))
    harmless(NET + HARMLESS[name], level=level)


def test_what_runs_eagerly_under_a_stance_is_recorded(traced: Traced) -> None:
    needs(NEEDED["stance"])
    trace = traced(NET + HARMLESS["stance"])
    assert "mul" in names_of(trace)


def test_scripted_and_traced_modules_are_module_calls(traced: Traced) -> None:
    trace = traced(NET + HARMLESS["calling what was scripted and traced before"])
    assert [call.class_name for call in trace.modules] == [
        "RecursiveScriptModule",
        "TopLevelTracedModule",
        "RecursiveScriptModule",
        "RecursiveScriptModule",
    ]
    assert paths_of(trace) == ["", "", "", ""]
