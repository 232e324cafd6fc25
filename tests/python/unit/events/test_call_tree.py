from __future__ import annotations

import dataclasses
import inspect
import random
from pathlib import Path

import pytest

from shapetrace.events import call_tree, codec
from shapetrace.events.model import ModuleCall, Op, Trace

CONTRACT = Path(__file__).parents[3] / "contract"
ORDINARY = codec.load(CONTRACT / "trace_ordinary.json")


def module(identity: int, parent: int | None = None) -> ModuleCall:
    return dataclasses.replace(ORDINARY.modules[0], id=identity, parent=parent, path=str(identity))


def op(identity: int, inside: int | None = None, parent: int | None = None) -> Op:
    level = "torch" if parent is None else "aten"
    return dataclasses.replace(
        ORDINARY.ops[0], id=identity, module=inside, parent=parent, level=level
    )


def trace(*events: ModuleCall | Op) -> Trace:
    return Trace(
        ORDINARY.run,
        modules=tuple(event for event in events if isinstance(event, ModuleCall)),
        ops=tuple(event for event in events if isinstance(event, Op)),
    )


def text(built: call_tree.Tree) -> str:
    """The ids of modules (m) and ops (o), each indented by its depth."""
    lines: list[str] = []
    for depth, node in call_tree.walk(built.roots):
        kind = "o" if isinstance(node.event, Op) else "m"
        lines.append("  " * depth + kind + str(node.event.id))
    return "\n".join(lines)


def check(built: call_tree.Tree, expected: str) -> None:
    assert text(built) == inspect.cleandoc(expected)


def test_modules_ops_and_kernels_nest_in_the_order_of_their_ids() -> None:
    check(
        call_tree.build(ORDINARY),
        """
        m1
          m2
            o3
          o4
          m5
            o6
              o7
          o8
        """,
    )


def test_what_ran_in_no_module_stands_at_the_top_between_the_modules() -> None:
    check(
        call_tree.build(
            trace(op(1), module(2), op(3, inside=2), op(4), module(5), op(6, parent=4))
        ),
        """
        o1
        m2
          o3
        o4
          o6
        m5
        """,
    )


def test_the_order_of_the_lists_does_not_matter() -> None:
    events: list[ModuleCall | Op] = [*ORDINARY.modules, *ORDINARY.ops]
    expected = text(call_tree.build(ORDINARY))
    for seed in range(5):
        random.Random(seed).shuffle(events)
        assert text(call_tree.build(trace(*events))) == expected


def test_a_kernel_seen_before_its_op_still_stands_in_it() -> None:
    check(
        call_tree.build(trace(module(1), op(2, inside=1, parent=3), op(3, inside=1))),
        """
        m1
          o3
            o2
        """,
    )


def test_a_kernel_whose_op_is_unknown_stands_in_its_module() -> None:
    check(
        call_tree.build(trace(module(1), op(2, inside=1, parent=99), op(3, inside=98))),
        """
        m1
          o2
        o3
        """,
    )


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([module(1, parent=1), op(2, inside=1)], "m1\n  o2"),
        ([module(1, parent=2), module(2, parent=1), op(3)], "m1\n  m2\no3"),
        ([module(1, parent=2), module(2, parent=3), module(3, parent=2)], "m1\nm2\n  m3"),
        ([op(1, parent=2), op(2, parent=1)], "o1\n  o2"),
        ([module(1), module(1), op(2, inside=1)], "m1\n  o2\nm1"),
    ],
    ids=["itself", "each other", "below a ring", "kernels", "an id twice"],
)
def test_a_damaged_trace_shows_every_event_once(
    events: list[ModuleCall | Op], expected: str
) -> None:
    assert text(call_tree.build(trace(*events))) == expected


@pytest.mark.slow
def test_no_depth_is_too_deep() -> None:
    depth = 50_000
    built = call_tree.build(trace(*(module(id, parent=id - 1) for id in range(1, depth + 1))))
    assert [node.event.id for _, node in call_tree.walk(built.roots)] == list(range(1, depth + 1))
    assert max(level for level, _ in call_tree.walk(built.roots)) == depth - 1
    assert len(repr(built.roots[0])) < 10_000


def test_nodes_are_frozen() -> None:
    (root,) = call_tree.build(ORDINARY).roots
    with pytest.raises(dataclasses.FrozenInstanceError):
        root.children = ()  # type: ignore[misc]
