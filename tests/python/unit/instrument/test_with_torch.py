"""What torch compiles, scripts, traces and exports is the same with somebody who listens."""

from __future__ import annotations

import pytest
import torch

from shapetrace.instrument import Interest, follow
from tests.python.unit.instrument.listening import Heard
from tests.python.unit.instrument.models import Gated, Model, helper, scripted

EVERYTHING = Interest(None, returns=True)


@pytest.mark.slow
def test_what_is_compiled_is_the_same_graph_and_is_not_heard() -> None:
    model, x = Model(), torch.ones(3, 4)
    expected = model(x)
    graphs: list[str] = []

    def backend(module: torch.fx.GraphModule, inputs: object) -> object:
        graphs.append(module.code)
        return module.forward

    torch._dynamo.reset()
    assert torch.equal(torch.compile(model, fullgraph=True, backend=backend)(x), expected)
    torch._dynamo.reset()
    heard = Heard()
    with follow(Model.forward, EVERYTHING, heard), follow(helper, EVERYTHING, heard):
        compiled = torch.compile(model, fullgraph=True, backend=backend)
        assert torch.equal(compiled(x), expected)
        assert heard.calls == []
        exported = torch.export.export(model, (x,), strict=True)
        assert heard.calls == []
        assert torch.equal(model(x), expected)
        assert len(heard.calls) == 2
    assert graphs[0] == graphs[1]
    assert torch.equal(exported.module()(x), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_scripted_or_traced_symbolically_is_the_same() -> None:
    expected = torch.jit.script(scripted).code
    graph = torch.fx.symbolic_trace(Gated()).code
    with follow(scripted, EVERYTHING, Heard()), follow(Gated.forward, EVERYTHING, Heard()):
        assert torch.jit.script(scripted).code == expected
        assert torch.fx.symbolic_trace(Gated()).code == graph
