"""Rounds as bytes and back.

By pickle: values are tensors, containers and objects of the program's own. That whoever can write
to the job's key-value store can thereby run code in it is so with torch alone: torchrun's own
rendezvous reads pickles from the same store. Whoever is not of the job must not reach its ports.

Each value is pickled by itself, so that one that cannot be is left out alone. Plain tensors go as
their bytes, contiguous, without the storage that they are a view of: torch's own way is slow for
many small ones, and takes whole storages along, and to the device that they came from.
"""

from __future__ import annotations

import ctypes
import io
import pickle
from collections.abc import Callable
from typing import Any

import torch

from shapetrace.capture.results import ResultEntry, Round

Problem = tuple[str, str]
"""What went wrong, in one line, and what identifies it: the same is not told for every value."""


def pack(round: Round) -> tuple[bytes, list[Problem]]:
    """A round as bytes; what of it could not be packed is left out."""
    problems: list[Problem] = []

    def attempt(value: object) -> bytes:
        packed = io.BytesIO()
        _Pickler(packed, protocol=5).dump(value)
        return packed.getvalue()

    entries = {
        name: _mapped(name, entry, attempt, "sent to rank 0", round.rank, problems)
        for name, entry in round.entries.items()
    }
    plain = {name: (entry.iterations, entry.ranks, entry.values) for name, entry in entries.items()}
    return pickle.dumps((round.number, round.rank, round.mode, plain), protocol=5), problems


def unpack(packed: bytes) -> tuple[Round, list[Problem]]:
    """The round again; values of which rank 0 does not know the class are left out."""
    problems: list[Problem] = []
    number, rank, mode, plain = pickle.loads(packed)
    entries = {
        name: _mapped(
            name, ResultEntry(*entry), pickle.loads, "made again on rank 0", rank, problems
        )
        for name, entry in plain.items()
    }
    return Round(number, rank, mode, entries), problems


def _mapped(
    name: str,
    entry: ResultEntry,
    function: Callable[[Any], Any],
    doing: str,
    rank: int,
    problems: list[Problem],
) -> ResultEntry:
    """The entry with each value mapped, without those where that fails."""
    values: list[Any] = []
    left_out: set[int] = set()
    for index, value in enumerate(entry.values):
        try:
            values.append(function(value))
        except Exception as error:
            left_out.add(index)
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            text = (
                f"rank {rank}: values of {name!r} were left out, they cannot be {doing} ({reason})"
            )
            problems.append((text, f"{rank} {name} {doing} {type(error).__name__}"))
    return ResultEntry(
        _without(entry.iterations, left_out, len(entry.values)),
        _without(entry.ranks, left_out, len(entry.values)),
        values,
    )


def _without(numbers: list[int], left_out: set[int], values: int) -> list[int]:
    """The numbers of the values that are left; those of a stack go with the stack."""
    if not left_out:
        return list(numbers)
    if len(left_out) == values:
        return []
    if len(numbers) != values:
        return list(numbers)
    return [number for index, number in enumerate(numbers) if index not in left_out]


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        if (
            type(obj) in (torch.Tensor, torch.nn.Parameter)
            and obj.layout == torch.strided  # type: ignore[attr-defined]
            and not obj.is_quantized  # type: ignore[attr-defined]
            and not obj.is_meta  # type: ignore[attr-defined]
        ):
            tensor: torch.Tensor = obj  # type: ignore[assignment]
            return _tensor, (tensor.dtype, tuple(tensor.shape), _bytes_of(tensor))
        return NotImplemented


def _bytes_of(tensor: torch.Tensor) -> bytearray:
    """What a tensor holds. Without NumPy, which torch does not need either."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if plain.nbytes == 0:
        return bytearray()
    return bytearray((ctypes.c_char * plain.nbytes).from_address(plain.data_ptr()))


def _tensor(dtype: torch.dtype, shape: tuple[int, ...], data: bytearray) -> torch.Tensor:
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(shape)
