"""The shapes of one call, as text in, text out: a module call that is pinned, or a stack frame."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from shapetrace.events.stop import Stop, StoppedFunction
from shapetrace.server.features.code_lens import code_lenses
from shapetrace.server.features.hover import hover, statement_story
from shapetrace.server.features.inlay_hints import inlay_hints
from shapetrace.server.file_records import Key
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.processes import Process
from shapetrace.server.scope import Scope
from shapetrace.server.view import DocumentView
from tests.python.unit.server.annotated import Shown, plain, show, with_hints
from tests.support.recorder import PRELUDE

LAYERS = """
class Inner(nn.Module):
    def forward(self, x):
        y = x * 2
        return helper(y)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        a, b = pair(x)
        return self.inner(a) + b
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block(), Block()])
    def forward(self, x):
        start = x + 1
        for block in self.blocks:
            x = block(x[1:])
        end = helper(x)
        return end
def pair(x):
    return x + 1, x + 2
def helper(x):
    return x.relu()
def elsewhere(x):
    return x.exp()
def main():
    net = Net()
    for width in (2, 3):
        out = net(torch.ones(9, width))
        last = out.sum(0)
    elsewhere(torch.ones(5))
main()
"""


class Scoped:
    """A program that ran, as it is shown in a scope."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.scopes = PinAndFocus(shown.store)

    def view(self) -> DocumentView:
        records = self.scopes.records(self.shown.document.key)
        assert records is not None
        assert records.base.text is not None
        return DocumentView(self.shown.document, records, records.base.text)

    def text(self) -> str:
        hints = inlay_hints(self.view(), 0, 1_000_000, HintOptions())
        return with_hints(self.shown.document.lines, hints).removeprefix(PRELUDE)

    def hints(self) -> dict[str, str]:
        """Each line that has a hint, with its hint."""
        found: dict[str, str] = {}
        for line in self.text().split("\n"):
            source, _, hint = line.partition(" «")
            if hint:
                found[source.strip()] = hint.rstrip("»")
        return found

    def call(self, path: str, number: int = 1) -> Key:
        """A module call by its path, and which call of the module it was."""
        process = self.shown.store.process(1)
        assert process is not None
        (found,) = (
            module.id
            for module in process.modules.values()
            if (module.path, module.call) == (path, number)
        )
        return 1, found

    def ops(self, *labels: str, module: int | None) -> frozenset[int]:
        """Ops in a module call by their labels."""
        process = self.shown.store.process(1)
        assert process is not None
        return frozenset(
            op.id for op in process.ops.values() if op.label in labels and op.module == module
        )


@pytest.fixture
def layers(tmp_path: Path) -> Scoped:
    return Scoped(show(LAYERS, tmp_path / "program.py"))


@pytest.mark.slow
def test_all_calls_are_shown_without_a_scope(layers: Scoped) -> None:
    hints = layers.hints()
    assert hints["y = x * 2"] == "f32[6|7|8,2|3]"
    assert hints["x = block(x[1:])"] == "f32[6|7|8,2|3]"
    assert layers.view().records.base is layers.view().records


def test_one_call_is_shown_in_what_it_ran_and_what_it_was_called_from(layers: Scoped) -> None:
    layers.scopes.set_pin(layers.call("blocks.1", 2))
    hints = layers.hints()
    assert hints == {
        # What ran in it,
        "y = x * 2": "f32[7,3]",
        "a, b = pair(x)": "a,b f32[7,3]",
        "return self.inner(a) + b": "f32[7,3]",
        "return x + 1, x + 2": "(f32[7,3], f32[7,3])",
        "return x.relu()": "f32[7,3]",
        # what it was called from, where of a loop only this call counts,
        "start = x + 1": "f32[9,3]",
        "x = block(x[1:])": "f32[7,3]",
        "end = helper(x)": "f32[6,3]",
        "return end": "f32[6,3]",
        "out = net(torch.ones(9, width))": "f32[6,3]",
        # and all else as ever.
        "last = out.sum(0)": "f32[2|3]",
        "return x.exp()": "f32[5]",
        **{
            f"def {name}(x):": hint
            for name, hint in (("pair", "x f32[7,3]"), ("helper", "x f32[7,3]"))
        },
        "def elsewhere(x):": "x f32[5]",
        "def forward(self, x):": hints["def forward(self, x):"],
    }


def test_what_is_in_a_call_is_shown_of_that_call(layers: Scoped) -> None:
    layers.scopes.set_pin(layers.call("", 1))
    assert layers.hints()["y = x * 2"] == "f32[6|7|8,2]"
    layers.scopes.set_pin(layers.call("blocks.2.inner", 1))
    hints = layers.hints()
    assert hints["y = x * 2"] == "f32[6,2]"
    assert hints["a, b = pair(x)"] == "a,b f32[6,2]"
    assert hints["end = helper(x)"] == "f32[6,2]"


def test_nothing_is_pinned_any_more(layers: Scoped) -> None:
    before = layers.text()
    layers.scopes.set_pin(layers.call("blocks.1"))
    assert layers.text() != before
    layers.scopes.set_pin(None)
    assert layers.text() == before


def test_a_module_in_one_of_its_own_kind_is_told_apart(tmp_path: Path) -> None:
    scoped = Scoped(
        show(
            """
            class Nest(nn.Module):
                def __init__(self, depth):
                    super().__init__()
                    self.inner = Nest(depth - 1) if depth else None
                def forward(self, x):
                    y = x[1:]
                    return y if self.inner is None else self.inner(y)
            Nest(2)(torch.ones(9))
            """,
            tmp_path / "program.py",
        )
    )
    for path, size in (("", 8), ("inner", 7), ("inner.inner", 6)):
        scoped.scopes.set_pin(scoped.call(path))
        assert scoped.hints()["y = x[1:]"] == f"f32[{size}]"


def focus(scoped: Scoped, call: Key, reached: frozenset[int], **changes: Any) -> Scope:
    """A frame of ``Block.forward`` that runs in a call."""
    path = str(scoped.shown.path)
    own = {"file": path, "function": "Block.forward", "line": 0, "reached": reached, **changes}
    return Scope(1, call[1], Stop(call[1], StoppedFunction(**own)))


def test_what_a_frame_has_not_reached_is_marked(layers: Scoped) -> None:
    block = layers.call("blocks.1", 2)
    layers.scopes.set_focus(focus(layers, block, frozenset()))
    hints = layers.hints()
    assert hints["a, b = pair(x)"] == "~ a,b f32[7,3]"
    assert hints["return self.inner(a) + b"] == "~ f32[7,3]"
    assert hints["y = x * 2"] == "f32[7,3]"
    assert "~" not in hints["def forward(self, x):"]

    reached = frozenset([layers.call("blocks.1.inner", 2)[1]])
    layers.scopes.set_focus(focus(layers, block, reached))
    hints = layers.hints()
    assert hints["a, b = pair(x)"] == "a,b f32[7,3]"
    assert hints["return self.inner(a) + b"] == "~ f32[7,3]"

    reached |= layers.ops("+", module=block[1])
    layers.scopes.set_focus(focus(layers, block, reached))
    assert "~" not in layers.text()


def test_what_a_function_returned_is_reached_once_the_frame_goes_on(tmp_path: Path) -> None:
    scoped = Scoped(
        show(
            """
            class Net(nn.Module):
                def forward(self, x):
                    a, b = pair(x)
                    return a * b
            def pair(x):
                return x + 1, x + 2
            Net()(torch.ones(3))
            """,
            tmp_path / "program.py",
        )
    )
    call = scoped.call("")
    (line,) = (
        number
        for number, text in enumerate(scoped.shown.document.lines, 1)
        if "a, b = pair" in text
    )
    for reached, now, expected in (
        (frozenset[int](), line, "~ a,b f32[3]"),
        (scoped.ops("+", module=call[1]), line, "~ a,b f32[3]"),
        (scoped.ops("+", module=call[1]), line + 1, "a,b f32[3]"),
    ):
        given = focus(scoped, call, reached, function="Net.forward", line=now)
        assert scoped.scopes.set_focus(given)
        assert scoped.hints()["a, b = pair(x)"] == expected


def test_what_never_ran_in_a_call_is_told_of_others(tmp_path: Path) -> None:
    scoped = Scoped(
        show(
            """
            class Net(nn.Module):
                def forward(self, x):
                    if len(x) > 2:
                        x = x * 2
                    return x + 1
            net = Net()
            net(torch.ones(3))
            net(torch.ones(2))
            """,
            tmp_path / "program.py",
        )
    )
    call = scoped.call("", 2)
    scoped.scopes.set_pin(call)
    assert "x = x * 2" not in scoped.hints()
    scoped.scopes.set_focus(focus(scoped, call, frozenset(), function="Net.forward"))
    assert scoped.hints()["x = x * 2"] == "~ f32[3]"
    assert scoped.hints()["return x + 1"] == "~ f32[2]"


def test_hovers_say_that_something_was_not_reached(layers: Scoped) -> None:
    block = layers.call("blocks.1")
    layers.scopes.set_focus(focus(layers, block, frozenset()))
    (line,) = (
        number for number, text in enumerate(layers.shown.document.lines) if "self.inner(a)" in text
    )
    column = layers.shown.document.lines[line].index(" + b") + 1
    story = hover(layers.view(), layers.shown.store, line, column)
    assert story is not None
    assert story.markdown.endswith(
        "From an earlier call. It is not known whether this call gets here."
    )
    hints = inlay_hints(layers.view(), line - 1, line, HintOptions())
    stories = [statement_story(layers.view(), layers.shown.store, hint.statement) for hint in hints]
    assert all("From an earlier call" in each for each in stories)


def test_a_frame_outside_of_all_modules_has_a_scope(layers: Scoped) -> None:
    reached = layers.ops("ones(9, width)", module=None)
    own = StoppedFunction(str(layers.shown.path), "main", 0, reached)
    layers.scopes.set_focus(Scope(1, None, Stop(None, own)))
    hints = layers.hints()
    assert hints["last = out.sum(0)"].startswith("~ ")
    assert "~" not in hints["return x.exp()"]
    assert hints["y = x * 2"] == "f32[6|7|8,2|3]"


def test_the_later_of_pin_and_focus_is_shown(layers: Scoped) -> None:
    first, second = layers.call("blocks.0"), layers.call("blocks.1")
    reached = frozenset[int]()
    shown: list[bool] = []
    layers.scopes.set_pin(first)
    shown.append(layers.scopes.is_pin_shown)
    assert layers.scopes.set_focus(focus(layers, second, reached))
    shown.append(layers.scopes.is_pin_shown)
    assert shown == [True, False]
    assert layers.hints()["y = x * 2"] == "f32[7,2]"
    # The same frame once more changes nothing.
    layers.scopes.set_pin(first)
    assert not layers.scopes.set_focus(focus(layers, second, reached))
    assert layers.hints()["y = x * 2"] == "f32[8,2]"
    assert layers.scopes.set_focus(None)
    assert layers.hints()["y = x * 2"] == "f32[8,2]"
    layers.scopes.set_pin(None)
    assert layers.scopes.scope_path is None


def test_lenses_name_the_call_that_is_shown(layers: Scoped) -> None:
    def lenses() -> list[tuple[str, str]]:
        found = code_lenses(layers.view(), layers.shown.store, layers.scopes)
        return [(lens.text, lens.command) for lens in found]

    pin = ("pin a call", "shapetrace.pinCall")
    steps = [("◂ previous", "shapetrace.previousCall"), ("next ▸", "shapetrace.nextCall")]
    unpin = ("unpin", "shapetrace.unpinCall")
    assert lenses() == [
        ("6 calls · 3 modules · (f32[6|7|8,2|3]) → f32[6|7|8,2|3]", ""),
        pin,
        ("6 calls · 3 modules · (f32[6|7|8,2|3]) → f32[6|7|8,2|3]", ""),
        pin,
        ("2 calls · (f32[9,2|3]) → f32[6,2|3]", ""),
        pin,
    ]
    layers.scopes.set_pin(layers.call("", 2))
    assert lenses() == [
        ("3 calls · 3 modules · (f32[6|7|8,3]) → f32[6|7|8,3]", ""),
        pin,
        ("3 calls · 3 modules · (f32[6|7|8,3]) → f32[6|7|8,3]", ""),
        pin,
        ("Net call 2 · 2 of 2 · (f32[9,3]) → f32[6,3]", ""),
        *steps,
        unpin,
    ]
    block = layers.call("blocks.1")
    layers.scopes.set_focus(focus(layers, block, frozenset()))
    assert lenses()[4:] == [
        ("blocks.1 call 1 · 2 of 6 · (f32[7,2]) → f32[7,2]", ""),
        *steps,
        pin,
        ("Net call 1 · 1 of 2 · (f32[9,2]) → f32[6,2]", ""),
        *steps,
        pin,
    ]


def test_a_hover_tells_the_pinned_call_first_and_what_differs(layers: Scoped) -> None:
    def story() -> str:
        (line,) = (
            number for number, text in enumerate(layers.shown.document.lines) if "y = x" in text
        )
        column = layers.shown.document.lines[line].index("*")
        told = hover(layers.view(), layers.shown.store, line, column)
        assert told is not None
        return told.markdown.replace("  \n", "\n") + "\n"

    assert story() == plain(
        """
        ```python
        x f32[8,2] * 2 → f32[8,2]  # blocks.0.inner call 1
        x f32[7,2] * 2 → f32[7,2]  # blocks.1.inner call 1
        x f32[6,2] * 2 → f32[6,2]  # blocks.2.inner call 1
        x f32[8,3] * 2 → f32[8,3]  # blocks.0.inner call 2
        x f32[7,3] * 2 → f32[7,3]  # blocks.1.inner call 2
        x f32[6,3] * 2 → f32[6,3]  # blocks.2.inner call 2
        ```
        float32 · cpu · 48 B to 96 B
        `blocks.0.inner`, `blocks.1.inner`, `blocks.2.inner` · Inner · 6 calls
        """
    )
    layers.scopes.set_pin(layers.call("blocks.1", 2))
    assert story() == plain(
        """
        ```python
        ▸ x f32[7,3] * 2 → f32[7,3]  # blocks.1.inner call 2
        ≠ x f32[8,2] * 2 → f32[8,2]  # blocks.0.inner call 1
        ≠ x f32[7,2] * 2 → f32[7,2]  # blocks.1.inner call 1
        ≠ x f32[6,2] * 2 → f32[6,2]  # blocks.2.inner call 1
        ≠ x f32[8,3] * 2 → f32[8,3]  # blocks.0.inner call 2
        ≠ x f32[6,3] * 2 → f32[6,3]  # blocks.2.inner call 2
        ```
        float32 · cpu · 84 B
        `blocks.1.inner` · Inner · 1 call
        """
    )


def test_a_hover_over_a_name_tells_what_it_was_in_which_call(layers: Scoped) -> None:
    def story(fragment: str) -> str:
        lines = layers.shown.document.lines
        (line,) = (number for number, text in enumerate(lines) if fragment in text)
        column = lines[line].index(fragment)
        told = hover(layers.view(), layers.shown.store, line, column)
        assert told is not None
        return told.markdown.split("```")[1].removeprefix("python\n")

    layers.scopes.set_pin(layers.call("", 1))
    assert story("a, b =") == plain(
        """
        ▸ a: f32[6|7|8,2]
        ≠ a: f32[8,3]  # blocks.0
        ≠ a: f32[7,3]  # blocks.1
        ≠ a: f32[6,3]  # blocks.2
        """
    )
    layers.scopes.set_pin(layers.call("blocks.1", 1))
    assert story("x = block(").startswith("▸ x: f32[7,2]\n≠ x: f32[8,2]  # Net call 1\n")
    layers.scopes.set_pin(None)
    assert story("start = ") == plain(
        """
        start: f32[9,2|3]
          f32[9,2]  # Net call 1
          f32[9,3]  # Net call 2
        """
    )


def test_what_the_process_of_a_pin_has_not_run_is_shown_as_ever(tmp_path: Path) -> None:
    scoped = Scoped(show("a = torch.ones(3)\nb = a + 1\n", tmp_path / "program.py"))
    before = scoped.hints()
    assert len(before) == 2
    scoped.shown.store.open_process("another session", "another")
    scoped.scopes.set_pin((2, 0))
    assert scoped.hints() == before
    scoped.scopes.set_pin((1, 0))
    assert scoped.hints() == before


@pytest.mark.slow
def test_a_session_that_is_gone_is_not_kept_by_what_was_pinned(layers: Scoped) -> None:
    store, scopes, key = layers.shown.store, layers.scopes, layers.shown.document.key
    session = store.newest_session()
    scopes.set_pin(layers.call("blocks.1"))
    layers.text()
    store.close_process("process")
    store.close_session("session")
    store.open_session("session")
    assert scopes.records(key) is None
    gc.collect()
    kept = [each for each in gc.get_objects() if type(each) is Process]
    assert [each for each in kept if each.session is session] == []
