"""The fingerprint of one tensor: right, the same however it lies, and nothing where it must not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from shapetrace.events.fingerprint import Fingerprint, distance
from shapetrace.recorder.values import fingerprints as all_fingerprints
from shapetrace.recorder.values import looking, moments, places
from shapetrace.recorder.values.fingerprints import Fingerprints
from shapetrace.recorder.values.looking import Awaited
from shapetrace.recorder.values.readable import unseen
from tests.support.torches import distributed_tensors, needs

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
EIGHT_BITS = [
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
SIZES = [(), (1,), (7,), (8, 8), (3, 341), (2, 16, 64), (5, 8192), (1100, 1000)]


def made(tensor: Any) -> Fingerprint:
    (raw,) = Fingerprints().look(tensor)
    assert isinstance(raw, tuple)
    return Fingerprint(*raw)


def on_device(tensor: Any) -> Fingerprint:
    """The same, in the way of a device that nobody waits for."""

    def look(plain: Any) -> Any:
        if plain.dtype.is_complex:
            plain = torch.view_as_real(plain)
        return looking._look_on_device(plain, str(tensor.dtype).removeprefix("torch."))

    awaited = unseen(look, tensor)
    assert isinstance(awaited, Awaited)
    integers = [] if awaited.integers is None else awaited.integers.tolist()
    return Fingerprint(*awaited.raw(awaited.floats.tolist(), integers))


def numbers_of(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    numbers = torch.randn(shape, generator=generator) * 10
    if dtype is torch.bool:
        return numbers > 0
    if dtype in UNSIGNED:
        numbers = numbers.abs()
    return numbers.to(dtype)


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *EIGHT_BITS, *WHOLE, *UNSIGNED], ids=str)
def test_the_moments_are_those_of_the_numbers(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tensor = numbers_of(shape, dtype)
    exact = tensor.to(torch.float64)
    found = made(tensor)
    assert (found.dtype, found.count) == (str(dtype).removeprefix("torch."), exact.numel())
    size = exact.square().mean().sqrt().item()
    assert found.mean == pytest.approx(exact.mean().item(), rel=1e-6, abs=1e-7 * size)
    assert found.root_mean_square == pytest.approx(size, rel=1e-6)
    assert (found.low, found.high) == (exact.min().item(), exact.max().item())
    assert (found.nan, found.positive_infinity, found.negative_infinity) == (0, 0, 0)
    flat = exact.reshape(-1)
    expected = [flat[place].item() for place in places.places_of(flat.numel())]
    assert [float(sample) for sample in found.samples] == expected
    assert (found.checksum is None) == dtype.is_floating_point
    assert found.looked_at is None
    assert found.note is None


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float8_e5m2, *WHOLE, torch.complex64], ids=str)
def test_however_a_tensor_lies_in_memory(dtype: torch.dtype) -> None:
    tensor = numbers_of((6, 40, 50), torch.float32).to(dtype)
    expected = made(tensor)
    wide = torch.zeros(6, 40, 103, dtype=dtype)
    wide[:, :, 1:101:2] = tensor
    for alike in (
        tensor.permute(2, 0, 1).contiguous().permute(1, 2, 0),
        wide[:, :, 1:101:2],
        tensor.reshape(12, 1000),
        tensor.reshape(-1),
        tensor.clone().requires_grad_(dtype.is_floating_point),
    ):
        assert made(alike) == expected


def test_another_order_has_the_same_moments_and_other_samples() -> None:
    tensor = numbers_of((512, 512), torch.float32)
    apart = distance(made(tensor), made(tensor.t()))
    assert apart.verdict == "rearranged"
    for rows in (8, 64, 511):
        square = numbers_of((rows, rows), torch.float32)
        assert distance(made(square), made(square.t())).verdict == "rearranged"


@pytest.mark.parametrize("shape", [(3, 5), (1, 1000, 1000), (7, 70_000)], ids=str)
def test_numbers_that_are_there_many_times(shape: tuple[int, ...]) -> None:
    one = numbers_of((shape[0], *[1] * (len(shape) - 1)), torch.float32)
    repeated = one.expand(shape)
    apart = distance(made(repeated), made(repeated.contiguous()))
    assert apart.relative < 1e-6
    assert made(repeated).samples == made(repeated.contiguous()).samples


def test_tensors_too_large_to_be_put_in_order_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = numbers_of((700, 900), torch.float32).t()
    expected = made(tensor)
    monkeypatch.setattr(moments, "MOST_COPIED", 10_000)
    found = made(tensor)
    assert distance(found, expected).relative < 1e-7
    assert found.samples == expected.samples


def test_the_largest_are_judged_by_some_of_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_READ", 100_000)
    monkeypatch.setattr(looking, "MOST_SPREAD", 20_000)
    tensor = numbers_of((700, 900), torch.float32)
    whole = tensor.double()
    found = made(tensor)
    assert found.count == 630_000
    assert found.looked_at is not None
    assert 20_000 <= found.looked_at <= 23_000
    assert found.root_mean_square == pytest.approx(whole.square().mean().sqrt().item(), rel=0.05)
    assert made(tensor.t().contiguous().t()) == found
    assert distance(on_device(tensor), found).relative < 1e-7


def test_the_number_of_threads_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [numbers_of((1300, 1000), dtype) for dtype in (*FLOATS, torch.int64, torch.bool)]
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(list(map(made, tensors)))
        monkeypatch.setattr(moments, "has_forked", lambda: True)
        results.append(list(map(made, tensors)))
    finally:
        torch.set_num_threads(before)
    assert all(each == results[0] for each in results)


@pytest.mark.parametrize("size", [5, 1000, 9000, 50_001])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_numbers_that_are_not_finite(size: int, dtype: torch.dtype) -> None:
    tensor = numbers_of((size,), dtype)
    tensor[1], tensor[2], tensor[size - 1] = math.nan, -math.inf, math.inf
    finite = tensor.double()[tensor.isfinite()]
    found = made(tensor)
    assert (found.nan, found.positive_infinity, found.negative_infinity) == (1, 1, 1)
    assert found.mean == pytest.approx(finite.mean().item(), rel=1e-5)
    assert (found.low, found.high) == (finite.min().item(), finite.max().item())
    assert distance(on_device(tensor), found).relative < 1e-7
    nothing = made(torch.full((size,), -math.inf))
    assert (nothing.mean, nothing.low, nothing.negative_infinity) == (None, None, size)
    assert set(nothing.samples) == {"-inf"}
    assert distance(on_device(torch.full((size,), -math.inf)), nothing).verdict == "equal"


@pytest.mark.parametrize("size", [5, 50_000])
def test_numbers_whose_squares_are_too_large(size: int) -> None:
    masked = numbers_of((size,), torch.float32)
    masked[3] = torch.finfo(torch.float32).min
    found = made(masked)
    low = float(torch.finfo(torch.float32).min)
    assert found.low == low
    assert found.root_mean_square == pytest.approx(-low / math.sqrt(size))
    assert found.nan == found.negative_infinity == 0
    largest = made(torch.full((size,), 1e300, dtype=torch.float64))
    assert (largest.high, largest.root_mean_square) == (1e300, None)


def test_whole_numbers_are_exact() -> None:
    ends = torch.tensor([2**63 - 1, -(2**63), 2**53 + 1])
    found = made(ends)
    assert found.samples == (2**63 - 1, -(2**63), 2**53 + 1)
    assert distance(found, made(ends.flip(0))).verdict == "rearranged"
    changed = ends.clone()
    changed[2] -= 1
    assert distance(found, made(changed)).where == "checksum"
    large = numbers_of((1100, 1000), torch.int64)
    changed = large.clone()
    changed[700, 700] += 1
    assert distance(made(large), made(changed)).where == "checksum"
    assert made(large).checksum == made(large.t()).checksum == on_device(large).checksum


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_complex_numbers_count_twice() -> None:
    tensor = torch.complex(numbers_of((9, 11), torch.float32), torch.zeros(9, 11))
    found = made(tensor)
    assert (found.dtype, found.count) == ("complex64", 198)
    turned = made((tensor * 1j).conj())
    assert (turned.low, turned.high) == (-found.high, -found.low)  # type: ignore[operator]
    assert made(torch.imag((tensor * 1j).conj())).count == 99
    assert made(tensor.to(torch.complex32)).count == 198


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)], ids=str)
def test_nothing_has_no_moments(shape: tuple[int, ...]) -> None:
    found = made(torch.empty(shape))
    assert (found.count, found.mean, found.samples, found.note) == (0, None, (), None)


@pytest.mark.parametrize("shape", SIZES[1:], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, torch.complex64], ids=str)
def test_a_device_that_nobody_waits_for_tells_the_same(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    tensor = numbers_of(shape, torch.float32).to(dtype)
    for alike in (tensor, tensor.t() if tensor.dim() == 2 else tensor.unsqueeze(0)):
        apart = distance(on_device(alike), made(alike))
        assert apart.relative < 1e-6
        assert apart.verdict in ("equal", "close")


def test_what_comes_from_devices_finds_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Fingerprints()
    tensors = [numbers_of((9, size), torch.float32) for size in range(1, 30)]
    tensors[4:7] = [tensor.to(torch.int64) for tensor in tensors[4:7]]
    expected = list(map(made, tensors))
    look = looking._look

    def there(plain: Tensor, dtype: str) -> Any:
        is_there = plain.numel() % 3 != 0 or plain.numel() > 30
        return looking._look_on_device(plain, dtype) if is_there else look(plain, dtype)

    monkeypatch.setattr(looking, "_look", there)
    for number, tensor in enumerate(tensors):
        kept.add(number % 2, kept.look([tensor, {"key": tensor}]), [])
    kept.sort()
    for number, fingerprint in enumerate(expected):
        row = kept.rows_of(number % 2, 100)[number // 2]
        for raw in row[2]:
            assert distance(Fingerprint(*raw), fingerprint).relative < 1e-7


def test_a_device_that_has_failed_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Fingerprints()
    monkeypatch.setattr(looking, "_look", looking._look_on_device)
    kept.add(1, kept.look(torch.ones(3)), [])

    def fail(*_: object) -> Any:
        raise RuntimeError("device-side assert")

    monkeypatch.setattr(all_fingerprints, "_read", fail)
    kept.sort()
    ((_, _, (raw,), _, _),) = kept.rows_of(1, 1)
    found = Fingerprint(*raw)
    assert (found.dtype, found.count) == ("float32", 3)
    assert found.note == "its device does not answer: RuntimeError"


class Wrapped(Tensor):
    """A tensor without data of its own."""

    @staticmethod
    def __new__(cls, *_: object) -> Any:
        return Tensor._make_wrapper_subclass(cls, (2, 3))

    @classmethod
    def __torch_dispatch__(cls, *_: object) -> Any:
        """Fail: nobody may ask it."""
        raise AssertionError("asked")


def _freed() -> Tensor:
    tensor = torch.ones(100)
    tensor.untyped_storage().resize_(0)
    return tensor


def _fake() -> Tensor:
    with FakeTensorMode() as mode:
        return mode.from_tensor(torch.ones(2, 3))


def _half_bytes() -> Tensor:
    needs("torch.float4_e2m1fn_x2")
    return torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: torch.ones(2, 3, device="meta"), "no data on meta"),
        (_fake, "no data while a program is traced"),
        (lambda: torch.ones(2, 3).to_sparse(), "sparse_coo"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
        (
            lambda: torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged),
            "NestedTensor keeps its data in its own way",
        ),
        (lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8), "quantized"),
        (Wrapped, "Wrapped keeps its data in its own way"),
        (_freed, "its memory was given back"),
        (nn.UninitializedParameter, "no data before the first call"),
        (
            _half_bytes,
            "torch does not compute with it: NotImplementedError",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:.*quantize_per_tensor.*")
def test_what_cannot_be_read_says_why(make: Callable[[], Any], reason: str) -> None:
    tensor = make()
    found = made(tensor)
    assert (found.note, found.mean, found.samples) == (reason, None, ())
    assert found.dtype == str(tensor.dtype).removeprefix("torch.")


@pytest.mark.filterwarnings("ignore:DTensor random operators may not have complete support")
def test_of_a_distributed_tensor_it_is_the_shard_that_is_here(single_process_group: None) -> None:
    from torch.distributed.device_mesh import DeviceMesh

    dtensors = distributed_tensors()
    whole = numbers_of((4, 6), torch.float32)
    spread = dtensors.distribute_tensor(whole, DeviceMesh("cpu", [0]), [dtensors.Shard(0)])
    # Before torch 2.9, a group that talks to nobody leaves what it scatters as it was.
    assert made(spread) == made(spread.to_local())


def test_within_a_function_transform_nothing_is_read() -> None:
    seen: list[Fingerprint] = []

    def function(row: Tensor) -> Tensor:
        seen.append(made(row))
        return row * 2

    torch.vmap(function)(torch.ones(3, 2))
    torch.func.grad(lambda row: function(row).sum())(torch.ones(2))
    assert [each.note for each in seen] == ["within a function transform such as vmap"] * 2


def test_a_class_of_the_programs_own_is_not_asked() -> None:
    class Own(Tensor):
        @classmethod
        def __torch_function__(cls, *_: object, **__: object) -> Any:
            raise AssertionError("asked")

        @property
        def dtype(self) -> torch.dtype:  # type: ignore[override]
            raise AssertionError("asked")

        def numel(self) -> int:
            raise AssertionError("asked")

    plain = numbers_of((4, 5), torch.float32)
    assert made(plain.as_subclass(Own)) == made(plain)
    assert made(nn.Parameter(plain)) == made(plain)


@pytest.mark.parametrize("inference", [False, True])
def test_nothing_of_it_is_noticed(inference: bool) -> None:
    with torch.inference_mode(inference):
        tensor = numbers_of((40, 300), torch.float32).clone()
        chance = torch.get_rng_state()
        tensor.requires_grad_(not inference)
        version = None if inference else tensor._version
        bits = tensor.detach().clone()
        with torch.autocast("cpu"), torch.device("meta"):
            found = made(tensor)
            assert torch.is_inference_mode_enabled() == inference
        assert found.note is None
        assert tensor.grad_fn is None
        assert torch.equal(tensor, bits)
        assert torch.equal(torch.get_rng_state(), chance)
        assert version is None or tensor._version == version
    assert made(bits) == found
