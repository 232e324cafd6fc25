"""Tensors that are none of the usual ones, each as a function that has somebody use it.

The one who uses it also gets what is to be done between two looks: it takes the memory away where
that is there at first.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from multiprocessing.shared_memory import SharedMemory
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor, nn

from tests.support.torches import distributed_tensors

Use: TypeAlias = Callable[[Any, Callable[[], object]], None]
Make: TypeAlias = Callable[[Use], object]

TENSORS: dict[str, Make] = {}
LOST: dict[str, str] = {}
"""Those whose memory is not there, with the reason why they are not captured."""

GIVEN_BACK = "its memory was given back"
GONE = "its memory was another's, and is gone"
LARGE = (512, 1024)
"""Memory of so many numbers is given back to the system when it is freed: reading it is fatal."""


def nothing() -> None:
    """Do nothing between two looks."""


def tensor(name: str, lost: str | None = None) -> Callable[[Callable[[], Any]], None]:
    """Add a tensor that a function makes."""

    def add(make: Callable[[], Any]) -> None:
        TENSORS[name] = lambda use: use(make(), nothing)
        if lost is not None:
            LOST[name] = lost

    return add


def freed(of: Tensor, size: int = 0) -> Tensor:
    of.untyped_storage().resize_(size)
    return of


# Freed, in part or whole.

tensor("freed", GIVEN_BACK)(lambda: freed(torch.ones(LARGE)))
tensor("freed scalar", GIVEN_BACK)(lambda: freed(torch.ones(())))
tensor("freed parameter", GIVEN_BACK)(lambda: freed(nn.Parameter(torch.ones(LARGE))).detach())
tensor("freed at its end", GIVEN_BACK)(lambda: freed(torch.ones(LARGE), 4096))
tensor("freed integers", GIVEN_BACK)(lambda: freed(torch.ones(LARGE, dtype=torch.int64)))
tensor("freed complex", GIVEN_BACK)(lambda: freed(torch.ones(LARGE, dtype=torch.complex64)).conj())
tensor("freed bfloat16", GIVEN_BACK)(lambda: freed(torch.ones(LARGE).bfloat16()))
tensor("freed float8", GIVEN_BACK)(lambda: freed(torch.ones(LARGE).to(torch.float8_e5m2)))
tensor("empty of a freed one")(lambda: freed(torch.ones(LARGE))[:0])


@tensor("view of a freed one", GIVEN_BACK)
def _() -> Tensor:
    whole = torch.ones(LARGE)
    view = whole.t()[:, 100::2]
    freed(whole)
    return view


@tensor("view beyond what is left", GIVEN_BACK)
def _() -> Tensor:
    whole = torch.ones(LARGE)
    view = whole[-2:, ::3]
    freed(whole, whole.nbytes // 2)
    return view


@tensor("view of what is left")
def _() -> Tensor:
    whole = torch.ones(LARGE)
    view = whole[:2]
    freed(whole, whole.nbytes // 2)
    return view


@tensor("expanded from a freed one", GIVEN_BACK)
def _() -> Tensor:
    value = torch.ones(1, 1024 * 512).expand(4, -1)
    return freed(value)


@tensor("freed in inference mode", GIVEN_BACK)
def _() -> Tensor:
    with torch.inference_mode():
        return freed(torch.ones(LARGE))


def _freed_later(use: Use) -> None:
    value = torch.ones(LARGE)
    use(value, lambda: freed(value))


def _cut_later(use: Use) -> None:
    value = torch.ones(LARGE)[1:]
    use(value, lambda: freed(value, 4096))


def _freed_later_in_inference_mode(use: Use) -> None:
    with torch.inference_mode():
        value = torch.ones(LARGE)
    use(value, lambda: freed(value))


TENSORS["freed later"] = _freed_later
TENSORS["cut later"] = _cut_later
TENSORS["inference tensor that is freed later"] = _freed_later_in_inference_mode


# Of tensors that consist of others.


@tensor("sparse with freed values", GIVEN_BACK)
def _() -> Tensor:
    value = torch.eye(512).expand(512, 512).to_sparse()
    freed(value._values())
    return value


@tensor("CSR with freed values", GIVEN_BACK)
def _() -> Tensor:
    value = torch.eye(512).to_sparse_csr()
    freed(value.values())
    return value


@tensor("nested with freed values", GIVEN_BACK)
def _() -> Tensor:
    return freed(torch.nested.nested_tensor([torch.ones(LARGE), torch.ones(LARGE)]))


@tensor("jagged with freed values", GIVEN_BACK)
def _() -> Tensor:
    parts = [torch.ones(LARGE), torch.ones(LARGE)]
    value = torch.nested.nested_tensor(parts, layout=torch.jagged)
    freed(value.values())
    return value


@tensor("quantized and freed", GIVEN_BACK)
def _() -> Tensor:
    return freed(torch.quantize_per_tensor(torch.ones(LARGE), 0.1, 0, torch.qint8))


class Wrapper(Tensor):
    """A tensor around another, as torchao's are: it has no memory of its own."""

    content: Any

    @staticmethod
    def __new__(cls, content: Tensor) -> Any:
        return Tensor._make_wrapper_subclass(cls, content.shape, dtype=content.dtype)

    def __init__(self, content: Tensor) -> None:
        self.content = content

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):  # type: ignore[override]
        plain = [each.content if isinstance(each, Wrapper) else each for each in args]
        result = function(*plain, **(kwargs or {}))
        return cls(result) if isinstance(result, Tensor) else result


class Slotted(Wrapper):
    """The same with what is inside in a slot."""

    __slots__ = ("content",)


tensor("wrapper")(lambda: Wrapper(torch.ones(2, 3)))
tensor("wrapper of a freed one", GIVEN_BACK)(lambda: Wrapper(freed(torch.ones(LARGE))))
tensor("wrapper of wrapper of freed", GIVEN_BACK)(
    lambda: Wrapper(Slotted(freed(torch.ones(LARGE))))
)


def _distributed(is_freed: bool) -> Any:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    local = torch.ones(LARGE)
    dtensors = distributed_tensors()
    mesh = DeviceMesh("cpu", [0])
    value = dtensors.DTensor.from_local(local, mesh, [dtensors.Replicate()], run_check=False)
    if is_freed:
        freed(local)
    return value


tensor("DTensor")(lambda: _distributed(False))
tensor("DTensor with a freed shard", GIVEN_BACK)(lambda: _distributed(True))


# Another's memory.

_MAPPED = 1 << 28
"""So much that nothing else takes all of its place when it is closed."""


@tensor("over closed shared memory", GONE)
def _() -> Tensor:
    memory = SharedMemory(create=True, size=_MAPPED)
    value = torch.from_numpy(np.ndarray((_MAPPED,), np.uint8, buffer=memory.buf))
    memory.close()
    memory.unlink()
    return value


def _mapped() -> tuple[Any, Tensor]:
    mapping = mmap.mmap(-1, _MAPPED)
    return mapping, torch.from_numpy(np.ndarray((_MAPPED // 4,), np.float32, buffer=mapping))


@tensor("over a closed mapping", GONE)
def _() -> Tensor:
    mapping, value = _mapped()
    mapping.close()
    return value


@tensor("scalar over a closed mapping", GONE)
def _() -> Tensor:
    mapping, value = _mapped()
    mapping.close()
    return value[7]


@tensor("over a closed mapping by DLPack", GONE)
def _() -> Tensor:
    mapping = mmap.mmap(-1, _MAPPED)
    array = np.ndarray((_MAPPED // 4,), np.float32, buffer=mapping)
    value = torch.utils.dlpack.from_dlpack(array)
    mapping.close()
    return value


def _closed_later(use: Use) -> None:
    mapping, value = _mapped()
    use(value, mapping.close)


TENSORS["over a mapping that is closed later"] = _closed_later


@tensor("file that was cut", GONE)
def _() -> Tensor:
    with open("cut", "wb") as file:
        file.truncate(1 << 20)
    value = torch.from_file("cut", size=1 << 18)
    os.truncate("cut", 4096)
    return value


def _cut_file_later(use: Use) -> None:
    with open("cut later", "wb") as file:
        file.truncate(1 << 20)
    value = torch.from_file("cut later", shared=True, size=1 << 18)
    use(value, lambda: os.truncate("cut later", 4096))


TENSORS["file that is cut later"] = _cut_file_later
tensor("over NumPy's memory")(lambda: torch.from_numpy(np.ones((3, 4))))
tensor("over a buffer")(lambda: torch.frombuffer(bytearray(64), dtype=torch.float32))
tensor("in shared memory")(lambda: torch.ones(2, 3).share_memory_())
tensor("over an array for reading")(lambda: torch.from_numpy(np.broadcast_to(1.0, (2, 3))))


# Without data, or with data of another kind.

tensor("meta")(lambda: torch.ones(2, 3, device="meta"))
tensor("zero-size")(lambda: torch.ones(2, 0, 3))
tensor("expanded")(lambda: torch.ones(1, 3).expand(4, 3))
tensor("overlapping strides")(lambda: torch.arange(9.0).as_strided((4, 3), (1, 2)))
tensor("conjugate view")(lambda: torch.tensor([1 + 2j, 3j]).conj())
tensor("negative view")(lambda: torch.tensor([1 + 2j, 3j]).conj().imag)
tensor("zero tensor")(lambda: torch._efficientzerotensor((2, 3)))
tensor("complex32")(lambda: torch.ones(2, 3, dtype=torch.complex32))
tensor("inference tensor")(lambda: torch.inference_mode()(lambda: torch.ones(2, 3))())
tensor("uninitialized parameter")(nn.UninitializedParameter)
tensor("uninitialized buffer")(nn.UninitializedBuffer)
tensor("sparse")(lambda: torch.eye(3).to_sparse())
tensor("uncoalesced sparse")(lambda: _uncoalesced())
tensor("sparse without values")(lambda: torch.zeros(3, 4).to_sparse())
tensor("CSR")(lambda: torch.eye(4).to_sparse_csr())
tensor("CSC")(lambda: torch.eye(4).to_sparse_csc())
tensor("BSC")(lambda: torch.eye(4).to_sparse_bsc((2, 2)))
tensor("BSR")(lambda: torch.eye(4).to_sparse_bsr((2, 2)))
tensor("nested")(lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
tensor("jagged")(lambda: torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged))
tensor("quantized")(lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8))
tensor("quantized by channel")(
    lambda: torch.quantize_per_channel(
        torch.ones(2, 2), torch.ones(2), torch.zeros(2), 0, torch.quint8
    )
)
tensor("MKL-DNN")(lambda: torch.ones(4, 4).to_mkldnn())
tensor("as a subclass")(lambda: torch.ones(3).as_subclass(type("Marked", (Tensor,), {})))
tensor("subclass with data")(
    lambda: Tensor._make_subclass(type("Made", (Tensor,), {}), torch.ones(3))
)
tensor("gradient that is not there")(lambda: torch.ones(3, requires_grad=True).mul(2))
tensor("masked")(
    lambda: torch.masked.masked_tensor(torch.ones(3), torch.tensor([True, False, True]))
)
tensor("fake")(lambda: _fake(torch.ones(2, 3)))
tensor("functional")(lambda: torch._to_functional_tensor(torch.ones(2, 3)))
if hasattr(torch, "_lazy_clone"):
    tensor("lazily cloned")(lambda: torch._lazy_clone(torch.ones(2, 3)))


def _uncoalesced() -> Tensor:
    return torch.sparse_coo_tensor(torch.zeros(1, 2), torch.ones(2), (3,))


def _fake(of: Tensor) -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().from_tensor(of)


def _with_forward_gradient(use: Use) -> None:
    with forward_ad.dual_level():
        use(forward_ad.make_dual(torch.ones(3), torch.ones(3)), nothing)


TENSORS["forward gradient"] = _with_forward_gradient


# Arrays.


@tensor("array over closed shared memory")
def _() -> Any:
    memory = SharedMemory(create=True, size=_MAPPED)
    value = np.ndarray((_MAPPED,), np.uint8, buffer=memory.buf)
    memory.close()
    memory.unlink()
    return value


def _mapped_array(dtype: Any) -> tuple[Any, Any]:
    mapping = mmap.mmap(-1, _MAPPED)
    return mapping, np.ndarray((_MAPPED // 8,), dtype, buffer=mapping)


@tensor("array over a closed mapping")
def _() -> Any:
    mapping, value = _mapped_array(np.float64)
    mapping.close()
    return value.reshape(2, -1)[:, ::-1]


@tensor("record over a closed mapping")
def _() -> Any:
    mapping, value = _mapped_array([("a", "i4"), ("b", "f4")])
    record = value[3]
    mapping.close()
    return record


def _array_closed_later(use: Use) -> None:
    mapping, value = _mapped_array(np.float64)
    use(value, mapping.close)


TENSORS["array over a mapping that is closed later"] = _array_closed_later


@tensor("array over a file that was cut")
def _() -> Any:
    with open("cut array", "wb") as file:
        file.truncate(1 << 20)
    value = np.memmap("cut array", np.float32, "r")
    os.truncate("cut array", 4096)
    return value


tensor("array that goes backwards")(lambda: np.arange(12.0).reshape(3, 4)[::-1, ::-2])
tensor("array of objects")(lambda: np.array([{}, None], dtype=object))
tensor("array without items")(lambda: np.ones((2, 0)))
tensor("scalar of NumPy's")(lambda: np.float32(2))


def _of_dtype(dtype: torch.dtype) -> Callable[[], Tensor]:
    return lambda: torch.zeros(64, dtype=torch.uint8).view(dtype).reshape(2, -1)


for _name in (
    *("bfloat16", "bits1x8", "bits16", "float4_e2m1fn_x2"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("int1", "int4", "uint1", "uint4", "uint16", "uint64"),
):
    if hasattr(torch, _name):
        tensor(_name)(_of_dtype(getattr(torch, _name)))


# Of function transforms: used within, and after they are over.


def _within(transform: Callable[..., Any], of: Callable[[], Tensor]) -> Make:
    def make(use: Use) -> None:
        def function(x: Tensor) -> Tensor:
            use(x, nothing)
            return x.sum()

        transform(function)(of())

    return make


def _after(transform: Callable[..., Any], of: Callable[[], Tensor]) -> Make:
    def make(use: Use) -> None:
        kept: list[Tensor] = []

        def function(x: Tensor) -> Tensor:
            kept.append(x)
            return x.sum()

        transform(function)(of())
        use(kept[0], nothing)

    return make


def _jvp(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: torch.func.jvp(function, (x,), (x,))


_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "vmap": torch.vmap,
    "grad": torch.func.grad,
    "jvp": _jvp,
    "functionalize": torch.func.functionalize,
    "vmap of grad": lambda function: torch.vmap(torch.func.grad(function)),
}
for _name, _transform in _TRANSFORMS.items():
    TENSORS[f"within {_name}"] = _within(_transform, lambda: torch.ones(3, 2))
    TENSORS[f"after {_name}"] = _after(_transform, lambda: torch.ones(3, 2))
