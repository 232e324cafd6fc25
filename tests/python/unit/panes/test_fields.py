"""What is below dataclasses, named tuples and dictionaries, found without running their code."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Any

import torch
from torch import nn
from transformers.modeling_outputs import CausalLMOutputWithPast

from shapetrace.panes import ChildEntry, children, may_open, own_entries
from shapetrace.panes.child_entries import ChildGroup, Text
from tests.python.unit.panes.values import Batch, Pair, Plain, Slotted
from tests.python.unit.panes.watching import opened, unnoticed


@dataclasses.dataclass
class Careful:
    """Has properties that must not run, and more attributes than fields."""

    x: Any
    size: int = 3

    @property
    def loss(self) -> Any:
        raise AssertionError("a property was run")


class Longer(Pair):
    """A named tuple with attributes of its own."""


class Closed(dict):
    """Lets nobody look."""

    def items(self) -> Any:
        raise RuntimeError("closed")

    __iter__ = keys = values = __len__ = items


def usual(value: Any) -> list[ChildEntry]:
    return [ChildEntry("everything", Text(type(value).__name__), ".everything")]


def lines_of(value: Any, *paths: str) -> list[str]:
    with unnoticed(is_opened=True):
        return opened(value, *paths)


def test_a_dataclass_shows_its_fields_and_runs_no_property() -> None:
    batch = Careful(torch.ones(2))
    batch.note = "kept"  # type: ignore[attr-defined]
    assert lines_of(batch) == ["x: f32[2] → .x", "size: 3 → .size", "note: 'kept' → .note"]
    assert lines_of(Slotted(torch.ones(2))) == ["x: f32[2] → .x", "count: 1 → .count"]


def test_what_holds_nothing_of_ours_is_left_to_the_debugger() -> None:
    held: Any
    for held in (Careful(3), Pair(1, 2), {"a": 1}, {"a": torch.ones(2)}):
        assert children(held) == []
    assert [may_open(kind) for kind in (Careful, Pair, dict, defaultdict)] == [True] * 4
    assert [may_open(kind) for kind in (list, tuple, Plain, int)] == [False] * 4


def test_a_named_tuple_shows_its_items_by_their_names() -> None:
    assert lines_of(Pair(torch.ones(2), 3)) == ["first: f32[2] → .first", "second: 3 → .second"]
    pair = Longer(torch.ones(2), 3)
    pair.note = "kept"  # type: ignore[attr-defined]
    assert lines_of(pair)[2:] == ["note: 'kept' → .note"]


def test_a_model_output_shows_what_it_has() -> None:
    output = CausalLMOutputWithPast(logits=torch.ones(2, 3))
    assert lines_of(output) == ["logits: f32[2,3] → .logits"]


def test_keys_that_are_tensors_are_not_written_out() -> None:
    first, second = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(2))
    state = defaultdict(dict, {first: {"step": 1}, second: {}, "last": 3, (1, first): 4})
    assert lines_of(state) == [
        "f32[2] · Parameter · requires grad: {'step': 1}",
        "f32[2] · Parameter · requires grad (2): {}",
        "'last': 3 → ['last']",
        "(1, f32[2]): 4",
    ]
    many = dict.fromkeys((torch.ones(1) for _ in range(600)), 1)
    assert lines_of(many)[-1] == "…: 100 more"


def test_all_that_the_debugger_shows_is_still_there() -> None:
    values = [Batch(torch.ones(2)), Pair(torch.ones(2), 1), {torch.ones(2): 1}, nn.ReLU()]
    for value in [*values, torch.ones(2).untyped_storage()]:
        last = children(value, usual)[-1]
        assert last.name == "raw view"
        assert children(last.value) == usual(value)
    more = children(torch.ones(2), usual)[-1].value
    assert isinstance(more, ChildGroup)
    assert children(more)[-1].name == "raw view"


def test_a_class_that_lets_nobody_look() -> None:
    closed = Closed({"a": torch.ones(2), 3: 4})
    closed.note = "kept"  # type: ignore[attr-defined]
    assert [(each.name, each.suffix) for each in own_entries(closed, RuntimeError())] == [
        ("'a'", "['a']"),
        ("3", "[3]"),
        ("note", ".note"),
        ("…", None),
    ]
