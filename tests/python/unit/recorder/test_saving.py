"""Saving, copying, loading and moving models while a recording runs, and what is done with them."""

from __future__ import annotations

import pytest

from tests.support.recorder import LEVELS, Harmless

NET = """
import copy, io, pickle, zipfile

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.second = nn.Linear(4, 2)
        self.register_buffer("scale", torch.ones(4), persistent=False)

    def forward(self, x):
        return self.second(self.norm(self.first(x)).relu() * self.scale)

x = torch.arange(8.0).view(2, 4)

def contents(data):
    # The id of a file is another one each time.
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if "id" not in name}

def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()
"""

HARMLESS = {
    "torch.save of a module": """
def main():
    net = Net()
    net(x)
    data = saved(net)
    again = torch.load(io.BytesIO(data), weights_only=False)
    return sorted(contents(data)), again(x), again.state_dict(), list(vars(again))
""",
    "torch.save of parameters": """
def main():
    net = Net()
    net(x)
    data = saved(net.state_dict())
    return contents(data), torch.load(io.BytesIO(data), weights_only=True)
""",
    "pickling": """
def main():
    net = Net()
    net(x)
    data = pickle.dumps(net)
    return len(data), pickle.loads(data)(x), pickle.loads(pickle.dumps((x, x.t())))
""",
    "copying": """
def main():
    net = Net()
    net(x)
    deep, shallow = copy.deepcopy(net), copy.copy(net)
    with torch.no_grad():
        net.first.weight.zero_()
    return deep(x), shallow(x), net(x), copy.deepcopy(x), copy.copy(x)
""",
    "copying inside forward": """
class Copying(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return copy.deepcopy(self.inner)(x), pickle.loads(pickle.dumps(self))is not self

def main():
    return Copying()(x)
""",
    "loading parameters": """
def main():
    results = []
    for assign in (False, True):
        net, other = Net(), Net()
        net(x)
        results.append(str(net.load_state_dict(other.state_dict(), assign=assign)))
        results += [net(x), other(x), net.state_dict()]
    with torch.device("meta"):
        net = Net()
    net.load_state_dict(other.state_dict(), assign=True, strict=True)
    return results, net(x) if not net.scale.is_meta else str(net.scale.device)
""",
    "swapping parameters": """
def main():
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch.set_grad_enabled(False)
    try:
        net, other = Net(), Net()
        net(x)
        net.load_state_dict(other.state_dict())
        first = net(x)
        net.half().double()
        second = net(x.double())
        left, right = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(2))
        torch.utils.swap_tensors(left, right)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
        torch.set_grad_enabled(True)
    return first, second, left, right
""",
    "moving": """
def main():
    net = Net()
    results = [net(x)]
    for move in (lambda: net.half(), lambda: net.float(), lambda: net.to(torch.float64)):
        move()
        results.append(net.first.weight)
    results.append(net(x.double()))
    net.to("meta")
    results.append(net.first.weight.device.type)
    net.to_empty(device="cpu").to(memory_format=torch.channels_last)
    return results
""",
    "tying and pruning": """
def main():
    import torch.nn.utils.parametrize as parametrize
    import torch.nn.utils.prune as prune

    class Positive(nn.Module):
        def forward(self, weight):
            return weight.abs()

    net = Net()
    net.first.weight = nn.Linear(4, 4).weight
    first = net(x)
    parametrize.register_parametrization(net.first, "weight", Positive())
    prune.l1_unstructured(net.second, "weight", amount=0.5)
    second = net(x)
    parametrize.remove_parametrizations(net.first, "weight")
    net.apply(lambda module: module.requires_grad_(False))
    vector = torch.nn.utils.parameters_to_vector(net.parameters())
    return first, second, net(x), net.state_dict(), vector
""",
    "numpy and dlpack": """
import numpy

def main():
    array = x.numpy()
    array[0, 0] = 7
    return (
        torch.from_numpy(array), torch.as_tensor(array), numpy.asarray(x).tolist(),
        torch.from_dlpack(x), numpy.sin(x).tolist(), (x * numpy.float32(2)), x.__array__().tolist(),
    )
""",
    "cuda interface": """
def main():
    try:
        x.__cuda_array_interface__
    except AttributeError as error:
        return str(error), hasattr(x, "__cuda_array_interface__")
""",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_results_are_the_same(text: str, level: str, harmless: Harmless) -> None:
    harmless(NET + text, level=level)


def test_callables_of_the_programs_own_as_torch_functions(harmless: Harmless) -> None:
    trace = harmless(
        """
        from torch.overrides import handle_torch_function, has_torch_function

        class Unhashable:
            __hash__ = None

            def __eq__(self, other):
                return True

            def __call__(self, x):
                if has_torch_function((x,)):
                    return handle_torch_function(self, (x,), x)
                return x * 2

        class Api:
            def run(self, x):
                if has_torch_function((x,)):
                    return handle_torch_function(self.run, (x,), x)
                return x * 2

        def made_anew(x):
            def run(x):
                if has_torch_function((x,)):
                    return handle_torch_function(run, (x,), x)
                return x * 3
            return run(x)

        x = torch.ones(2)

        def main():
            call = Unhashable()
            return [(call(x), Api().run(x), made_anew(x)) for _ in range(100)]
        """
    )
    assert len(trace.ops) < 100
    assert sum(op.count for op in trace.ops) == 300
