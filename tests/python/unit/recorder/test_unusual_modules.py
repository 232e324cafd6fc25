"""Modules with unusual arguments, methods of their own, parameters to come, or a short life."""

from __future__ import annotations

import pytest

from tests.python.unit.recorder.corpus_of_models import BLOCK
from tests.support.recorder import Harmless, Traced, outline


def test_arguments_of_every_form(harmless: Harmless) -> None:
    trace = harmless(
        """
        from collections import namedtuple, OrderedDict
        from dataclasses import dataclass

        Pair = namedtuple("Pair", "left right")

        @dataclass
        class Output:
            logits: object
            extra: object = None

        @dataclass(slots=True)
        class Slotted:
            hidden: object

        class Net(nn.Module):
            def forward(self, x, *rest, scale=1.0, mask=None, **others):
                return OrderedDict(
                    tuple=(x, x[0]), pair=Pair(x, [x]), output=Output(x), slotted=Slotted(x),
                    none=None, number=scale, text="abc",
                )

        net, x = Net(), torch.ones(2, 3)

        def main():
            return net(x, x[0], (x, None), scale=2, mask=x > 0, name="given")
        """
    )
    (call,) = trace.modules
    assert call.input_names == ("x", "*1", "*2", "scale", "mask", "name")
    assert outline(trace).splitlines()[2] == (
        "root: Net(f32[2,3], f32[3], (f32[2,3], None), int, bool[2,3], 'given') -> "
        "OrderedDict(tuple: (f32[2,3], f32[3]), pair: Pair(left: f32[2,3], right: [f32[2,3]]), "
        "output: Output(logits: f32[2,3], extra: None), slotted: Slotted(hidden: f32[2,3]), "
        "none: None, number: int, text: 'abc')"
    )


def test_keywords_only(harmless: Harmless) -> None:
    trace = harmless(
        BLOCK
        + """
class Named(nn.Module):
    def forward(self, *, query, key):
        return query @ key.T

net = Named()

def main():
    return net(key=x, query=x * 2)
"""
    )
    assert trace.modules[0].input_names == ("key", "query")
    assert outline(trace).splitlines()[1] == "root: Named(f32[2,3], f32[2,3]) -> f32[2,2]"


GETATTR = """def __getattr__(self, name):
        if name == "layer":
            return super().__getattr__(name)
        raise KeyError(name)
"""
EQUALITY = """def __eq__(self, other):
        raise RuntimeError("not comparable")

    __hash__ = nn.Module.__hash__
"""


@pytest.mark.parametrize(
    "body",
    [
        "def extra_repr(self): raise RuntimeError('not now')",
        "def extra_repr(self): return 3",
        "def extra_repr(self): return str(self.layer.weight.sum()) + str(self.layer(x))",
        GETATTR,
        "def __call__(self, *args): return super().__call__(*args) * 2",
        "@property\n    def doubled(self): return self.layer(x) * 2",
        "__slots__ = ()",
        "def __len__(self): raise RuntimeError('no length')",
        EQUALITY,
        "def __bool__(self): raise RuntimeError('neither true nor false')",
    ],
    ids=[
        "failing text",
        "text that is none",
        "text that computes",
        "failing attributes",
        "own call",
        "property that calls",
        "slots",
        "failing length",
        "failing comparison",
        "failing truth",
    ],
)
def test_classes_with_methods_of_their_own(body: str, harmless: Harmless) -> None:
    trace = harmless(
        BLOCK + f"class Own(Block):\n    {body}\n\nnet = Own()\ndef main(): return net(x)\n"
    )
    assert outline(trace).splitlines()[:3] == [
        "root: Own(f32[2,3]) -> f32[2,3]",
        "  layer: Linear(f32[2,3]) -> f32[2,3]",
        "    linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] inside",
    ]


def test_modules_made_anew_in_each_call_do_not_add_up(traced: Traced) -> None:
    trace = traced(
        """
        class Dynamic(nn.Module):
            def forward(self, x):
                return nn.Sequential(nn.Linear(3, 3), nn.ReLU())(x)

        net, x = Dynamic(), torch.ones(2, 3)

        def main():
            for _ in range(40):
                net(x)
            for _ in range(40):
                nn.Linear(3, 3)(x)
        """
    )
    assert [(call.path, call.class_name, call.count) for call in trace.modules] == [
        ("", "Dynamic", 40),
        ("<Sequential>", "Sequential", 40),
        ("<Sequential>.0", "Linear", 40),
        ("<Sequential>.1", "ReLU", 40),
        ("", "Linear", 40),
    ]


def test_lazy_module_is_shown_as_what_it_becomes(harmless: Harmless) -> None:
    trace = harmless(
        """
        x = torch.ones(2, 3)

        def main():
            net = nn.Sequential(nn.LazyLinear(4), nn.ReLU())
            return net(x)
        """
    )
    calls = [(call.path, call.class_name, call.parameters) for call in trace.modules]
    assert calls == [("", "Sequential", 16), ("0", "Linear", 16), ("1", "ReLU", 0)]
    assert trace.run.passes == 1


def test_module_without_parameters_is_no_pass(traced: Traced) -> None:
    trace = traced(
        BLOCK
        + """
net = Block()

def main():
    y = nn.Flatten()(x)
    loss = nn.MSELoss()(net(y), x)
"""
    )
    assert trace.run.passes == 1
    assert [call.class_name for call in trace.modules if call.parent is None] == [
        "Flatten",
        "Block",
        "MSELoss",
    ]


def test_a_module_is_asked_about_itself_once(traced: Traced) -> None:
    trace = traced(
        """
        class Asked(nn.Linear):
            times = 0

            def extra_repr(self):
                Asked.times += 1
                return f"asked {Asked.times} times"

        net = Asked(3, 3)

        def main():
            net(torch.ones(1, 3))
            for size in range(30):
                net(torch.ones(size, 3))
                nn.Sequential(net)(torch.ones(size, 3))
        """
    )
    assert {call.detail for call in trace.modules if call.class_name == "Asked"} == {
        "asked 1 times"
    }
