"""Which numbers of a tensor are looked at by themselves: at places that their count decides."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from shapetrace._asynchronous import is_asynchronous

SAMPLES: Final = 8

_GOLDEN: Final = 0.6180339887498949
"""Its multiples lie on no diagonal and in no column of any tensor, as those of a step that divides
the count would."""

_MOST_KNOWN: Final = 4096

_BITS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_known: dict[tuple[int, ...], tuple[Tensor, ...]] = {}
"""By shape, where the samples are, dimension by dimension."""


def forget_places() -> None:
    """Let go of where the samples are; that is made anew when it is needed."""
    _known.clear()


def places_of(count: int) -> list[int]:
    """The places, if all numbers stood in a row."""
    if count <= SAMPLES:
        return list(range(count))
    return sorted(int(number * _GOLDEN % 1 * count) for number in range(1, SAMPLES + 1))


def samples_of(tensor: Any) -> list[Any]:
    """The numbers at these places; of a tensor on the CPU."""
    shape: tuple[int, ...] = tuple(tensor.shape)
    count: int = tensor.numel()
    if count <= SAMPLES:
        few: list[Any] = tensor.reshape(-1).tolist()
        return few
    if tensor.is_contiguous():
        tensor, shape = tensor.view(-1), (count,)
    indices = _known.get(shape)
    if indices is None:
        indices = _indices(places_of(count), shape)
        if len(_known) < _MOST_KNOWN:
            _known[shape] = indices
    samples: list[Any] = _at(tensor, indices).tolist()
    return samples


def samples_on_device(tensor: Tensor) -> Tensor:
    """Samples as a tensor on the tensor's own device, without a synchronization or a copy to it."""
    places = places_of(tensor.numel())
    if not places:
        return tensor.reshape(-1)
    strides = tensor.stride()
    offset = tensor.storage_offset()
    single = []
    for place in places:
        steps = zip(_unravelled(place, tuple(tensor.shape)), strides, strict=True)
        where = offset + sum(step * stride for step, stride in steps)
        single.append(tensor.as_strided((1,), (1,), where))
    return torch.cat(single)


def spread(tensor: Tensor, count: int) -> Tensor:
    """So many numbers that are spread over a tensor that has many more."""
    step = tensor.numel() // count | 1
    places = torch.arange(0, tensor.numel(), step, device=tensor.device)
    return _at(tensor, _indices(places, tuple(tensor.shape)))


def _at(tensor: Tensor, indices: tuple[Tensor, ...]) -> Tensor:
    """The numbers at some places; as bits where torch, as before 2.9, does not index the dtype."""
    try:
        return tensor[indices]
    except RuntimeError as error:
        if is_asynchronous(error):
            raise
        return tensor.view(_BITS[tensor.element_size()])[indices].view(tensor.dtype)


def _indices(places: Any, shape: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Places in a row as those in each dimension."""
    left = torch.as_tensor(places, dtype=torch.int64)
    indices: list[Tensor] = []
    for size in reversed(shape):
        indices.append(left % size)
        left = left // size
    return tuple(reversed(indices))


def _unravelled(place: int, shape: tuple[int, ...]) -> list[int]:
    steps: list[int] = []
    for size in reversed(shape):
        place, step = divmod(place, size)
        steps.append(step)
    return steps[::-1]
