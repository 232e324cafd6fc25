"""A call that is pinned, and what becomes of the pin in the next run of the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shapetrace.events.model import Run
from shapetrace.events.update import Update
from shapetrace.server.features.pins import pin_of
from shapetrace.server.file_records import FileRecords, Key
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.uris import file_key
from tests.python.unit.server.annotated import show
from tests.python.unit.server.test_store import module
from tests.support.recorder import PRELUDE
from tests.support.rows import recorded, updates_of

GENERATE = """
class Block(nn.Module):
    def forward(self, x):
        return x.relu()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
net = Net()
for length in (5, 1, 1, 1):
    net(torch.ones(length))
"""


class Runs:
    """One run of a program after the other, and what of them is pinned."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = show(GENERATE, path).store
        self.store.close_process("process")
        self.store.close_session("session")
        self.scopes = PinAndFocus(self.store)
        self._number = 1

    def pin(self, label: str) -> None:
        self.scopes.set_pin(self.key(label))

    def key(self, label: str) -> Key:
        """A module call of the first run, as the editor calls it."""
        process = self.store.process(1)
        assert process is not None
        keys = [(1, call) for call in process.modules]
        return next(key for key in keys if self.label(key) == label)

    def label(self, key: Key) -> str:
        pin = pin_of(self.store, key)
        assert pin is not None
        return pin.label

    @property
    def pinned(self) -> str:
        """The number of the process, and the label of the call."""
        key = self.scopes.pinned
        return "" if key is None else f"{key[0]}: {self.label(key)}"

    def again(self, text: str = GENERATE) -> Iterator[Update]:
        """Run it, edited, and apply what comes of it as the caller goes on."""
        self._number += 1
        name = f"run {self._number}"
        self.path.write_text(PRELUDE + text, encoding="utf-8")
        self.store.open_session(name)
        self.store.open_process(name, name)
        for update in updates_of(recorded(self.path)):
            self.store.apply(name, update)
            yield update
        self.store.close_process(name)
        self.store.close_session(name)

    def run(self, text: str = GENERATE) -> None:
        for _ in self.again(text):
            self.scopes.follow_pin()
        self.scopes.follow_pin()


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "program.py")


@pytest.mark.parametrize("label", ["Net call 1", "Net call 2", "blocks.0 call 2"])
def test_a_pin_goes_along_with_every_run(runs: Runs, label: str) -> None:
    runs.pin(label)
    for number in (2, 3):
        runs.run("# something above\n" * number + GENERATE.replace("ones(length", "ones(length, 7"))
        assert runs.pinned == f"{number}: {label}"
        assert not runs.scopes.is_waiting


def test_a_whole_process_is_found_again(runs: Runs) -> None:
    runs.scopes.set_pin((1, 0))
    runs.run()
    assert runs.scopes.pinned == (2, 0)


def test_a_call_that_is_merged_with_others_now_is_found_in_them(runs: Runs) -> None:
    runs.pin("blocks.1 call 2")
    runs.run(GENERATE.replace("(5, 1, 1, 1)", "(3, 3, 3)"))
    assert runs.pinned == "2: blocks.1"
    # What was pinned counts, not what it was found in.
    runs.run()
    assert runs.pinned == "3: blocks.1 call 2"


@pytest.mark.parametrize(
    ("change", "becomes"),
    [("Block(), Block()", "Block()"), ("(5, 1, 1, 1)", "(5,)"), ("Block(", "Other(")],
)
def test_a_pin_is_dropped_that_the_next_run_does_not_have(
    runs: Runs, change: str, becomes: str
) -> None:
    runs.pin("blocks.1 call 2")
    for _ in runs.again(GENERATE.replace(change, becomes)):
        runs.scopes.follow_pin()
        assert runs.scopes.is_waiting
        assert runs.pinned == "1: blocks.1 call 2"
    assert runs.scopes.follow_pin()
    assert runs.scopes.pinned is None
    assert not runs.scopes.follow_pin()


@pytest.mark.slow
def test_a_run_that_records_nothing_changes_nothing(runs: Runs) -> None:
    runs.pin("blocks.1 call 1")
    runs.run("print()")
    assert runs.pinned == "1: blocks.1 call 1"


def test_a_pin_is_dropped_with_its_call(runs: Runs) -> None:
    assert not runs.scopes.follow_pin()
    runs.pin("blocks.1 call 1")
    assert not runs.scopes.follow_pin()
    process = runs.store.process(1)
    assert process is not None
    process.is_running = True
    runs.store.clear()
    assert runs.scopes.follow_pin()
    assert runs.scopes.pinned is None


def test_a_pin_stays_with_a_program_that_goes_on(runs: Runs) -> None:
    runs.pin("blocks.1 call 1")
    process = runs.store.process(1)
    assert process is not None
    process.is_running = True
    runs.run()
    assert runs.pinned == "1: blocks.1 call 1"
    runs.store.close_process("process")
    assert runs.scopes.follow_pin()
    assert runs.pinned == "2: blocks.1 call 1"


def test_a_program_that_is_restarted_is_the_next_run(runs: Runs) -> None:
    runs.pin("blocks.1 call 1")
    runs.store.open_session("session")
    assert runs.scopes.follow_pin()
    assert runs.scopes.is_waiting
    runs.store.open_process("session", "process")
    for update in updates_of(recorded(runs.path)):
        runs.store.apply("process", update)
    assert runs.scopes.follow_pin()
    assert runs.pinned.endswith(": blocks.1 call 1")
    assert not runs.scopes.is_waiting


def test_meanwhile_a_file_that_runs_again_is_shown_as_it_is(runs: Runs) -> None:
    def shown() -> object:
        return runs.scopes.records(file_key(str(runs.path)))

    runs.pin("blocks.1 call 2")
    before = shown()
    assert not isinstance(before, FileRecords)
    updates = runs.again(GENERATE.replace("Block(), Block()", "Block()"))
    next(updates)
    assert runs.scopes.follow_pin()
    assert isinstance(shown(), FileRecords)


def test_each_rank_is_found_again(runs: Runs) -> None:
    store = runs.store
    update = Update(modules=(module(1),))
    run = Run(("a.py",), "", None, 1, None, 2, "", {})
    for name in ("first", "second"):
        store.open_session(name)
        for rank in (1, 0, 1) if name == "first" else (1, 1, 0):
            key = f"{name} {len(store.processes(name))}"
            store.open_process(name, key)
            process = store.processes(name)[key]
            process.run = replace(run, rank=rank)
            store.apply(key, update)
            store.close_process(key)
        if name == "first":
            last = store.processes(name)["first 2"]
            runs.scopes.set_pin((last.number, 1))
        store.close_session(name)
    assert runs.scopes.follow_pin()
    second = store.processes("second")["second 1"]
    assert runs.scopes.pinned == (second.number, 1)
