"""What the debugger is handed never raises, whatever it asks about."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from shapetrace.agent.panes import show_shapes
from shapetrace.agent.providers import ContentsProvider, HolderContents, HolderTexts, LeafTexts


def test_without_a_debugger_there_is_nobody_to_tell() -> None:
    undo = show_shapes()
    undo()


@pytest.mark.parametrize("kind", [3, None, [], "a class"])
def test_a_class_that_is_none(kind: Any) -> None:
    for provider in (LeafTexts(), HolderTexts(), ContentsProvider(), HolderContents()):
        assert provider.can_provide(kind, "") is False


@pytest.mark.parametrize(
    ("kind", "is_leaf", "may_hold", "opens"),
    [
        (torch.Tensor, True, True, True),
        (nn.Parameter, True, True, True),
        (nn.Linear, True, True, True),
        (torch.UntypedStorage, True, True, True),
        (list, False, True, False),
        (Exception, False, True, False),
        (int, False, False, False),
        (type, False, False, False),
        (type(torch), False, False, False),
    ],
)
def test_who_answers_for_a_class(kind: type, is_leaf: bool, may_hold: bool, opens: bool) -> None:
    assert LeafTexts().can_provide(kind, kind.__name__) is is_leaf
    assert HolderTexts().can_provide(kind, kind.__name__) is may_hold
    assert ContentsProvider().can_provide(kind, kind.__name__) is opens


def test_only_the_clipboard_gets_what_the_program_would_write() -> None:
    tensor = torch.ones(2)
    texts = LeafTexts()
    contexts = ("watch", "hover", "repl", "variables", "clipboard")
    shown = {context: texts.get_str_in_context(tensor, context) for context in contexts}
    assert shown == dict.fromkeys(contexts, "f32[2]") | {"clipboard": None}


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ("x", "x.shape"),
        ("self.fc.weight", "self.fc.weight.shape"),
        ("batch['x'][0]", "batch['x'][0].shape"),
        ("net(x)", "net(x).shape"),
        ("x + y", "(x + y).shape"),
        ("-x", "(-x).shape"),
        ("x if y else z", "(x if y else z).shape"),
        ("lambda: x", "(lambda: x).shape"),
    ],
)
def test_the_expression_of_what_is_below(parent: str, child: str) -> None:
    expressions = {
        name: make
        for name, _, make in ContentsProvider().get_contents_debug_adapter_protocol(torch.ones(2))
    }
    assert expressions["shape"](parent) == child
    assert expressions["items"](parent) == parent
    assert expressions["statistics"] is None


def test_the_console_gets_them_by_name() -> None:
    assert ContentsProvider().get_dictionary(nn.Linear(2, 3))["in_features"] == 2
    assert ContentsProvider().resolve(nn.Linear(2, 3), "out_features") == 3
