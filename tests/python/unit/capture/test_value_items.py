"""What is found in values along a path, without running code of the program's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch

from shapetrace.capture.value_items import MISSING, item, items


class Row(list[Any]):
    """Has code of its own for what lists do."""

    def __getitem__(self, index: Any) -> Any:
        raise RuntimeError

    def __iter__(self) -> Any:
        raise RuntimeError


class Pair(NamedTuple):
    one: int
    other: int


class OwnPair(Pair):
    def __getitem__(self, index: Any) -> Any:
        raise RuntimeError

    def __iter__(self) -> Any:
        raise RuntimeError


class Slots:
    __slots__ = ("__dict__", "_hidden", "filled", "unset")

    def __init__(self) -> None:
        self.filled = 1
        self._hidden = 2
        self.more = 3

    @property
    def unset_too(self) -> int:
        raise RuntimeError


@dataclass
class Batch:
    mask: int
    _hidden: int = 0

    @property
    def size(self) -> int:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "inside"),
    [
        (Row([1, 2]), {"0": 1, "1": 2}),
        (Pair(1, 2), {"one": 1, "other": 2}),
        (OwnPair(1, 2), {"one": 1, "other": 2}),
        (torch.ones(2, 3).max(1), {"values": None, "indices": None}),
        (Slots(), {"filled": 1, "more": 3}),
        (Batch(1), {"mask": 1}),
        ({"a": 1, 2: 3}, {"a": 1, "2": 3}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_all_that_is_inside_is_found(value: Any, inside: dict[str, Any]) -> None:
    found = dict(items(value))
    assert found.keys() == inside.keys()
    for name, known in inside.items():
        assert item(value, name) is found[name]
        assert known is None or found[name] == known


@pytest.mark.parametrize(
    ("value", "name"),
    [(Row([1]), "1"), (Slots(), "unset"), (Slots(), "unset_too"), (Batch(1), "size"), (1, "real")],
)
def test_what_is_not_there_or_would_be_computed_is_missing(value: Any, name: str) -> None:
    assert item(value, name) is MISSING
