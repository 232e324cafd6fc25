"""Module calls: their paths, numbers, inputs and outputs, however a model is put together."""

from __future__ import annotations

from tests.python.unit.recorder.corpus_of_models import BLOCK
from tests.support.recorder import Harmless, outline, paths_of, unindented


def test_nested_containers(harmless: Harmless) -> None:
    trace = harmless(
        BLOCK
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([Block(), nn.Sequential(nn.Identity(), Block())])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 1), "b": nn.Linear(3, 2)})

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return {name: head(x) for name, head in self.heads.items()}

net = Net()

def main():
    return net(x)
"""
    )
    assert outline(trace) == unindented(
        """
        root: Net(f32[2,3]) -> {a: f32[2,1], b: f32[2,2]}
          stages.0: Block(f32[2,3]) -> f32[2,3]
            stages.0.layer: Linear(f32[2,3]) -> f32[2,3]
              linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside
            relu() (f32[2,3]) -> f32[2,3]
          stages.1: Sequential(f32[2,3]) -> f32[2,3]
            stages.1.0: Identity(f32[2,3]) -> f32[2,3]
            stages.1.1: Block(f32[2,3]) -> f32[2,3]
              stages.1.1.layer: Linear(f32[2,3]) -> f32[2,3]
                linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside
              relu() (f32[2,3]) -> f32[2,3]
          heads.a: Linear(f32[2,3]) -> f32[2,1]
            linear() (f32[2,3], f32[1,3], f32[1]) -> f32[2,1] inside
          heads.b: Linear(f32[2,3]) -> f32[2,2]
            linear() (f32[2,3], f32[2,3], f32[2]) -> f32[2,2] inside
        """
    )
    assert [call.detail for call in trace.modules if call.path == "heads.b"] == [
        "in_features=3, out_features=2, bias=True"
    ]
    assert [call.parameters for call in trace.modules if call.path in ("", "stages.0")] == [36, 12]


def test_forward_called_directly_is_a_module_call_that_nobody_counted(harmless: Harmless) -> None:
    trace = harmless(
        BLOCK
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block(), Block()])

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

net = Net()

def main():
    return net.forward(x)
"""
    )
    assert outline(trace) == unindented(
        """
        root: Net(f32[2,3]) -> None uncounted
          layers.0: Block(f32[2,3]) -> None uncounted
            layers.0.layer: Linear(f32[2,3]) -> f32[2,3]
              linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside
            relu() (f32[2,3]) -> f32[2,3]
          layers.1: Block(f32[2,3]) -> None uncounted
            layers.1.layer: Linear(f32[2,3]) -> f32[2,3]
              linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside
            relu() (f32[2,3]) -> f32[2,3]
          layers.2: Block(f32[2,3]) -> None uncounted
            layers.2.layer: Linear(f32[2,3]) -> f32[2,3]
              linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside
            relu() (f32[2,3]) -> f32[2,3]
        """
    )
    assert trace.run.passes == 1


def test_forward_of_a_base_class_belongs_to_the_same_call(harmless: Harmless) -> None:
    trace = harmless(
        BLOCK
        + """
class Wider(Block):
    def forward(self, x):
        return super().forward(x + 1) * 2

net = Wider()

def main():
    return net(x)
"""
    )
    assert outline(trace) == unindented(
        """
        root: Wider(f32[2,3]) -> f32[2,3]
          + (f32[2,3]) -> f32[2,3]
          layer: Linear(f32[2,3]) -> f32[2,3]
            linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside
          relu() (f32[2,3]) -> f32[2,3]
          * (f32[2,3]) -> f32[2,3]
        """
    )


def test_tied_module_has_its_first_path_and_counts_on(harmless: Harmless) -> None:
    trace = harmless(
        BLOCK
        + """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = self.first
        self.third = nn.Linear(3, 3)
        self.third.weight = self.first.weight

    def forward(self, x):
        x = self.first(x)
        x = self.second(x)
        return self.third(x)

net = Tied()

def main():
    return net(x), net(x)
"""
    )
    calls = [(call.path, call.call, call.count, call.line) for call in trace.modules]
    assert calls == [
        ("", 1, 1, 28),
        ("first", 1, 1, 21),
        ("first", 2, 1, 22),
        ("third", 1, 1, 23),
        ("", 2, 1, 28),
        ("first", 3, 1, 21),
        ("first", 4, 1, 22),
        ("third", 2, 1, 23),
    ]
    weights = [op.inputs[1].name for op in trace.ops]
    assert weights[:3] == ["first.weight", "first.weight", "third.weight"]


def test_recursion_nests_as_deep_as_it_goes(harmless: Harmless) -> None:
    trace = harmless(
        """
        class Recursive(nn.Module):
            def __init__(self):
                super().__init__()
                self.leaf = nn.Linear(1, 1)

            def forward(self, x, depth):
                if depth == 0:
                    return self.leaf(x)
                if depth % 2:
                    return self(x, depth - 1) * 2
                return self.forward(x, depth - 1) + 1

        net, x = Recursive(), torch.ones(1, 1)

        def main():
            return net(x, 3)
        """
    )
    assert outline(trace) == unindented(
        """
        root: Recursive(f32[1,1], int) -> f32[1,1]
          root: Recursive(f32[1,1], int) -> f32[1,1]
            root: Recursive(f32[1,1], int) -> f32[1,1]
              leaf: Linear(f32[1,1]) -> f32[1,1]
                linear() (f32[1,1], f32[1,1], f32[1]) -> f32[1,1] inside
            * (f32[1,1]) -> f32[1,1]
            + (f32[1,1]) -> f32[1,1]
          * (f32[1,1]) -> f32[1,1]
        """
    )


def test_paths_begin_at_the_model_that_was_given(harmless: Harmless) -> None:
    text = (
        BLOCK
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Block(), Block()

net = Net()
"""
    )
    trace = harmless(text + "def main(): return net.decoder(net.encoder(x))\n")
    assert paths_of(trace) == ["", "layer", "", "layer"]


def test_module_with_hooks_of_the_program(harmless: Harmless) -> None:
    trace = harmless(
        BLOCK
        + """
net = Block()
net.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
net.register_forward_pre_hook(
    lambda module, args, kwargs: ((args[0] * 2,), kwargs), with_kwargs=True
)
net.layer.register_forward_hook(lambda module, args, output: output - 1)
net.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 0.5,))
given = x.clone().requires_grad_()

def main():
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, output: None)
    net(given).sum().backward()
    handle.remove()
    return given.grad
"""
    )
    assert outline(trace) == unindented(
        """
        root: Block(f32[2,3]) -> f32[2,3]
          + (f32[2,3]) -> f32[2,3]
          * (f32[2,3]) -> f32[2,3]
          view_as() (f32[2,3], f32[2,3]) -> f32[2,3] inside
          layer: Linear(f32[2,3]) -> f32[2,3]
            linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside
            - (f32[2,3]) -> f32[2,3]
          relu() (f32[2,3]) -> f32[2,3]
          view_as() (f32[2,3], f32[2,3]) -> f32[2,3] inside
        sum() (f32[2,3]) -> f32[]
        backward() (f32[]) -> None
        * (f32[2,3]) -> f32[2,3]
        grad (f32[2,3]) -> f32[2,3]
        """
    )
