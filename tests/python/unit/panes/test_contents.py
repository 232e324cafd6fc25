"""What is below a tensor, a module or a storage, and the expressions for it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import nn

from shapetrace.panes import ChildEntry, children, opens
from shapetrace.panes.child_entries import ChildGroup
from tests.python.unit.panes.values import Forbidding, Half, Weird, Wrapping, fake
from tests.python.unit.panes.watching import opened, unnoticed


def lines_of(value: Any, *paths: str) -> list[str]:
    with unnoticed(value, is_opened=True):
        return opened(value, *paths)


def without_addresses(lines: list[str]) -> list[str]:
    """Nor the tests' lines, known from Python 3.13 on: pytest has tests ask for ``locals()``."""
    return [line for line in lines if "data_ptr" not in line and "assigned at" not in line]


def test_a_tensor_that_needs_a_gradient() -> None:
    product = torch.arange(8.0).reshape(2, 4).requires_grad_() * 2
    product.note = "kept"  # type: ignore[attr-defined]
    assert without_addresses(lines_of(product, "items", "more")) == [
        "shape: (2, 4) → .shape",
        "dtype: torch.float32 → .dtype",
        "device: cpu → .device",
        "memory: 32 B → .nbytes",
        "strides: (4, 1) · contiguous → .stride()",
        "requires_grad: True → .requires_grad",
        "grad_fn: MulBackward0 → .grad_fn",
        "statistics: min 0 · max 14 · mean 7 · no nan",
        "first values: 0, 2, 4, 6, 8, 10, 12, 14",
        "items: 2 →",
        "  [0]: f32[4] · requires grad → [0]",
        "  [1]: f32[4] · requires grad → [1]",
        "more:  →",
        "  is_leaf: False → .is_leaf",
        "  version: 0 → ._version",
        "  layout: torch.strided → .layout",
        "  storage_offset: 0 → .storage_offset()",
        "  storage: UntypedStorage · 32 B → .untyped_storage()",
        "  note: 'kept' → .note",
    ]


def lines_named(value: Any, *names: str) -> list[str]:
    lines = lines_of(value, "items", "more")
    return [line for line in lines if line.startswith(names)]


def test_the_gradient_of_a_leaf() -> None:
    weight = nn.Parameter(torch.ones(2, 3))
    assert lines_named(weight, "grad:") == ["grad: None → .grad"]
    (weight * 2).sum().backward()
    assert lines_named(weight, "grad:") == ["grad: f32[2,3] → .grad"]
    product = weight * 2
    product.retain_grad()
    product.sum().backward()
    assert lines_named(product, "grad:") == ["grad: f32[2,3] → .grad"]


def test_a_view_tells_of_the_storage_that_it_keeps_alive() -> None:
    column = torch.ones(1000, 4)[:, 1]
    assert lines_named(column, "memory", "strides", "  stor") == [
        "memory: 3.91 KiB in a storage of 15.6 KiB → .nbytes",
        "strides: (4,) · not contiguous → .stride()",
        "  storage_offset: 1 → .storage_offset()",
        "  storage: UntypedStorage · 15.6 KiB → .untyped_storage()",
    ]


def test_a_scalar_and_a_row_show_their_numbers() -> None:
    assert lines_named(torch.tensor(0.731), "value", "items") == ["value: 0.731"]
    assert lines_named(torch.tensor([1, 5]), "items", "  [") == [
        "items: 2 →",
        "  [0]: 1 → [0]",
        "  [1]: 5 → [1]",
    ]


def test_only_the_first_items_are_made() -> None:
    lines = lines_named(torch.zeros(100_000, 2), "items", "  [", "  …")
    assert lines[:2] == ["items: 100,000 →", "  [0]: f32[2] → [0]"]
    assert lines[-2:] == ["  [99]: f32[2] → [99]", "  …: 99,900 more"]
    assert len(lines) == 102


UNREAD = {
    "meta": (lambda: torch.empty(10**9, device="meta"), "statistics: no data on meta"),
    "sparse": (lambda: torch.eye(3).to_sparse(), "statistics: not read: sparse_coo"),
    "fake": (fake, "statistics: not read: FakeTensor keeps its data in its own way"),
    "wrapping": (Wrapping, "statistics: not read: Wrapping keeps its data in its own way"),
}


@pytest.mark.parametrize("kind", UNREAD)
def test_what_is_not_read_says_why(kind: str) -> None:
    make, expected = UNREAD[kind]
    lines = lines_named(make(), "statistics", "first values")
    assert lines == [expected]


def test_the_parts_of_a_sparse_tensor() -> None:
    lines = lines_of(torch.eye(3).to_sparse())
    assert "indices: i64[2,3] → ._indices()" in lines
    assert "values: f32[3] → ._values()" in lines
    assert not [line for line in lines if line.startswith(("memory", "items"))]


def test_a_class_that_forbids_everything() -> None:
    lines = lines_named(torch.ones(2, 3).as_subclass(Forbidding), "shape", "statistics", "first")
    assert lines == [
        "shape: (2, 3) → .shape",
        "statistics: min 1 · max 1 · mean 1 · no nan",
        "first values: 1, 1, 1, 1, 1, 1",
    ]


def test_tensors_within_a_function_transform() -> None:
    seen: list[list[str]] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append([line for line in opened(x) if line.startswith(("shape", "stat", "items"))])
        return x

    torch.vmap(look)(torch.ones(3, 4))
    assert seen == [["shape: (4,) → .shape", "statistics: not read within a function transform"]]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        self.named = nn.ModuleDict({"not a name": nn.ReLU(), "class": nn.ReLU()})
        self.scale = nn.Parameter(torch.ones(3))
        self.missing = None
        self.register_parameter("absent", None)
        self.register_buffer("seen", torch.zeros(1))
        self.size = 7

    @property
    def loss(self) -> Any:
        raise AssertionError("a property was run")


def test_a_module_shows_its_parts_and_then_its_own_attributes() -> None:
    net = Net()
    net._kept = 3  # type: ignore[assignment]
    assert lines_of(net) == [
        "layers: Sequential(Linear, ReLU) 9 params → .layers",
        "named: ModuleDict(not a name: ReLU, class: ReLU) → .named",
        "scale: f32[3] · Parameter · requires grad → .scale",
        "absent: None → .absent",
        "seen: f32[1] → .seen",
        "_kept: 3 → ._kept",
        "missing: None → .missing",
        "size: 7 → .size",
        "training: True → .training",
    ]
    assert lines_of(net.layers)[:2] == ["0: Linear(2 → 3) 9 params → [0]", "1: ReLU() → [1]"]
    assert lines_of(net.named)[:2] == [
        "not a name: ReLU() → ._modules['not a name']",
        "class: ReLU() → ._modules['class']",
    ]


def test_every_expression_gives_what_is_shown() -> None:
    net = Net()
    for entry in children(net):
        assert entry.suffix is not None
        assert eval(f"net{entry.suffix}") is entry.value
    x = torch.randn(3, 4, requires_grad=True)
    for entry in [*children(x), *below(x, "items"), *below(x, "more")]:
        if entry.suffix:
            eval(f"x{entry.suffix}")


def below(value: Any, name: str) -> list[ChildEntry]:
    group = next(entry.value for entry in children(value) if entry.name == name)
    assert isinstance(group, ChildGroup)
    return group.entries()


def test_modules_that_are_not_as_others() -> None:
    assert lines_of(Weird()) == ["fc: Linear(2 → 2) 6 params → .fc", "training: True → .training"]
    assert lines_of(Half()) == []
    assert lines_of(nn.LazyLinear(4))[0] == (
        "weight: f32[?] · UninitializedParameter · requires grad → .weight"
    )
    many = nn.ModuleList([nn.ReLU() for _ in range(1500)])
    lines = lines_of(many)
    assert lines[999:1001] == ["999: ReLU() → [999]", "…: 500 more"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_modules_are_left_to_the_debugger() -> None:
    assert not opens(type(torch.jit.script(nn.Linear(2, 3))))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_storages() -> None:
    storage = torch.arange(1 << 20).untyped_storage()
    assert lines_of(storage) == [
        "memory: 8 MiB → .nbytes()",
        "device: cpu → .device",
        "first bytes: 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 …",
    ]
    assert lines_of(torch.TypedStorage([1.0])) == [
        "memory: 4 B → .nbytes()",
        "device: cpu → .device",
        "dtype: torch.float32 → .dtype",
        "first bytes: 00 00 80 3f",
    ]


def test_looking_keeps_nothing_alive() -> None:
    tensor = torch.ones(2)
    before = sys.getrefcount(tensor)
    lines_of(tensor, "items", "more")
    assert sys.getrefcount(tensor) == before
