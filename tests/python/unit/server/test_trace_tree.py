"""The trace tree, as text: deeper nodes further right, behind them what is told of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shapetrace.events.model import ErrorInfo, Run
from shapetrace.events.update import Update
from shapetrace.server.features.pins import module_call_of, nearest, pin_of
from shapetrace.server.features.trace_tree import TraceTree
from shapetrace.server.file_records import Call, Key
from shapetrace.server.nesting import Nesting
from shapetrace.server.store import TraceStore
from tests.python.unit.server.annotated import plain, show
from tests.python.unit.server.test_store import module, op, tensor

PROGRAM = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
    def forward(self, x):
        return self.up(x).relu()[:, :4]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
    def forward(self, x):
        return self.blocks(x)
net = Net()
for _ in range(3):
    out = net(torch.ones(2, 4))
"""

BELOW = """
  blocks: ×3  f32[2,4] ← f32[2,4]  Sequential
    0: ×3  f32[2,4] ← f32[2,4]  Block
      up: ×3  f32[2,8] ← f32[2,4]  Linear
      relu(): ×3  f32[2,8] ← f32[2,8]
      [:, :4]: ×3  f32[2,4] ← f32[2,8]
    1: ×3  f32[2,4] ← f32[2,4]  Block
      up: ×3  f32[2,8] ← f32[2,4]  Linear
      relu(): ×3  f32[2,8] ← f32[2,8]
      [:, :4]: ×3  f32[2,4] ← f32[2,8]
"""


class Drawn:
    """A tree that is read as the editor reads it."""

    def __init__(self, store: TraceStore, limit: int = 100) -> None:
        self.store = store
        self.tree = TraceTree(store)
        self.limit = limit

    def text(self, filter_: str = "", pinned: Key | None = None) -> str:
        return "".join(f"{line}\n" for line in self.lines(None, filter_, pinned))

    def lines(
        self, parent: str | None, filter_: str = "", pinned: Key | None = None, depth: int = 0
    ) -> Iterator[str]:
        offset, has_more = 0, True
        while has_more:
            nodes, has_more = self.tree.page(parent, filter_, offset, self.limit, pinned)
            for node in nodes:
                marks = f"{'✗ ' if node.is_failed else ''}{'* ' if node.is_pinned else ''}"
                row = f": {node.description}" if node.description else ""
                yield f"{'  ' * depth}{marks}{node.label}{row}"
                inside = list(self.lines(node.id, filter_, pinned, depth + 1))
                assert bool(inside) == node.has_children
                yield from inside
            offset += len(nodes)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    shown = show(PROGRAM, tmp_path_factory.mktemp("tree") / "program.py")
    return Drawn(shown.store)


def test_modules_and_ops_are_there_in_order(drawn: Drawn) -> None:
    text = drawn.text()
    before, _, below = text.partition("Net: ×3  f32[2,4] ← f32[2,4]\n")
    assert before == plain(
        """
        8 ops inside torch: empty, kaiming_uniform_, uniform_
          empty((8, 4)): f32[8,4]
          empty(8): f32[8]
          kaiming_uniform_(a=2.23606797749979): f32[8,4] ← f32[8,4]
          uniform_(a=-0.5, b=0.5): f32[8] ← f32[8]
          empty((8, 4)): f32[8,4]
          empty(8): f32[8]
          kaiming_uniform_(a=2.23606797749979): f32[8,4] ← f32[8,4]
          uniform_(a=-0.5, b=0.5): f32[8] ← f32[8]
        ones(2, 4): ×3  f32[2,4]
        """
    )
    assert below == BELOW.removeprefix("\n")


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_come_to_the_same(drawn: Drawn, limit: int) -> None:
    assert Drawn(drawn.store, limit).text() == drawn.text()


def test_a_text_is_looked_for(drawn: Drawn) -> None:
    net = "Net: ×3  f32[2,4] ← f32[2,4]\n"
    assert drawn.text(" RELU ") == net + indented(
        """
          blocks: ×3  f32[2,4] ← f32[2,4]  Sequential
            0: ×3  f32[2,4] ← f32[2,4]  Block
              relu(): ×3  f32[2,8] ← f32[2,8]
            1: ×3  f32[2,4] ← f32[2,4]  Block
              relu(): ×3  f32[2,8] ← f32[2,8]
        """
    )
    assert "blocks" in drawn.text("blocks.1")
    assert "  0: " not in drawn.text("blocks.1")
    assert drawn.text("f32[8] → f32[8]").count("\n") == 2
    assert drawn.text("program.py:").count("ones") == 1
    assert drawn.text("nowhere to be found") == ""


def test_nodes_are_opened_for_what_is_found_in_them(drawn: Drawn) -> None:
    (net,), has_more = drawn.tree.page(None, "relu", 0, 10, None)
    assert net.is_expanded
    assert not has_more
    (found, *_), _ = drawn.tree.page(None, "net", 0, 10, None)
    assert not found.is_expanded
    nodes, _ = drawn.tree.page(None, "", 0, 10, None)
    assert not any(node.is_expanded for node in nodes)


def test_of_much_that_is_found_only_as_much_is_opened_as_can_be_seen(changing: Drawn) -> None:
    modules = [module(1, path="", class_name="Net")]
    for number in range(500):
        layer = replace(module(2 + 2 * number), parent=1)
        modules += [layer, replace(module(3 + 2 * number), parent=layer.id, class_name="Act")]
    changing.store.apply("process", Update(modules=tuple(modules)))
    (net,), _ = changing.tree.page(None, "act(", 0, 10, None)
    assert net.is_expanded
    layers, _ = changing.tree.page(net.id, "act(", 0, 1000, None)
    opened = [layer.is_expanded for layer in layers]
    assert len(opened) == 500
    assert opened == sorted(opened, reverse=True)
    assert 50 < sum(opened) < 250


def test_a_pinned_call_is_marked(drawn: Drawn) -> None:
    key = call_named(drawn.store, "blocks.1")
    assert "  * 1: " in drawn.text(pinned=key)
    assert drawn.text(pinned=key).count("*") == 1


def test_a_node_tells_its_story(drawn: Drawn) -> None:
    nodes, _ = drawn.tree.page(None, "", 0, 10, None)
    fold, *_, net = nodes
    assert drawn.tree.story(net.id).startswith("```python\nNet(f32[2,4]) → f32[2,4]\n```")
    assert [drawn.tree.story(node) for node in (fold.id, "1", "9.9", "x")] == [""] * 4


def test_the_path_to_a_call_leads_through_its_nodes(drawn: Drawn) -> None:
    key = call_named(drawn.store, "blocks.1.up")
    path = drawn.tree.path(key, "")
    assert path is not None
    parent = None
    labels: list[str] = []
    for identity, position in path:
        nodes, _ = drawn.tree.page(parent, "", position, 1, None)
        assert nodes[0].id == identity
        labels.append(nodes[0].label)
        parent = identity
    assert labels == ["Net", "blocks", "1", "up"]
    assert drawn.tree.call_of(path[-1][0]) == key
    assert drawn.tree.path(key, "relu") == path[:-1] or drawn.tree.path(key, "relu") is not None
    assert drawn.tree.path(key, "ones") is None
    assert drawn.tree.path((9, 9), "") is None


def test_the_path_to_what_is_folded_leads_through_the_fold(drawn: Drawn) -> None:
    process = drawn.store.process(1)
    assert process is not None
    first, second, *_ = process.nesting.children(None)
    path = drawn.tree.path((1, second), "")
    assert path == [(f"1.fold{first}", 0), (f"1.{second}", 1)]
    assert drawn.tree.call_of(f"1.fold{first}") == (1, first)


@pytest.mark.parametrize("node", ["", "x", "9", "9.1", "1.x", "1.999999", "1.fold999999", "1.fold"])
def test_nodes_that_are_no_more_have_nothing_below(drawn: Drawn, node: str) -> None:
    assert drawn.tree.page(node, "", 0, 10, None) == ([], False)
    assert drawn.tree.call_of(node) is None


def test_what_is_pinned_with_an_op_is_its_module(drawn: Drawn) -> None:
    key = call_named(drawn.store, "blocks.1")
    process = drawn.store.process(1)
    assert process is not None
    relu = next(
        op.id for op in process.ops.values() if op.label == "relu()" and op.module == key[1]
    )
    assert module_call_of(drawn.store, (1, relu)) == key
    assert module_call_of(drawn.store, key) == key
    assert module_call_of(drawn.store, (1, process.nesting.children(None)[0])) is None
    assert module_call_of(drawn.store, (9, 1)) is None
    pin = pin_of(drawn.store, key)
    assert pin is not None
    assert (pin.label, pin.description) == ("blocks.1", "×3  f32[2,4] ← f32[2,4]  Block")


def test_of_several_calls_the_one_nearby_is_meant(drawn: Drawn) -> None:
    ups = [call_named(drawn.store, f"blocks.{number}.up") for number in (0, 1)]
    assert nearest(drawn.store, ups, None) == ups[0]
    assert nearest(drawn.store, ups, call_named(drawn.store, "blocks.1")) == ups[1]
    assert nearest(drawn.store, ups, ups[1]) == ups[1]
    assert nearest(drawn.store, ups, (9, 9)) == ups[0]
    assert nearest(drawn.store, [], ups[1]) is None


def indented(text: str) -> str:
    """A text below the outermost node."""
    return "".join(f"  {line}\n" for line in plain(text).splitlines())


def call_named(store: TraceStore, path: str) -> Key:
    process = store.process(1)
    assert process is not None
    return 1, next(each.id for each in process.modules.values() if each.path == path)


# The next run


def keys(tree: TraceTree, text: str = "", parent: str | None = None) -> Iterator[str]:
    """What all nodes are called in every run."""
    nodes, _ = tree.page(parent, text, 0, 1000, None)
    for node in nodes:
        yield node.key
        yield from keys(tree, text, node.id)


def test_nodes_are_known_again_in_the_next_run(drawn: Drawn, tmp_path: Path) -> None:
    edited = "size = 4\n" + PROGRAM.replace("ones(2, 4)", "ones(3, size)")
    again = show(edited, tmp_path / "program.py").store
    assert set(keys(drawn.tree)) == set(keys(TraceTree(again)))
    found = [*keys(drawn.tree, "relu")]
    assert found == [*keys(TraceTree(again), "relu")]
    net = "0./Net:Net"
    assert found[-2:] == [
        f"{net}/blocks:Sequential/1:Block{rest}" for rest in ("", "/torch.Tensor.relu")
    ]


def test_no_two_nodes_are_taken_for_each_other(changing: Drawn) -> None:
    relu = op(2, tensor(2), module=1)
    calls = [relu, *(replace(relu, id=number) for number in (5, 6, 3))]
    changing.store.apply(
        "process", Update(modules=(module(1), replace(module(4), call=3)), ops=(calls[0],))
    )
    before = list(keys(changing.tree))
    changing.store.apply("process", Update(ops=tuple(calls)))
    after = list(keys(changing.tree))
    assert len(set(after)) == len(after) == 6
    assert set(before) < set(after)


# Traces that change


@pytest.fixture
def changing() -> Drawn:
    store = TraceStore()
    store.open_process("session", "process")
    return Drawn(store)


def test_what_comes_later_is_shown(changing: Drawn) -> None:
    store = changing.store
    outer = module(1, path="", class_name="Net")
    store.apply("process", Update(modules=(outer,)))
    assert changing.text() == "Net\n"
    relu = op(3, tensor(2), inputs=(tensor(2),), module=1)
    store.apply("process", Update(ops=(relu,)))
    assert changing.text() == "Net\n  relu(): f32[2] ← f32[2]\n"
    store.apply("process", Update(ops=(replace(relu, id=2, label="exp()"),), counts={3: 4}))
    assert changing.text() == plain(
        """
        Net
          exp(): f32[2] ← f32[2]
          relu(): ×4  f32[2] ← f32[2]
        """
    )
    failed = replace(relu, outputs=(), error=ErrorInfo("ValueError", "no"))
    store.apply("process", Update(ops=(failed,)))
    assert changing.text().endswith("  ✗ relu(): ✗ ValueError: no ← f32[2]\n")
    assert changing.text("valueerror") != ""


def test_a_fold_counts_the_calls_that_there_are_by_now(changing: Drawn) -> None:
    made = [replace(op(number, tensor(2), module=1), direct=False) for number in (2, 3, 4)]
    changing.store.apply("process", Update(modules=(module(1),), ops=tuple(made)))
    assert "  3 ops inside torch: relu\n" in changing.text()
    changing.store.apply("process", Update(counts={3: 7}))
    assert "  9 ops inside torch: relu\n" in changing.text()


def test_kernels_are_below_their_op(changing: Drawn) -> None:
    store = changing.store
    relu = op(1, tensor(2), inputs=(tensor(2),))
    kernel = replace(relu, id=2, level="aten", name="aten.relu", form="relu({0})", parent=1)
    store.apply("process", Update(ops=(kernel, relu)))
    expected = "relu(): f32[2] ← f32[2]\n  aten.relu(f32[2]): f32[2]\n"
    assert changing.text() == expected
    store.apply("process", Update(counts={2: 0}))
    assert changing.text() == "relu(): f32[2] ← f32[2]\n"


def test_what_was_cleared_away_is_gone(changing: Drawn) -> None:
    store = changing.store
    relu = op(2, tensor(2), module=1)
    store.apply("process", Update(modules=(module(1, tensor(2)),), ops=(relu, replace(relu, id=3))))
    store.clear()
    assert changing.text() == ""
    store.apply("process", Update(counts={3: 9}))
    assert changing.text() == "layer: f32[2]  Layer\n  relu(): ×9  f32[2]\n"


def test_several_processes_are_the_outermost_nodes(changing: Drawn) -> None:
    store = changing.store
    run = Run(("/train.py",), "", None, 4711, 0, 2, "", {})
    store.open_process("session", "other")
    store.apply("process", Update(run=run, ops=(op(1, tensor(2)),)))
    assert changing.text() == "relu(): f32[2]\n"
    other = replace(run, pid=4712, rank=None)
    store.apply("other", Update(run=other, ops=(op(1, tensor(3)),)))
    assert changing.text(pinned=(2, 0)) == plain(
        """
        * train.py: process 4712
          relu(): f32[3]
        rank 0: train.py · process 4711
          relu(): f32[2]
        """
    )
    assert changing.text("f32[3]") == "train.py: process 4712\n  relu(): f32[3]\n"
    assert changing.tree.path((2, 1), "") == [("2", 0), ("2.1", 0)]
    assert [*keys(changing.tree)] == ["0.", "0./torch.relu", "0.rank0", "0.rank0/torch.relu"]
    pin = pin_of(store, (2, 0))
    assert pin is not None
    assert pin.label == "process 4712"
    # What loads data for a rank says to be that rank as well.
    store.apply("other", Update(run=run))
    assert len({*keys(changing.tree)}) == 4


def test_a_session_that_is_over_gives_way_to_the_next(changing: Drawn) -> None:
    store = changing.store
    store.apply("process", Update(ops=(op(1, tensor(2)),)))
    store.close_process("process")
    store.open_process("next", "next")
    assert changing.text() == "relu(): f32[2]\n"
    store.apply("next", Update(ops=(op(1, tensor(3)),)))
    assert changing.text() == "relu(): f32[3]\n"


def test_calls_are_nested_in_whatever_order_they_come() -> None:
    calls: dict[int, Call] = {}
    nesting = Nesting(calls)

    def come(call: Call) -> None:
        calls[call.id] = call
        nesting.add(call)

    come(op(5, module=2))
    come(op(4, module=2))
    assert list(nesting.children(None)) == [4, 5]
    come(replace(module(2), parent=1))
    assert list(nesting.children(None)) == [2]
    assert list(nesting.children(2)) == [4, 5]
    come(module(1))
    assert list(nesting.children(None)) == [1]
    assert list(nesting.above(5)) == [2, 1]
    before = nesting.changes(2)
    come(op(5, module=2))
    assert nesting.changes(2) > before
    come(op(5, module=1))
    assert (list(nesting.children(1)), list(nesting.children(2))) == ([2, 5], [4])


def test_calls_that_are_in_each_other_end_somewhere(tmp_path: Path) -> None:
    calls: dict[int, Call] = {1: replace(module(1), parent=2), 2: replace(module(2), parent=1)}
    nesting = Nesting(calls)
    nesting.add(calls[1])
    nesting.add(calls[2])
    assert len(list(nesting.above(1))) <= 2
