"""Rounds as bytes and back.

By pickle: values are tensors, containers and objects of the program's own. A process that
can write to the job's key-value store can thereby run code in it. That is so with torch alone:
torchrun's own rendezvous reads pickles from the same store. Others must not reach the job's ports.

Each value is pickled by itself, so that only values that cannot be pickled are lost. Plain tensors
go as contiguous bytes: torch's own pickling is slow for many small tensors, includes whole
storages, and restores tensors to their original device.
"""

from __future__ import annotations

import ctypes
import io
import pickle
from collections.abc import Callable
from typing import Any

import torch

from shapetrace._asynchronous import is_asynchronous
from shapetrace.capture.copies import (
    CannotCopyError,
    lost_memory,
    refuse_lost_memory,
    steady,
    unseen_among,
)
from shapetrace.capture.results import ResultEntry, Round
from shapetrace.inspecting.stable_reads import MemoryGoneError

Problem = tuple[str, str]
"""A problem in one line, and its key, so that it is not reported for every value."""


def pack(round: Round) -> tuple[list[bytes | memoryview], list[Problem]]:
    """A round as bytes, in pieces, without values that could not be packed.

    The first piece is the length of the second, which is everything but the tensors, which follow.
    """
    problems: list[Problem] = []
    pieces: list[bytes | memoryview] = []

    def attempt(value: object) -> tuple[bytes, list[int]]:
        packed, tensors = io.BytesIO(), list[pickle.PickleBuffer]()
        _Pickler(packed, protocol=5, buffer_callback=tensors.append).dump(value)
        views = [tensor.raw() for tensor in tensors]
        pieces.extend(views)
        return packed.getvalue(), [len(view) for view in views]

    # No mode, of the program's or ours, notices this.
    with unseen_among(value for entry in round.entries.values() for value in entry.values):
        entries = {
            name: _mapped(name, entry, attempt, "sent to rank 0", round.rank, problems)
            for name, entry in round.entries.items()
        }
    plain = {name: (entry.iterations, entry.ranks, entry.values) for name, entry in entries.items()}
    first = pickle.dumps((round.number, round.rank, round.mode, plain), protocol=5)
    return [len(first).to_bytes(8, "big"), first, *pieces], problems


def unpack(packed: memoryview) -> tuple[Round, list[Problem]]:
    """Unpack a round, without values whose class rank 0 does not know."""
    problems: list[Problem] = []
    place = 8 + int.from_bytes(packed[:8], "big")
    number, rank, mode, plain = pickle.loads(packed[8:place])

    def attempt(value: tuple[bytes, list[int]]) -> Any:
        nonlocal place
        # Copied: one tensor that is kept must not keep all others of its round.
        tensors = []
        for length in value[1]:
            tensors.append(bytearray(packed[place : place + length]))
            place += length
        return pickle.loads(value[0], buffers=tensors)

    entries = {
        name: _mapped(name, ResultEntry(*entry), attempt, "made again on rank 0", rank, problems)
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
    """The entry with each value mapped, without values for which that fails."""
    values: list[Any] = []
    left_out: set[int] = set()
    for index, value in enumerate(entry.values):
        try:
            values.append(function(value))
        except Exception as error:
            if is_asynchronous(error):
                raise
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
    """The iterations or ranks of the remaining values; those of a stack go with the stack."""
    if not left_out:
        return list(numbers)
    if len(left_out) == values:
        return []
    if len(numbers) != values:
        return list(numbers)
    return [number for index, number in enumerate(numbers) if index not in left_out]


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if (
            type(obj) in (torch.Tensor, torch.nn.Parameter)
            and obj.layout == torch.strided
            and not obj.is_quantized
            and not obj.is_meta
        ):
            tensor: torch.Tensor = obj
            data = pickle.PickleBuffer(_bytes_of(tensor))
            return _tensor, (tensor.dtype, tuple(tensor.shape), data)
        refuse_lost_memory(obj)
        return NotImplemented


def _bytes_of(tensor: torch.Tensor) -> bytearray:
    """The bytes of a tensor, without NumPy, which is optional for torch."""
    if lost := lost_memory(tensor):
        raise CannotCopyError(lost)
    try:
        plain = steady(tensor)
    except MemoryGoneError as error:
        raise CannotCopyError(str(error)) from None
    if tensor._is_zerotensor():
        plain = tensor.clone()  # It has no memory.
    elif tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg():
        plain = plain.detach().cpu().resolve_conj().resolve_neg()
    if not plain.is_contiguous():
        plain = plain.detach().contiguous()
    if plain.nbytes == 0:
        return bytearray()
    return bytearray((ctypes.c_char * plain.nbytes).from_address(plain.data_ptr()))


def _tensor(dtype: torch.dtype, shape: tuple[int, ...], data: bytearray) -> torch.Tensor:
    # Made as bytes: torch warns where some dtypes are made.
    octet = torch.uint8
    flat = torch.frombuffer(data, dtype=octet) if data else torch.empty(0, dtype=octet)
    return flat.view(dtype).reshape(shape)
