"""Captured values in the trace tree, as text: deeper nodes further right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shapetrace.events.model import Run
from shapetrace.events.update import Update
from shapetrace.server.features.captured_tree import ROOT, CapturedTree
from shapetrace.server.store import TraceStore
from shapetrace.transport.requested import CapturedValue, CaptureNews, RequestedName, Statistics
from tests.python.unit.server.annotated import plain
from tests.python.unit.server.test_store import module, tensor

BINS = (1, 0, 2, 8, 16, 8, 2, 1)


class Tree(CapturedTree):
    """Captured values of some processes."""

    def __init__(self, *processes: str) -> None:
        self.store = TraceStore()
        super().__init__(self.store)
        for process in processes:
            self.begin(process)

    def begin(self, process: str, rank: int | None = None, session: str = "session") -> None:
        self.store.open_process(session, process)
        run = Run(("train.py",), "", None, 1, rank, None, "", {})
        self.store.apply(process, Update(run=run, modules=(module(1, tensor(2)),)))

    def tell(self, process: str, **news: Any) -> None:
        self.store.capture(process, CaptureNews(**news))

    def text(self, filter_: str = "", depth: int = 3) -> str:
        root = self.root(filter_)
        if root is None:
            return ""
        title = f"{root.label}{': ' if root.description else ''}{root.description}\n"
        return title + "".join(f"{line}\n" for line in self.lines(ROOT, filter_, 1, depth))

    def lines(self, parent: str, filter_: str, depth: int, most: int) -> Iterator[str]:
        offset, has_more = 0, True
        while has_more:
            nodes, has_more = self.page(parent, filter_, offset, 2)
            for node in nodes:
                mark = "✗ " if node.is_failed else ""
                row = f": {node.description}" if node.description else ""
                yield f"{'  ' * depth}{mark}{node.label}{row}"
                if depth < most:
                    inside = list(self.lines(node.id, filter_, depth + 1, most))
                    assert bool(inside) == node.has_children
                    yield from inside
            offset += len(nodes)

    def ids(self) -> dict[str, str]:
        """The nodes of paths, names and values by label; of those called alike the last."""
        found: dict[str, str] = {}
        pending = [ROOT]
        while pending:
            for node in self.page(pending.pop(), "", 0, 1000)[0]:
                found[node.label] = node.id
                if node.has_children:
                    pending.append(node.id)
        return found


def value(name: int, ordinal: int, low: float, high: float, **changes: Any) -> CapturedValue:
    statistics = Statistics(38, 38, low, high, (low + high) / 2, bins=BINS)
    given: dict[str, Any] = {
        "iteration": ordinal,
        "mode": "train",
        "kind": "Tensor",
        "dtype": "float32",
        "shape": (2, 19),
        "statistics": statistics,
        **changes,
    }
    return CapturedValue(name, ordinal, **given)


def two_layers() -> Tree:
    tree = Tree("process")
    path = "layers.*.forward"
    tree.tell(
        "process",
        requests=(path, "forward.x", "forward.mask"),
        problems={"forward.mask": "nothing has this path; near it: forward.masks"},
        names=(
            RequestedName(1, "layers.0.forward", path, "Net"),
            RequestedName(2, "layers.1.forward", path, "Net"),
            RequestedName(3, "forward.x", "forward.x", "Net"),
        ),
        items=(value(1, 1, -1, 1), value(1, 2, -1, 3), value(2, 1, 0, 0), value(3, 1, -2, 2)),
    )
    return tree


def test_what_was_asked_for_and_what_came_of_it() -> None:
    tree = two_layers()
    tree.wanted = ("forward.mask", "forward.loss")
    assert tree.text() == plain(
        """
        Captured values: 4 values
          ✗ forward.mask: nothing has this path; near it: forward.masks
          forward.loss: from the next run on
          layers.*.forward: 3 values of 2 names
            layers.0.forward: ×2  f32[2,19]  -1 … 3  mean 0.5  ▂▄█▄▆▄▂▂
              iteration 1: f32[2,19]  -1 … 1  mean 0  ▂▁▂▅█▅▂▂
              iteration 2: f32[2,19]  -1 … 3  mean 1  ▂▁▂▅█▅▂▂
            layers.1.forward: ×1  f32[2,19]  0
              iteration 1: f32[2,19]  0
          forward.x: ×1  f32[2,19]  -2 … 2  mean 0  ▂▁▂▅█▅▂▂
            iteration 1: f32[2,19]  -2 … 2  mean 0  ▂▁▂▅█▅▂▂
        """
    )


def test_before_anything_has_come() -> None:
    tree = Tree()
    assert tree.text() == ""
    tree.wanted = ("forward",)
    assert tree.text() == "Captured values\n  forward: from the next run on\n"
    tree.begin("process")
    assert tree.text() == "Captured values\n  forward: from the next run on\n"
    tree.tell("process", requests=("forward",))
    assert tree.text() == "Captured values\n  forward: nothing yet\n"
    tree.wanted = ()
    assert tree.text() == "Captured values\n  forward: nothing yet\n"


def test_a_text_is_looked_for() -> None:
    tree = two_layers()
    assert tree.text("layers.1") == plain(
        """
        Captured values: 1 value
          layers.*.forward: 1 value of 1 name
            layers.1.forward: ×1  f32[2,19]  0
              iteration 1: f32[2,19]  0
        """
    )
    assert tree.text("mask") == plain(
        """
        Captured values
          ✗ forward.mask: nothing has this path; near it: forward.masks
        """
    )
    assert tree.text("relu") == ""


def test_ranks_stand_below_one_name() -> None:
    tree = Tree()
    for rank in (0, 1):
        tree.begin(f"rank {rank}", rank)
        tree.tell(
            f"rank {rank}",
            requests=("forward",),
            names=(RequestedName(1, "forward", "forward", "Net"),),
            items=(value(1, 1, -rank, 1), value(1, 2, 0, 1, iteration=4)),
        )
    assert tree.text() == plain(
        """
        Captured values: 4 values
          forward: ×4  f32[2,19]  -1 … 1  mean 0.375  ▂▁▂▂▃▅█▂
            iteration 1: rank 0  f32[2,19]  0 … 1  mean 0.5  ▂▁▂▅█▅▂▂
            iteration 1: rank 1  f32[2,19]  -1 … 1  mean 0  ▂▁▂▅█▅▂▂
            iteration 4: rank 0  f32[2,19]  0 … 1  mean 0.5  ▂▁▂▅█▅▂▂
            iteration 4: rank 1  f32[2,19]  0 … 1  mean 0.5  ▂▁▂▅█▅▂▂
        """
    )


def test_models_that_have_the_same_names_are_told_apart() -> None:
    tree = Tree("process")
    names = [RequestedName(n, "forward", "forward", each) for n, each in enumerate("GD")]
    values = (value(0, 1, 0, 0), value(1, 1, 1, 1))
    tree.tell("process", requests=("forward",), names=tuple(names), items=values)
    assert tree.text(depth=2) == plain(
        """
        Captured values: 2 values
          forward: 2 values of 2 names
            forward (G): ×1  f32[2,19]  0
            forward (D): ×1  f32[2,19]  1
        """
    )


def test_values_of_all_kinds() -> None:
    tree = Tree("process")
    kinds = (
        value(1, 1, 0, 0, kind="str", dtype="", shape=None, statistics=None, text="'a'"),
        value(1, 2, 0, 0, statistics=None, shape=(0,)),
        value(1, 3, 0, 0, statistics=Statistics(9, 9, None, None, None, 7, 2)),
        value(1, 4, 0, 0, statistics=Statistics(9, 3, -1.0, 1.0, 0.1, 0, 1, (1, 1)), mode="eval"),
        value(1, 5, 0, 0, kind="int", dtype="", shape=None, text="0", iteration=4),
    )
    tree.tell(
        "process",
        requests=("forward.x",),
        names=(RequestedName(1, "forward.x", "forward.x", "Net"),),
        items=kinds,
    )
    assert tree.text() == plain(
        """
        Captured values: 5 values
          forward.x: ×5  'a' | f32[0] | f32[2,19] | …  -1 … 1  mean 0.01915  7 nan  3 inf  ▂▂▂▂█▂▂▂
            iteration 1: 'a'
            iteration 2: f32[0]
            iteration 3: f32[2,19]  7 nan  2 inf
            iteration 4: 0
            evaluation 4: f32[2,19]  -1 … 1  mean 0.1  1 inf  ██  seen 3 of 9
        """
    )


@pytest.mark.slow
def test_the_newest_are_kept_and_the_rest_counted() -> None:
    tree = Tree("process")
    names = (RequestedName(1, "forward", "forward", "Net"),)
    values = tuple(value(1, number, 0, 1) for number in range(1, 1001))
    tree.tell("process", requests=("forward",), names=names, items=values)
    lines = tree.text().splitlines()
    assert len(lines) == 2 + 256
    assert lines[1].startswith("  forward: ×1,000  f32[2,19]")
    assert lines[2].startswith("    iteration 745: ")
    assert "the newest 256 of 1,000 values" in tree.story(tree.ids()["forward"])


def test_what_is_cleared_is_gone_and_what_comes_then_is_shown() -> None:
    tree = two_layers()
    tree.store.clear()
    tree.store.apply("process", Update(modules=(module(2, tensor(2)),)))
    assert tree.text(depth=1) == plain(
        """
        Captured values
          layers.*.forward: nothing yet
          forward.x: nothing yet
          ✗ forward.mask: nothing has this path; near it: forward.masks
        """
    )
    tree.tell("process", items=(value(3, 2, -2, 2),))
    assert tree.text().splitlines()[2:5] == [
        "  forward.x: ×1  f32[2,19]  -2 … 2  mean 0  ▂▁▂▅█▅▂▂",
        "    iteration 2: f32[2,19]  -2 … 2  mean 0  ▂▁▂▅█▅▂▂",
        "  ✗ forward.mask: nothing has this path; near it: forward.masks",
    ]


def test_a_variable_may_change_more_than_once_in_an_iteration() -> None:
    tree = Tree("process")
    names = (RequestedName(1, "forward.x", "forward.x", "Net"),)
    values = tuple(value(1, number, number, number, iteration=1) for number in (1, 2, 3))
    tree.tell("process", requests=("forward.x",), names=names, items=values)
    labels = [line.partition(":")[0].strip() for line in tree.text().splitlines()[2:]]
    assert labels == ["iteration 1", "iteration 1 (2)", "iteration 1 (3)"]


def test_a_new_run_begins_with_nothing() -> None:
    tree = two_layers()
    tree.store.close_process("process")
    tree.store.close_session("session")
    tree.begin("other", session="later")
    assert tree.text() == ""


def test_nodes_are_known_in_the_next_run() -> None:
    def keys(tree: Tree) -> list[str]:
        return [
            node.key
            for parent in (ROOT, *tree.ids().values())
            for node in tree.page(parent, "", 0, 100)[0]
        ]

    assert keys(two_layers()) == keys(two_layers())


def test_stories() -> None:
    tree = two_layers()
    ids = tree.ids()
    assert tree.story(ids["layers.0.forward"]) == plain(
        """
        ```python
        layers.0.forward
        f32[2,19]
        -1 … 3
        mean 0.5
        ```
        Net · layers.\\*.forward
        """
    ).rstrip("\n")
    assert tree.story(ids["iteration 2"]) == plain(
        """
        ```python
        layers.0.forward
        f32[2,19]
        -1 … 3
        mean 1
        ```
        iteration 2 · process 1  
        38 numbers
        """  # noqa: W291
    ).rstrip("\n")
    assert "near it" in tree.story(ids["forward.mask"])
    assert tree.story("captured") == tree.story("captured/77") == ""


@pytest.mark.parametrize("node", ["captured/", "captured/77", "captured/x", "captured/0/1.1"])
def test_a_node_that_is_not_there_has_nothing_below(node: str) -> None:
    assert Tree("process").page(node, "", 0, 10) == ([], False)
    assert Tree("process").name_of(node) is None


def test_pictures() -> None:
    tree = two_layers()
    nodes, _ = tree.page(tree.ids()["layers.*.forward"], "", 0, 10)
    first, second = nodes
    assert first.histogram is not None
    assert (first.histogram.low, first.histogram.high) == ("-1", "3")
    assert max(first.histogram.heights) == 100
    assert len(first.histogram.heights) == 16
    assert second.histogram is not None
