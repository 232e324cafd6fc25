"""Which expressions with items the editor's hover may have evaluated at a stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.debug_client import Script, launch
from tests.support.session_server import SessionServer

pytestmark = pytest.mark.e2e

PROGRAM = """
    from collections import OrderedDict, UserDict, defaultdict, deque
    from dataclasses import dataclass

    import torch
    from torch import nn
    from torch.utils.data import Dataset
    from transformers.modeling_outputs import BaseModelOutput

    asked = []

    class Data(Dataset):
        def __getitem__(self, index):
            asked.append(index)
            return index

    class Own(dict):
        def __getitem__(self, key):
            asked.append(key)
            return 1

    class Filling(dict):
        def __missing__(self, key):
            asked.append(key)
            self[key] = 1
            return 1

    class Key(str):
        def __hash__(self):
            asked.append("hash")
            return 1

    class Quiet(torch.Tensor):
        pass

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), keywords=None):
            asked.append(function)
            return super().__torch_function__(function, types, arguments, keywords or {})

    class Slots:
        __slots__ = ("rows",)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
            self.heads = nn.ModuleDict({"a": nn.Linear(2, 2)})
            self.scales = nn.ParameterList([torch.ones(2)])

        @property
        def parts(self):
            asked.append("parts")
            return [1]

    def run():
        model, x, i, name, sized = Model(), torch.ones(3, 4), 1, "loss", [torch.ones(2)]
        losses, filled, data = defaultdict(list), defaultdict(list, loss=[1]), Data()
        own, filling, key, mask = Own(a=1), Filling(a=1), Key("a"), x > 0
        ordered, chain, line = OrderedDict(a=1), UserDict(a=1), deque([1, 2])
        quiet, loud = x.as_subclass(Quiet), x.as_subclass(Loud)
        output, array, slots = BaseModelOutput(last_hidden_state=x), x.numpy(), Slots()
        slots.rows = [1]
        asked.clear()
        print("stop")  # @stop
        print(len(asked), len(losses), len(filling))

    run()
"""

ASKED = {
    "x[0]": True,
    "x[i]": True,
    "x[:,-1]": True,
    "x[...,None]": True,
    "x[mask]": True,
    "x[9]": False,
    "array[0]": True,
    "quiet[0]": True,
    "loud[0]": False,
    "x[0].shape": True,
    "x[0].shape[0]": True,
    "loud.shape[0]": False,
    "array.shape[0]": True,
    "x[0].sum": False,
    "sized[0]": True,
    "sized[i]": False,
    'losses["loss"]': False,
    "losses[name]": False,
    'filled["loss"]': True,
    'filled["loss"][0]': True,
    'filling["a"]': True,
    'filling["b"]': False,
    'own["a"]': False,
    "filling[key]": False,
    "data[0]": False,
    'ordered["a"]': True,
    'chain["a"]': True,
    "line[1]": True,
    'output["last_hidden_state"]': True,
    "output[0]": True,
    "slots.rows[0]": True,
    "model.blocks[2]": True,
    "model.blocks[2].weight[0]": True,
    'model.heads["a"].bias': True,
    "model.scales[0]": True,
    "model.parts[0]": False,
    "model.nothing[0]": False,
    "torch.tensor[0]": False,
    "list[int]": False,
    "unknown[0]": False,
    "asked.append(1)[0]": False,
    "x[asked.append(1)]": False,
    "x[": False,
}


def test_a_hover_evaluates_only_what_the_program_does_not_notice(tmp_path: Path) -> None:
    script = Script.write(PROGRAM, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.break_at("stop")
        session.go()
        stop = session.stop()
        told = {}
        for expression in ASKED:
            question = f"is_side_effect_free({stop.top.number}, {expression!r})"
            module = "__import__('sys').modules['shapetrace.agent.stop_query']"
            told[expression] = session.evaluate(f"{module}.{question}") == "true"
        session.resume(stop.thread)
        ended = session.end()
    assert told == ASKED
    assert ended.stdout.splitlines()[-1] == "0 0 1"
