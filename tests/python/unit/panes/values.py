"""Values of every kind, as expressions, with the text that each is shown by."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import types
from collections import Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import BatchEncoding
from transformers.modeling_outputs import BaseModelOutput

Pair = namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    size: int = 3
    note: str = "train"


@dataclasses.dataclass(slots=True)
class Slotted:
    x: torch.Tensor
    count: int = 1


@dataclasses.dataclass
class Nested:
    inside: Any
    name: str = "n"


class Plain:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def method(self) -> None:
        """Can be bound."""


class Printed(Plain):
    def __repr__(self) -> str:
        return f"Printed({self.__dict__})"


class Computed:
    """Has properties that must not run."""

    def __init__(self) -> None:
        self.x = torch.ones(2)

    @property
    def loss(self) -> Any:
        raise AssertionError("a property was run")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was looked up")

    def __iter__(self) -> Any:
        raise AssertionError("it was iterated over")

    def __len__(self) -> int:
        raise AssertionError("its length was asked for")

    def __bool__(self) -> bool:
        raise AssertionError("its truth was asked for")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("it was compared")

    __hash__ = None  # type: ignore[assignment]


class Items(list):
    def __iter__(self) -> Any:
        raise AssertionError("it was iterated over")

    def __len__(self) -> int:
        raise AssertionError("its length was asked for")


class Forbidding(torch.Tensor):
    """Raises whatever is asked of it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("forbidden")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        raise RuntimeError("forbidden")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("forbidden")


class Wrapping(torch.Tensor):
    """Has no data of its own, and lets no kernel near it."""

    @staticmethod
    def __new__(cls) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, (2, 3), dtype=torch.float16)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError("forbidden")


class Weird(nn.Module):
    """Looks attributes up in a way that must not be relied on."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name} today")

    def extra_repr(self) -> str:
        raise RuntimeError("forbidden")

    def __repr__(self) -> str:
        raise RuntimeError("forbidden")


class Half(nn.Module):
    """Was not made completely."""

    def __init__(self) -> None:
        pass


def cyclic() -> list:
    held: list = [torch.ones(2)]
    held.append(held)
    return held


def cyclic_objects() -> Any:
    first = Printed(x=torch.ones(2))
    first.__dict__["again"] = first
    return first


def fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(2, 3, device="cuda")


def symbolic() -> Any:
    """A tensor whose first size is a symbol."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return FakeTensorMode(shape_env=ShapeEnv()).from_tensor(torch.ones(5))


def jagged() -> Any:
    tensors = [torch.ones(2), torch.ones(3)]
    return torch.nested.nested_tensor(tensors, layout=torch.jagged)


def shared(module: nn.Module) -> nn.Module:
    return nn.Sequential(module, module)


TENSORS = {
    "torch.ones(2, 16, 64)": "f32[2,16,64]",
    "torch.ones(2, requires_grad=True)": "f32[2] · requires grad",
    "torch.ones(2, requires_grad=True) * 2": "f32[2] · requires grad",
    "nn.Parameter(torch.ones(784, 512))": "f32[784,512] · Parameter · requires grad",
    "nn.Parameter(torch.ones(2), requires_grad=False)": "f32[2] · Parameter",
    "torch.tensor(0.731)": "f32[]",
    "torch.empty(0, 3)": "f32[0,3]",
    "torch.empty(1 << 30, device='meta')": "f32[1073741824]@meta",
    "torch.ones(3, 2).t()": "f32[3,2]".replace("3,2", "2,3"),
    "torch.eye(3).to_sparse()": "f32[3,3] · sparse_coo · 3 stored",
    "torch.eye(3).to_sparse_csr()": "f32[3,3] · sparse_csr · 3 stored",
    "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])": "f32[?] · nested",
    "jagged()": "f32[2,j] · jagged · NestedTensor",
    "torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)": "qu8[2]",
    "torch.ones(2, 3).to_mkldnn()": "f32[2,3] · _mkldnn",
    "torch.ones(2).as_subclass(Forbidding)": "f32[2] · Forbidding",
    "Wrapping()": "f16[2,3] · Wrapping",
    "fake()": "f32[2,3]@cuda:0 · FakeTensor",
    "nn.parameter.UninitializedParameter()": "f32[?] · UninitializedParameter · requires grad",
    "torch.ones(1 << 21).untyped_storage()": "UntypedStorage · 8 MiB",
    "torch.empty(2, device='meta').untyped_storage()": "UntypedStorage · 8 B · meta",
    "torch.TypedStorage([1.0, 2.0])": "TypedStorage · float32 · 8 B",
    "np.ones((2, 3))": "ndarray f64[2,3]",
    "np.zeros(3, dtype=[('a', 'f4'), ('b', 'i2')])": "ndarray (a f32, b i16)[3]",
    "np.zeros(2, dtype=[('at', 'f8', (3,)), ('n', 'i4')])": "ndarray (at f64[3], n i32)[2]",
    "np.array([None, {}], dtype=object)": "ndarray object[2]",
    "np.ma.masked_array([1, 2])": "MaskedArray i64[2]",
}
MODULES = {
    "nn.Linear(512, 784)": "Linear(512 → 784) 402k params",
    "nn.Conv2d(3, 64, 3)": "Conv2d(3 → 64, 3×3) 1.79k params",
    "nn.Embedding(100, 8)": "Embedding(100 → 8) 800 params",
    "nn.LayerNorm((4, 8))": "LayerNorm(4, 8) 64 params",
    "nn.Dropout(0.1)": "Dropout(0.1)",
    "nn.ReLU()": "ReLU()",
    "nn.LSTM(3, 4, 2)": "LSTM(3 → 4, 2 layers) 304 params",
    "nn.MultiheadAttention(64, 4)": "MultiheadAttention(64, 4 heads) 16.6k params",
    "nn.LazyLinear(4)": "LazyLinear(? → 4) not initialized",
    "nn.Sequential(nn.Linear(2, 3), nn.ReLU())": "Sequential(Linear, ReLU) 9 params",
    "nn.ModuleList([nn.Linear(2, 2) for _ in range(12)])": "ModuleList(Linear ×12) 72 params",
    "nn.ModuleDict({'a': nn.ReLU()})": "ModuleDict(a: ReLU)",
    "nn.Linear(8, 8, device='meta')": "Linear(8 → 8) 72 params",
    "shared(nn.Linear(2, 3))": "Sequential(Linear, Linear) 9 params",
    "Weird()": "Weird 6 params",
    "Half()": "Half()",
    "torch.jit.script(nn.Linear(2, 3))": "RecursiveScriptModule[Linear] 9 params",
    "torch.jit.trace(nn.Linear(2, 3), torch.ones(1, 2))": "TopLevelTracedModule[Linear] 9 params",
    "nn.ParameterList([nn.Parameter(torch.ones(2))] * 3)": "ParameterList(f32[2] ×3) 2 params",
    "nn.ParameterDict({'a': torch.ones(2)})": "ParameterDict(a: f32[2]) 2 params",
    "torch.compile(nn.Linear(2, 3))": "OptimizedModule[Linear] 9 params",
    "Plain(x=torch.ones(2)).method": "<bound method Plain.method of Plain(x: f32[2])>",
    "nn.ReLU().forward": "<bound method ReLU.forward of ReLU>",
    "torch.ones(3).backward": "<bound method Tensor.backward of f32[3]>",
}
HOLDERS = {
    "[torch.ones(2, 3)] * 12": "[f32[2,3] ×12]",
    "[torch.ones(2, 3)] * 1000": "[f32[2,3] ×64, …] 1,000 items",
    "(torch.ones(2), torch.arange(3))": "(f32[2], i64[3])",
    "{'input_ids': torch.ones(2, 7).long(), 'step': 3, 'name': 'a'}": (
        "{input_ids: i64[2,7], step: 3, name: 'a'}"
    ),
    "{(0, 1): torch.ones(2), None: 1.5, 2: None}": "{tuple: f32[2], None: 1.5, 2: None}",
    "{torch.ones(2)}": "{f32[2]}",
    "frozenset([torch.ones(2)])": "frozenset(f32[2])",
    "deque([torch.ones(2)] * 3)": "deque(f32[2] ×3)",
    "{'a': torch.ones(2)}.values()": "dict_values(f32[2])",
    "{'a': torch.ones(2)}.items()": "dict_items(('a', f32[2]))",
    "types.MappingProxyType({'a': torch.ones(2)})": "mappingproxy(a: f32[2])",
    "OrderedDict(weight=torch.ones(2))": "OrderedDict(weight: f32[2])",
    "defaultdict(list, {'a': [torch.ones(2)] * 3})": "defaultdict(a: [f32[2] ×3])",
    "UserDict(a=torch.ones(2))": "UserDict(a: f32[2])",
    "UserList([torch.ones(2)])": "UserList(f32[2])",
    "BatchEncoding({'input_ids': torch.ones(2, 7)})": "BatchEncoding(input_ids: f32[2,7])",
    "Pair(torch.ones(2), 3)": "Pair(first: f32[2], second: 3)",
    "torch.ones(2, 3).max(0)": "max(f32[3], i64[3])",
    "Batch(torch.ones(2))": "Batch(x: f32[2], size: 3, note: 'train')",
    "Slotted(torch.ones(2))": "Slotted(x: f32[2], count: 1)",
    "Nested(Nested(Batch(torch.ones(2))))": (
        "Nested(inside: Nested(inside: Batch(x: f32[2], size: 3, note: 'train'), name: 'n'), "
        "name: 'n')"
    ),
    "BaseModelOutput(last_hidden_state=torch.ones(2, 7))": (
        "BaseModelOutput(last_hidden_state: f32[2,7])"
    ),
    "nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])": (
        "PackedSequence(data: f32[5], batch_sizes: i64[3], sorted_indices: None, "
        "unsorted_indices: None)"
    ),
    "torch.distributions.Normal(torch.zeros(2), torch.ones(2))": (
        "Normal(loc: f32[2], scale: f32[2], …)"
    ),
    "torch.utils.data.TensorDataset(torch.ones(4, 2))": "TensorDataset(tensors: (f32[4,2],))",
    "types.SimpleNamespace(x=torch.ones(2))": "SimpleNamespace(x: f32[2])",
    "Plain(x=torch.ones(2), net=nn.Linear(2, 3), name='n')": (
        "Plain(x: f32[2], net: Linear(2 → 3), …)"
    ),
    "Printed(x=[torch.ones(2)] * 4)": "Printed(x: [f32[2] ×4])",
    "Printed(batch=Batch(torch.ones(2)))": (
        "Printed(batch: Batch(x: f32[2], size: 3, note: 'train'))"
    ),
    "Nested(Nested(Nested(Nested(Nested(Nested(torch.ones(2)))))))": (
        "Nested(inside: Nested(inside: Nested(inside: Nested(inside: Nested(inside: …, "
        "name: 'n'), name: 'n'), name: 'n'), name: 'n'), name: 'n')"
    ),
    "Computed()": "Computed(x: f32[2])",
    "Items([torch.ones(2)])": "Items(f32[2])",
    "functools.partial(max, torch.ones(2), key=3)": "partial(of: max, 0: f32[2], key: 3)",
    "{torch.ones(2): 1, 'a': 2}": "{f32[2]: 1, a: 2}",
    "{(1, torch.ones(2)): 1}": "{tuple: 1}",
    "torch.optim.SGD([torch.ones(2)], torch.tensor(0.1))": (
        "SGD(param_groups: [{lr: f32[], momentum: 0, dampening: 0, weight_decay: 0, "
        "nesterov: False, maximize: False, foreach: None, differentiable: False, fused: None}])"
    ),
    "argparse.Namespace(x=torch.ones(2), lr=0.1)": "Namespace(x: f32[2], lr: 0.1)",
    "[symbolic().shape[0], torch.ones(2)]": "[s, f32[2]]",
    "slice(torch.ones(()), None)": "slice(f32[], None, None)",
    "ValueError('no', torch.ones(2))": "ValueError(1: f32[2], …)",
    "[Plain(x=torch.ones(2)).method, torch.ones(2).sum]": "[Plain.method, sum]",
    "[nn.Linear(2, 3)] * 3": "[Linear(2 → 3) ×3]",
    "[torch.ones(2).untyped_storage()]": "[UntypedStorage · 8 B]",
    "[np.ones(3)] * 4": "[ndarray f64[3] ×4]",
    "[torch.ones(2).as_subclass(Forbidding), Wrapping()]": "[f32[2], f16[2,3]]",
    "[torch.ones(2), [torch.ones(3), (torch.ones(4),)]]": "[f32[2], [f32[3], (f32[4],)]]",
    "cyclic()": "[f32[2], …]",
    "cyclic_objects()": "Printed(x: f32[2], again: …)",
    "{'a\\nb': torch.ones(2)}": "{a\\nb: f32[2]}",
    "{'k' * 100: torch.ones(2)}": "{" + "k" * 39 + "…: f32[2]}",
    "[torch.ones(2), 's' * 100, b'12', 10 ** 100, range(3), nn.Linear, Ellipsis]": (
        "[f32[2], '" + "s" * 40 + "'…, bytes[2], int, range[3], Linear, Ellipsis]"
    ),
    "dict.fromkeys(range(100_000), torch.ones(2))": (
        "{" + ", ".join(f"{key}: f32[2]" for key in range(16)) + ", …} 100,000 items"
    ),
}
NOT_OURS = [
    *("3", "1.5", "'abc'", "None", "b'12'", "range(3)", "True", "nn", "torch", "print"),
    *("[].append", "Plain(a=1).method"),
    *("[]", "[1, 2, 3]", "(1,)", "{'a': 1}", "{1, 2}", "deque([1])", "Counter('abc')"),
    *("nn.Linear", "torch.Tensor", "torch.float32", "torch.device('cpu')", "torch.Size([2])"),
    *(
        "Plain(a=1)",
        "Printed(a=1)",
        "Plain(a=Nested([[[1]]]))",
        "[Plain(a=Nested([[[1]]]))] * 3",
        "Batch",
        "lambda: None",
        "Batch(3)",
        "[[[[[[[1]]]]]]]",
    ),
    *("torch.optim.SGD([torch.ones(2)], 0.1)", "torch.Generator()", "np.float32(0.5)"),
    *("symbolic().shape", "symbolic().shape[0]", "[symbolic().shape[0]]"),
    *("Plain(a=Nested([[[1]]]))", "[Plain(a=Nested([[[[1]]]]))] * 3", "Nested([[1]])"),
    *("[0] * 1_000_000", "dict.fromkeys(range(1_000_000))", "Path('a')", "math.pi", "object()"),
]


NAMES = {
    **{each.__name__: each for each in (argparse, math, torch, types, functools, nn.Module)},
    **{each.__name__: each for each in (Counter, OrderedDict, UserDict, UserList, Path)},
    **{each.__name__: each for each in (defaultdict, deque, BatchEncoding, BaseModelOutput)},
    **{each.__name__: each for each in (Pair, Batch, Slotted, Nested, Plain, Printed, Computed)},
    **{each.__name__: each for each in (Items, Forbidding, Wrapping, Weird, Half)},
    **{each.__name__: each for each in (cyclic, cyclic_objects, fake, jagged, shared, symbolic)},
    "np": np,
    "nn": nn,
}
"""What the expressions are made of."""


def made(expression: str) -> Any:
    """The value of one of the expressions."""
    return eval(expression, dict(NAMES))
