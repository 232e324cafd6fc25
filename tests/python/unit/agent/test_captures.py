"""What is kept of captured values until it is told, and told once more."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from shapetrace.agent import captures, capturing
from shapetrace.agent.captures import Captures
from shapetrace.capture import copies
from shapetrace.transport.requested import CAPTURED, CapturedValue, CaptureNews, RequestedName


class Clock:
    """Seconds, as a test wants them."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Block(nn.Module):
    """A module with a variable to capture."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        hidden = self.up(x)
        return hidden * 2


class Judge(nn.Module):
    """Another one, which has what the first has not."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 1)

    def forward(self, x: Any) -> Any:
        verdict = self.fc(x)
        return verdict


class Returning(nn.Module):
    """Returns what it is given."""

    def forward(self, x: Any) -> Any:
        return x


def call(captured: Captures, model: nn.Module, times: int = 1) -> None:
    for _ in range(times):
        captured.before_call(model)
        model(torch.ones(1, 2))


def everything(captured: Captures) -> CaptureNews:
    """All that there is to tell, as if it were one message."""
    names: list[RequestedName] = []
    values: list[CapturedValue] = []
    paths, problems = None, None
    while (news := captured.news()) is not None:
        names += news.names
        values += news.items
        paths = paths if news.requests is None else news.requests
        problems = problems if news.problems is None else news.problems
    return CaptureNews(paths, problems, tuple(names), tuple(values))


def test_without_paths_nothing_is_done() -> None:
    captured = Captures((), Clock())
    code = Block.forward.__code__
    call(captured, Block())
    assert captured.news() is None
    assert Block.forward.__code__ is code


def test_what_is_told_is_told_once() -> None:
    captured = Captures(("forward.hidden",), Clock())
    assert everything(captured) == CaptureNews(("forward.hidden",))
    model = Block()
    call(captured, model)
    news = everything(captured)
    assert [name.name for name in news.names] == ["forward.hidden"]
    assert [(value.ordinal, value.iteration, value.shape) for value in news.items] == [
        (1, 1, (1, 2))
    ]
    call(captured, model)
    assert [value.ordinal for value in everything(captured).items] == [2]
    assert captured.news() is None
    captured.end()


@pytest.mark.slow
def test_a_model_is_the_programs_to_keep() -> None:
    captured = Captures(("forward.self.up.weight",), Clock())
    model = Block()
    call(captured, model)
    references = [weakref.ref(each) for each in (model, *model.parameters())]
    del model
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)
    assert [value.shape for value in everything(captured).items] == [(2, 2)]
    captured.end()


def test_another_server_is_told_what_is_kept() -> None:
    captured = Captures(("forward.hidden", "a..b"), Clock())
    model = Block()
    call(captured, model, CAPTURED.last + 3)
    everything(captured)
    call(captured, model)
    captured.begin_anew()
    news = everything(captured)
    assert news.requests == ("forward.hidden", "a..b")
    assert list(news.problems or ()) == ["a..b"]
    assert [name.name for name in news.names] == ["forward.hidden"]
    # The newest that were told, and what has come since.
    assert [value.ordinal for value in news.items] == list(range(4, CAPTURED.last + 5))
    captured.end()


def test_a_path_is_a_mistake_once_no_further_model_comes() -> None:
    clock = Clock()
    captured = Captures(("forward.verdict", "forward.none"), clock)
    call(captured, Block())
    assert captured.news() == CaptureNews(("forward.verdict", "forward.none"))
    call(captured, Judge())
    assert everything(captured).problems is None
    clock.now = captures.PATIENCE + 0.1
    news = everything(captured)
    assert list(news.problems or ()) == ["forward.none"]
    captured.end()


def test_a_model_that_is_called_again_ends_the_waiting() -> None:
    captured = Captures(("forward.none",), Clock())
    call(captured, Block())
    assert everything(captured).problems is None
    call(captured, Judge(), 2)
    assert list(everything(captured).problems or ()) == ["forward.none"]
    captured.end()


class Heard:
    """What a tracer of a debug session tells."""

    def __init__(self) -> None:
        self.values: list[tuple[str, str, int, str]] = []
        self.missing: dict[str, str] = {}
        self.found: list[str] = []
        self.notes: list[tuple[str, str]] = []

    def captured(
        self, model: str, path: str, name: str, value: Any, iteration: int, mode: str
    ) -> None:
        self.values.append((path, name, iteration, mode))

    def missed(self, path: str, reason: str) -> None:
        self.missing[path] = reason

    def met(self, path: str) -> None:
        self.found.append(path)

    def noted(self, path: str, reason: str) -> None:
        self.notes.append((path, reason))


def test_a_problem_is_told_of_its_path() -> None:
    heard = Heard()
    model = Block()
    paths = ["forward.hidden", "forward.none", "forward.hidden.inner", "a..b"]
    end = capturing.trace(model, paths, heard)
    model(torch.ones(1, 2))
    end()
    assert heard.found == ["forward.hidden", "forward.hidden.inner"]
    assert heard.values == [("forward.hidden", "forward.hidden", 1, "train")]
    assert list(heard.missing) == ["forward.none"]
    assert heard.missing["forward.none"].startswith("matches nothing: function 'forward' has no")
    assert [path for path, _ in heard.notes] == ["a..b", "forward.hidden.inner"]
    assert heard.notes[1][1].startswith("captured nothing: ")


def test_how_a_problem_is_worded_is_nobodys_business(monkeypatch: pytest.MonkeyPatch) -> None:
    wording = "shapetrace.capture.plan._Search.miss_text"
    monkeypatch.setattr(wording, lambda self: "is not what it was")
    captured = Captures(("forward.none",), Clock())
    call(captured, Block(), 2)
    assert everything(captured).problems == {"forward.none": "is not what it was"}
    captured.end()


def test_what_is_told_is_neither_copied_nor_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Last(Heard):
        def captured(self, *told: Any) -> None:
            super().captured(*told)
            self.storage = told[3].untyped_storage().data_ptr()

    monkeypatch.setattr(copies, "_cloned", None)
    heard = Last()
    model = Returning()
    end = capturing.trace(model, ["forward"], heard)
    assert heard.values == []
    given = torch.ones(1, 2)
    model(given)
    end()
    assert heard.values == [("forward", "forward", 1, "train")]
    assert heard.storage == given.untyped_storage().data_ptr()
    assert heard.notes == []


def test_nothing_is_left_of_it_in_the_end() -> None:
    codes = [Block.forward.__code__, Judge.forward.__code__]
    captured = Captures(("forward.hidden", "forward.verdict"), Clock())
    first, second = Block(), Judge()
    call(captured, first)
    call(captured, second)
    assert [Block.forward.__code__, Judge.forward.__code__] != codes
    captured.end()
    assert [Block.forward.__code__, Judge.forward.__code__] == codes
    call(captured, first)
    assert len(everything(captured).items) == 2
    assert [Block.forward.__code__, Judge.forward.__code__] == codes


def test_values_that_nobody_asks_for_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "MOST_WAITING", 10)
    captured = Captures(("forward.hidden",), Clock())
    call(captured, Block(), 25)
    news = everything(captured)
    # How many there were is told by the numbers of those that are left.
    assert [value.ordinal for value in news.items] == list(range(16, 26))
    captured.end()


def test_models_that_are_made_anew_are_not_all_followed() -> None:
    captured = Captures(("forward.hidden",), Clock())
    models = [Block() for _ in range(captures.MOST_MODELS + 3)]
    for model in models:
        call(captured, model)
    assert len(everything(captured).items) == captures.MOST_MODELS
    captured.end()


def test_nothing_is_written_for_the_program_to_see(capfd: pytest.CaptureFixture[str]) -> None:
    captured = Captures(("forward.none", "a..b"), Clock())
    call(captured, Block(), 2)
    captured.end()
    assert capfd.readouterr() == ("", "")
