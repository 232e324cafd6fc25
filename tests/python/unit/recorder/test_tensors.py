"""Tensors of every kind are described as what they are, and no description disturbs them."""

from __future__ import annotations

import re

import pytest
import torch

from shapetrace.events.model import Op, Tensor
from tests.support.recorder import Harmless, Traced, outline, trace_of, unindented
from tests.support.torches import TORCH, distributed_tensors, needs

KINDS = {
    "torch.ones(2, 3)": "float32 (2, 3) cpu strided",
    "torch.ones(3, 2).t()": "float32 (2, 3) cpu strided strides=(1, 2)",
    "torch.ones(2, 3, 4)[:, 1:, ::2]": "float32 (2, 2, 2) cpu strided strides=(12, 4, 2)",
    "torch.ones(2, 1).expand(2, 3)": "float32 (2, 3) cpu strided strides=(1, 0)",
    "torch.ones(1, 3, 2, 2).to(memory_format=torch.channels_last)": (
        "float32 (1, 3, 2, 2) cpu strided strides=(12, 1, 6, 3)"
    ),
    "torch.tensor(1.5)": "float32 () cpu strided",
    "torch.empty(0)": "float32 (0,) cpu strided",
    "torch.empty(2, 0, 3)": "float32 (2, 0, 3) cpu strided",
    "torch.ones(2, requires_grad=True)": "float32 (2,) cpu strided grad",
    "nn.Parameter(torch.ones(2))": "float32 (2,) cpu strided grad Parameter",
    "nn.Parameter(torch.ones(2), requires_grad=False)": "float32 (2,) cpu strided Parameter",
    "nn.Buffer(torch.ones(2))": "float32 (2,) cpu strided",
    "torch.ones(2, dtype=torch.bool)": "bool (2,) cpu strided",
    "torch.ones(2, dtype=torch.complex64)": "complex64 (2,) cpu strided",
    "torch.ones(2, dtype=torch.complex64).conj()": "complex64 (2,) cpu strided",
    "torch.zeros(8, dtype=torch.uint8).view(torch.complex32)": "complex32 (2,) cpu strided",
    "torch.zeros(4, dtype=torch.uint8).view(torch.uint16)": "uint16 (2,) cpu strided",
    "torch.zeros(2, dtype=torch.uint8).view(torch.float8_e4m3fn)": "float8_e4m3fn (2,) cpu strided",
    "torch.zeros(2, dtype=torch.uint8).view(torch.float8_e5m2)": "float8_e5m2 (2,) cpu strided",
    "torch.zeros(2, dtype=torch.uint8).view(torch.float8_e8m0fnu)": (
        "float8_e8m0fnu (2,) cpu strided"
    ),
    "torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)": (
        "float4_e2m1fn_x2 (2,) cpu strided"
    ),
    "torch.zeros(2, dtype=torch.uint8).view(torch.uint4)": "uint4 (2,) cpu strided",
    "torch.zeros(2, dtype=torch.uint8).view(torch.int1)": "int1 (2,) cpu strided",
    "torch.zeros(2, dtype=torch.uint8).view(torch.bits8)": "bits8 (2,) cpu strided",
    "torch.empty(1 << 40, 1 << 10, device='meta')": ("float32 (1099511627776, 1024) meta strided"),
    "torch.eye(3).to_sparse()": "float32 (3, 3) cpu sparse_coo",
    "torch.eye(3).to_sparse_csr()": "float32 (3, 3) cpu sparse_csr",
    "torch.eye(4).to_sparse_bsr((2, 2))": "float32 (4, 4) cpu sparse_bsr",
    "torch.ones(2, 3).to_mkldnn()": "float32 (2, 3) cpu _mkldnn",
    "torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])": ("float32 ? cpu strided"),
    "torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)": "quint8 (2,) cpu strided",
    "torch.quantize_per_channel(torch.ones(2, 3), torch.ones(2), torch.zeros(2), 0, torch.qint8)": (
        "qint8 (2, 3) cpu strided"
    ),
}


def facts(tensor: Tensor) -> str:
    """A recorded tensor in one line."""
    words = [tensor.dtype, "?" if tensor.shape is None else str(tensor.shape), tensor.device]
    words.append(tensor.layout)
    words += [f"strides={tensor.strides}"] if tensor.strides else []
    words += ["grad"] if tensor.requires_grad else []
    words += [tensor.kind] if tensor.kind != "Tensor" else []
    return " ".join(words)


def used(ops: tuple[Op, ...]) -> Tensor:
    """The tensor that ``t.detach()`` was asked of."""
    (op,) = [op for op in ops if op.name.endswith(".alias") or op.name.endswith("detach")]
    (tensor,) = op.inputs
    return tensor


@pytest.mark.parametrize(("expression", "expected"), KINDS.items(), ids=KINDS.keys())
def test_kind_of_tensor(expression: str, expected: str, harmless: Harmless) -> None:
    needs(*re.findall(r"torch\.(?:nn\.)?\w+", expression.replace("nn.", "torch.nn.")))
    trace = harmless(f"made = {expression}\ndef main(): return made.detach()")
    assert facts(used(trace.ops)) == expected
    assert trace.ops[0].error is None


@pytest.mark.skipif(TORCH < (2, 5), reason="torch 2.4 does not sum up a jagged tensor")
def test_jagged_tensor_has_a_symbolic_size(traced: Traced) -> None:
    trace = traced(
        """
        ragged = torch.nested.nested_tensor(
            [torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged
        )

        def main():
            return (ragged * 2).sum()
        """
    )
    (operand,) = trace.ops[0].inputs
    assert operand.shape is not None
    assert (operand.shape[0], operand.shape[2]) == (2, 3)
    assert isinstance(operand.shape[1], str)
    assert (operand.kind, operand.layout) == ("NestedTensor", "jagged")


def test_fake_tensor_is_described_with_the_device_it_pretends_to_be_on(traced: Traced) -> None:
    trace = traced(
        """
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            fake = torch.ones(2, 3)

        def main():
            return fake + 1
        """
    )
    (operand,) = trace.ops[0].inputs
    assert facts(operand) == "float32 (2, 3) cpu strided FakeTensor"


def test_symbolic_size_is_named_and_never_forced(traced: Traced) -> None:
    trace = traced(
        """
        from torch.fx.experimental.proxy_tensor import make_fx

        def double(x):
            return torch.cat([x, x]) * 2

        def main():
            make_fx(double, tracing_mode="symbolic")(torch.ones(3, 5))
        """
    )
    cat, product = [op for op in trace.ops if op.name in ("torch.cat", "torch.Tensor.mul")]
    assert cat.inputs[0].shape is not None
    assert all(isinstance(size, str) for size in cat.inputs[0].shape)
    assert product.outputs[0] == product.inputs[0]


REFUSING = """
asked = []

class Refusing(torch.Tensor):
    @property
    def shape(self):
        asked.append("shape")
        raise RuntimeError("no shape")

    @property
    def dtype(self):
        asked.append("dtype")
        raise RuntimeError("no dtype")

    @property
    def device(self):
        asked.append("device")
        raise KeyError("no device")

    @property
    def layout(self):
        asked.append("layout")
        raise KeyError("no layout")

    @property
    def requires_grad(self):
        asked.append("requires_grad")
        raise SystemExit("no gradient")

    def is_contiguous(self, *args):
        asked.append("is_contiguous")
        raise ValueError("not known")

    def stride(self, *args):
        asked.append("stride")
        raise ValueError("not known")

    def __len__(self):
        raise RuntimeError("no length")

    def __repr__(self):
        asked.append("repr")
        return "refusing"

given = torch.ones(2, 3).as_subclass(Refusing)

def main():
    asked.clear()
    y = nn.Linear(3, 2)(given * 2)
    return type(y).__name__, list(asked)
"""


@pytest.mark.parametrize("level", ["torch", "aten"])
def test_attributes_that_a_class_overrides_are_not_read(level: str, harmless: Harmless) -> None:
    trace = harmless(REFUSING, level=level)
    (product,) = [op for op in trace.ops if op.name == "torch.Tensor.mul"]
    assert facts(product.inputs[0]) == "float32 (2, 3) cpu strided Refusing"
    assert product.outputs == product.inputs


@pytest.mark.filterwarnings("ignore:DTensor random operators may not have complete support")
def test_distributed_tensor_tells_its_placements(single_process_group: None) -> None:
    from torch.distributed.device_mesh import DeviceMesh

    dtensors = distributed_tensors()
    mesh = DeviceMesh("cpu", [0])
    spread = dtensors.distribute_tensor(torch.ones(4, 2), mesh, [dtensors.Shard(0)])
    trace = trace_of(lambda: spread * 2)
    (operand,) = next(op for op in trace.ops if op.name == "torch.Tensor.mul").inputs
    assert facts(operand) == "float32 (4, 2) cpu strided DTensor"
    assert operand.placements == "S(0)"


def test_containers_of_tensors_as_arguments_and_results(traced: Traced) -> None:
    trace = traced(
        """
        x = torch.arange(6.0).view(2, 3)

        def main():
            torch.stack([x, x + 1], dim=1)
            x.split([1, 2], dim=1)
            x.max(dim=1)
            torch.aminmax(x)
            torch.index_put(x, (torch.tensor([0]), torch.tensor([1])), torch.tensor(9.0))
            x[torch.tensor([0]), 1:]
            x.tolist()
        """
    )
    assert outline(trace) == unindented(
        """
        + (f32[2,3]) -> f32[2,3]
        stack(dim=1) (f32[2,3], f32[2,3]) -> f32[2,2,3]
        split([1, 2], dim=1) (f32[2,3]) -> (f32[2,1], f32[2,2])
        max(dim=1) (f32[2,3]) -> max(f32[2], i64[2])
        aminmax() (f32[2,3]) -> aminmax(f32[], f32[])
        tensor([0]) () -> i64[1]
        tensor([1]) () -> i64[1]
        tensor(9.0) () -> f32[]
        index_put() (f32[2,3], i64[1], i64[1], f32[]) -> f32[2,3]
        tensor([0]) () -> i64[1]
        […] (f32[2,3], i64[1]) -> f32[1,2]
        tolist() (f32[2,3]) -> [[float ×3], [float ×3]]
        """
    )


def test_in_place_operation_shows_what_went_in(traced: Traced) -> None:
    trace = traced(
        """
        def main():
            x = torch.ones(2, 3)
            x.unsqueeze_(0)
            x += 1
            x[0, 1] = 5
            x.data = torch.zeros(4)
            x.resize_(2, 2)
        """
    )
    assert outline(trace) == unindented(
        """
        ones(2, 3) () -> f32[2,3]
        unsqueeze_(0) (f32[2,3]) -> f32[1,2,3]
        += (f32[1,2,3]) -> f32[1,2,3]
        [0, 1] = (f32[1,2,3]) -> None
        zeros(4) () -> f32[4]
        resize_(2, 2) (f32[4]) -> f32[2,2]
        """
    )
