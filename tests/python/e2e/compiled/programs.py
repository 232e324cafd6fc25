"""What TorchDynamo makes of one model in many ways, as a program: one line of JSON for each.

Run by itself and in each of our modes, the lines have to be the same: frames, graphs, graph breaks,
recompiles and results.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch._dynamo as dynamo
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")


def scale(x, factor):
    scaled = x * factor
    return scaled


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        h = self.inner(x)
        parts = [h, h * 2]
        for each in parts:
            h = h + each
        return scale(h, 0.5)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.part = Part()
        self.last = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x):
        h = self.first(x)
        if getattr(self, "breaks", False):
            dynamo.graph_break()
        h = self.part(h)
        scores = self.helped(h)
        return self.last(scores)

    def helped(self, h):
        weights = h.softmax(-1)
        if getattr(self, "breaks_deep", False):
            dynamo.graph_break()
        return weights * h


def rows(n):
    return torch.linspace(-1, 1, 4 * n).reshape(n, 4)


graphs: list[str] = []
recompiles: list[str] = []
watched: Callable[[], AbstractContextManager[object]] = nullcontext
"""What the library is used by, where that is what is tried."""
USING_THE_LIBRARY = ("begun_between_calls", "compiled_while_watched")
model: Any = None


def backend(module, inputs):
    graphs.append(module.code)
    return module.forward


class Recompiles(logging.Handler):
    def emit(self, record):
        recompiles.append(record.getMessage())


def by_dynamo(function: Any) -> Any:
    return torch.compile(function, backend=backend)


KINDS: dict[str, Callable[[Any], Any]] = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


@contextmanager
def having(model, **attributes):
    for name, value in attributes.items():
        setattr(model, name, value)
    try:
        yield
    finally:
        for name in attributes:
            delattr(model, name)


def calls(function, sizes=(3, 3, 2, 3, 4, 5)):
    return [function(rows(n)).sum().item() for n in sizes]


@kind
def eager_first(model):
    return calls(model)


@kind
def compiled_model(model):
    return calls(torch.compile(model, backend=backend))


@kind
def compiled_model_with_breaks(model):
    with having(model, breaks=True, breaks_deep=True):
        return calls(torch.compile(model, backend=backend))


@kind
def compiled_model_between_eager_calls(model):
    compiled = torch.compile(model, backend=backend)
    found = []
    for n in (3, 3, 2, 4):
        found += [model(rows(n)).sum().item(), compiled(rows(n)).sum().item()]
    return found


@kind
def fullgraph(model):
    return calls(torch.compile(model, backend=backend, fullgraph=True))


@kind
def dynamic(model):
    return calls(torch.compile(model, backend=backend, dynamic=True))


@kind
def static(model):
    return calls(torch.compile(model, backend=backend, dynamic=False))


@kind
def model_compiled_in_place(model):
    model.compile(backend=backend)
    try:
        return calls(model)
    finally:
        model._compiled_call_impl = None


@kind
def compiled_parts(model):
    part = model.part
    model.part = torch.compile(part, backend=backend)
    model.last.compile(backend=backend)
    try:
        return calls(model)
    finally:
        model.part = part
        model.last._compiled_call_impl = None


@kind
def compiled_function(model):
    def step(x):
        y = model(x)
        return y * 2

    return calls(torch.compile(step, backend=backend))


@kind
def compiled_lambda(model):
    return calls(by_dynamo(lambda x: model(x) + 1))


@kind
def compiled_method(model):
    return calls(torch.compile(model.helped, backend=backend))


@kind
def compiled_forward(model):
    return calls(torch.compile(model.forward, backend=backend))


@kind
def compiled_decorator(model):
    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        @torch.compile(backend=backend)
        def forward(self, x):
            y = self.model(x)
            return y - 1

    return calls(Around())


@kind
def compiled_plain_function(model):
    compiled = torch.compile(scale, backend=backend)
    return calls(lambda x: compiled(x, 2.0))


@kind
def begun_between_calls(model):
    def step(x):
        y = model(x)
        return scale(y, 2.0)

    with having(model, breaks=True, breaks_deep=True):
        functions = [by_dynamo(each) for each in (model, step, scale)]
        with_factor = functions.pop()
        functions.append(lambda x: with_factor(x, 2.0))
        found = [calls(each, (3, 2)) for each in functions]
        with watched():
            found += [calls(each, (3, 2)) for each in functions]
        found += [calls(each, (3, 2)) for each in functions]
        with watched():
            found += [calls(each, (5, 2)) for each in functions]
    return found


@kind
def compiled_while_watched(model):
    with watched():
        compiled = torch.compile(model, backend=backend)
        found = calls(compiled, (3, 2))
    return found + calls(compiled, (3, 2, 4))


@kind
def own_module_call(model):
    class Calling(Model):
        def __call__(self, *args):
            y = super().__call__(*args)
            return y * 2

    torch.manual_seed(1)
    own = Calling()
    compiled = torch.compile(own, backend=backend)
    return calls(compiled) + calls(by_dynamo(lambda x: own(x) + 1))


@kind
def breaks_in_a_function(model):
    def step(x):
        y = model(x)
        dynamo.graph_break()
        y = scale(y, 3.0)
        print(end="")
        return model(x) + y

    with having(model, breaks=True):
        return calls(torch.compile(step, backend=backend))


@kind
def breaks_in_a_loop(model):
    def step(x):
        total = 0
        for index in range(3):
            y = model(x)
            dynamo.graph_break()
            total = total + y * index
        return total

    return calls(torch.compile(step, backend=backend))


@kind
def breaks_in_with_and_try(model):
    def step(x):
        with torch.no_grad():
            y = model(x)
            dynamo.graph_break()
            y = y * 2
        try:
            y = model(x) + y
            dynamo.graph_break()
        finally:
            y = y + 1
        return y

    return calls(torch.compile(step, backend=backend))


@kind
def data_dependent(model):
    def step(x):
        y = model(x)
        if y.sum() > 0:  # noqa: SIM108 (what Dynamo breaks at)
            y = y * 2
        else:
            y = scale(y, 4.0)
        return y

    return calls(torch.compile(step, backend=backend))


@kind
def generators_and_comprehensions(model):
    def parts(x):
        for each in x.split(1):
            h = model(each)
            yield h

    def step(x):
        all_of_it = [h * 2 for h in parts(x)]
        by_name = {index: h + 1 for index, h in enumerate(all_of_it)}
        return sum(by_name.values())

    return calls(torch.compile(step, backend=backend))


@kind
def functions_made_in_a_region(model):
    def step(x):
        y = model(x)

        def later(x):
            h = x * 2
            return h + 1

        dynamo.graph_break()
        return later if y is not None else None

    compiled = torch.compile(step, backend=backend)
    functions = [compiled(rows(n)) for n in (3, 3, 2)]
    found = [calls(function, (3, 2)) for function in functions]
    return found + [calls(by_dynamo(function), (3, 2)) for function in functions]


@kind
def disabled_parts(model):
    inner = model.part.inner
    model.part.inner = torch.compiler.disable(inner)
    try:
        return calls(torch.compile(model, backend=backend))
    finally:
        model.part.inner = inner


@kind
def disabled_function(model):
    @dynamo.disable
    def plain(x):
        h = model(x)
        return h + 1

    def step(x):
        y = model(x)
        return plain(x) * y

    return calls(torch.compile(step, backend=backend))


@kind
def disabled_without_recursion(model):
    @dynamo.disable(recursive=False)
    def plain(x):
        h = model(x)
        return h + 1

    def step(x):
        return plain(x) * 2

    return calls(torch.compile(step, backend=backend))


@kind
def allowed_in_graph(model):
    @dynamo.allow_in_graph
    def kept(x):
        return x * 3

    def step(x):
        return kept(model(x))

    return calls(torch.compile(step, backend=backend))


@kind
def nested_compile(model):
    inner = torch.compile(model.part, backend=backend)

    def step(x):
        return inner(x).sum() + model(x)

    return calls(torch.compile(step, backend=backend))


@kind
def compile_inside_a_disabled_part(model):
    inner = torch.compile(model, backend=backend)

    @dynamo.disable
    def plain(x):
        return inner(x)

    def step(x):
        y = x * 2
        return plain(y) + 1

    return calls(torch.compile(step, backend=backend))


def stance(name, model, sizes=(3, 3, 3)):
    compiled = torch.compile(model, backend=backend, dynamic=True)
    with having(model, breaks=True):
        found = calls(compiled, (3, 3, 4))
        with torch.compiler.set_stance(name):
            try:
                found += calls(compiled, sizes)
            except Exception as error:
                found.append(type(error).__name__)
    return found


@kind
def stance_fail(model):
    return stance("fail_on_recompile", model)


@kind
def stance_fail_for_good(model):
    return stance("fail_on_recompile", model, (3, 1))


@kind
def stance_eager_on_recompile(model):
    ran = []

    def counting(module, inputs):
        graphs.append(module.code)

        def run(*arguments):
            ran.append(len(arguments))
            return module.forward(*arguments)

        return run

    compiled = torch.compile(model, backend=counting, dynamic=True)
    found = calls(compiled, (3, 3, 4))
    with torch.compiler.set_stance("eager_on_recompile"):
        found += calls(compiled, (3, 1, 3))
    return [*found, ran]


@kind
def stance_eager(model):
    return stance("force_eager", model)


@kind
def stance_eager_then_compile(model):
    with torch.compiler.set_stance("eager_then_compile"):
        return calls(torch.compile(model, backend=backend))


@kind
def recompile_limit(model):
    compiled = torch.compile(model, backend=backend, dynamic=False)
    with dynamo.config.patch(recompile_limit=3, fail_on_recompile_limit_hit=True):
        try:
            return calls(compiled, (3, 2, 4, 5, 6, 7))
        except Exception as error:
            return type(error).__name__


@kind
def error_on_recompile(model):
    with having(model, breaks=True):
        compiled = torch.compile(model, backend=backend, dynamic=True)
        found = calls(compiled, (3, 3))
        with dynamo.config.patch(error_on_recompile=True):
            try:
                return found + calls(compiled, (3, 4, 5))
            except Exception as error:
                return type(error).__name__


@kind
def explained(model):
    with having(model, breaks=True):
        explanation = dynamo.explain(model)(rows(3))
    return [explanation.graph_count, explanation.graph_break_count, explanation.op_count]


@kind
def explained_function(model):
    def step(x):
        y = model(x)
        dynamo.graph_break()
        return y + 1

    explanation = dynamo.explain(step)(rows(3))
    return [explanation.graph_count, explanation.graph_break_count, explanation.op_count]


@kind
def exported(model):
    program = torch.export.export(model, (rows(3),), strict=True)
    return [str(program.graph), program.module()(rows(3)).sum().item()]


@kind
def exported_without_dynamo(model):
    program = torch.export.export(model, (rows(3),), strict=False)
    return [str(program.graph), program.module()(rows(3)).sum().item()]


@kind
def exported_by_dynamo(model):
    graph = dynamo.export(model)(rows(3)).graph_module
    return [graph.code, graph(rows(3)).sum().item()]


@kind
def aot_eager_training(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    compiled = torch.compile(model, backend="aot_eager")
    losses = []
    for n in (3, 3, 2, 4):
        optimizer.zero_grad()
        loss = compiled(rows(n)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.load_state_dict(state)
    return losses


@kind
def compiled_training_step(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    state = {name: value.clone() for name, value in model.state_dict().items()}

    @torch.compile(backend=backend)
    def step(x):
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    losses = [step(rows(n)).item() for n in (3, 3, 2, 4)]
    model.load_state_dict(state)
    return losses


@kind
def compiled_optimizer(model):
    state = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01), fused=False)
    step = by_dynamo(lambda: optimizer.step())
    losses = []
    for _ in range(3):
        loss = model(rows(3)).pow(2).mean()
        loss.backward()
        step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.load_state_dict(state)
    return losses


@kind
def compiled_autograd(model):
    compiled = torch.compile(model, backend=backend)
    with dynamo.compiled_autograd._enable(torch.compile(backend=backend)):
        for n in (3, 3):
            compiled(rows(n)).sum().backward()
    found = [each.grad.sum().item() for each in model.parameters()]
    model.zero_grad()
    return found


@kind
def checkpoint_inside(model):
    def step(x):
        return checkpoint(model, x, use_reentrant=False) + 1

    compiled = torch.compile(step, backend="aot_eager")
    found = []
    for n in (3, 3, 2):
        x = rows(n).requires_grad_()
        compiled(x).sum().backward()
        found.append(x.grad.sum().item())
    model.zero_grad()
    return found


@kind
def under_modes(model):
    compiled = torch.compile(model, backend=backend)
    found = calls(compiled, (3, 3))
    with torch.inference_mode():
        found += calls(compiled, (3, 3))
    with torch.no_grad():
        found += calls(compiled, (3, 3))
    with torch.device("cpu"):
        found += calls(compiled, (3, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found += calls(compiled, (3, 3))
    return found


@kind
def modes_inside(model):
    def step(x):
        with torch.inference_mode():
            y = model(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = model(x) + y
        with torch.device("cpu"):
            return y + torch.ones(2)

    return calls(torch.compile(step, backend=backend))


@kind
def with_hooks(model):
    seen = []
    handles = [
        model.part.register_forward_hook(lambda module, args, output: output * 2),
        model.part.register_forward_pre_hook(lambda module, args: seen.append(1)),
    ]
    try:
        return [*calls(torch.compile(model, backend=backend)), len(seen)]
    finally:
        for handle in handles:
            handle.remove()


@kind
def transformed(model):
    def loss(x):
        return model(x).sum()

    step = torch.compile(torch.func.grad(loss), backend=backend)
    return calls(step, (3, 3, 2)) + calls(
        torch.compile(torch.func.vmap(model), backend=backend), (3, 3, 2)
    )


@kind
def other_threads(model):
    compiled = torch.compile(model, backend=backend)
    found = []

    def run():
        found.extend(calls(compiled))

    for _ in range(2):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    return found + calls(compiled)


@kind
def reset_between(model):
    compiled = torch.compile(model, backend=backend)
    found = calls(compiled)
    dynamo.reset()
    return found + calls(compiled)


@kind
def conditions(model):
    def step(x):
        return torch.cond(x.sum() > 0, lambda x: model(x) * 2, lambda x: model(x) * 3, (x,))

    return calls(torch.compile(step, backend=backend), (3, 3, 2))


@kind
def torch_layers(model):
    compiled = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend=backend)
    found = [tuple(compiled(rows(n)).shape) for n in (3, 3, 2)]
    attention = torch.compile(
        nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), backend=backend
    )
    return found + [tuple(attention(rows(n)[None]).shape) for n in (3, 3, 2)]


@kind
def caught_inside(model):
    def step(x):
        y = model(x)
        try:
            y = y + torch.ones(7)
        except RuntimeError:
            y = y * 2
        return y

    try:
        return calls(torch.compile(step, backend=backend))
    except Exception as error:
        return type(error).__name__


@kind
def raising(model):
    def step(x):
        y = model(x)
        dynamo.graph_break()
        raise ValueError(tuple(y.shape))

    compiled = torch.compile(step, backend=backend)
    found = []
    for n in (3, 3, 2):
        try:
            compiled(rows(n))
        except ValueError as error:
            found.append(str(error))
    return found


@kind
def run_only(model):
    compiled = torch.compile(model, backend=backend)
    calls(compiled, (3, 3))
    return calls(dynamo.run(model), (3, 3, 2))


def normalized(text):
    """Without addresses, and without the name that this module happens to have."""
    text = text.replace(f"{__name__.replace('.', '_')}_", "")
    return re.sub(r"0x[0-9a-f]+|\b\d{6,}\b", "N", text)


def report(name, model):
    dynamo.reset()
    counters.clear()
    graphs.clear()
    recompiles.clear()
    torch.manual_seed(0)
    try:
        result = KINDS[name](model)
    except Exception as error:
        result = [type(error).__name__, str(error)[-400:]]
    counted = {
        group: {normalized(str(key)): count for key, count in sorted(values.items())}
        for group, values in sorted(counters.items())
        if group not in ("inductor", "aot_autograd") and values
    }
    return {
        "kind": name,
        "result": result,
        "graphs": list(map(normalized, graphs)),
        "counters": {
            g: {normalized(str(k)): v for k, v in vs.items()} for g, vs in counted.items()
        },
        "recompiles": len(recompiles),
    }


def main(arguments):
    global model
    torch.manual_seed(0)
    model = Model()
    torch._logging.set_logs(recompiles=True)  # type: ignore[attr-defined]
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch._dynamo") and "recompiles" in name:
            log = logging.getLogger(name)
            log.handlers[:] = [Recompiles()]
            log.setLevel(logging.DEBUG)
            log.propagate = False
    if torch.__version__.startswith("2.8."):
        # It uses what it has freed there: `PYTHONMALLOC=debug` ends it without us as well.
        del KINDS["stance_eager_then_compile"]
    chosen = arguments[1:] or list(KINDS)
    with open(arguments[0], "w") as lines:
        for name in chosen:
            lines.write(json.dumps(report(name, model)) + "\n")
            lines.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
