"""Random programs with one edit: exactly that is what differs, wherever it is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from shapetrace.comparing.compare import compare
from shapetrace.comparing.comparison import Comparison, Difference
from shapetrace.events.model import ModuleCall, Op
from tests.python.unit.comparing.worlds import Call, World, random_op, random_world
from tests.support.examples import some

SEEDS = range(some(12))

Comparer = Callable[[World, World], Comparison]


def with_the_same_file(a: World, b: World) -> Comparison:
    """As where a value or an environment differs: both lie in one file, at the same lines."""
    return compare(a.trace(), b.trace())


def with_sources(a: World, b: World) -> Comparison:
    """As where two checkouts lie in two folders."""
    b.folder = "/home/ben/project"
    sources = {f"{world.folder}/model.py": world.text().encode() for world in (a, b)}
    return compare(a.trace(), b.trace(), read_source=sources.get)


def without_sources(a: World, b: World) -> Comparison:
    """As where the file was edited between the runs."""
    b.folder = "/home/ben/project"
    return compare(a.trace(), b.trace())


every_way = pytest.mark.parametrize("comparer", [with_sources, without_sources])
every_seed = pytest.mark.parametrize("seed", SEEDS)


def described(difference: Difference) -> tuple[str, str | None, str | None]:
    return (difference.kind, label(difference.a), label(difference.b))


def label(event: Op | ModuleCall | None) -> str | None:
    if event is None:
        return None
    return event.label if isinstance(event, Op) else event.path


def told(comparison: Comparison) -> list[tuple[str, str | None, str | None]]:
    return [described(difference) for difference in comparison.differences]


def some_op(world: World, chance: random.Random) -> tuple[list[Call], int]:
    """A place where an op stands."""
    places = [
        (block, at)
        for block in world.blocks()
        for at, call in enumerate(block)
        if not call.class_name
    ]
    return chance.choice(places)


@every_seed
def test_a_program_is_like_itself(seed: int) -> None:
    world = random_world(seed, with_values=True)
    comparison = with_the_same_file(world, world.copy())
    assert not comparison.differ
    assert comparison.first is None
    assert comparison.alike == comparison.compared == len(world.ops())


@pytest.mark.slow
@every_way
@every_seed
def test_code_that_moved_is_the_same_code(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    moved = world.copy()
    moved.calls.insert(0, Call("seed"))
    comparison = comparer(world, moved)
    assert told(comparison) == [("only", None, "seed()")]
    assert comparison.alike == len(world.ops())


@every_way
@every_seed
def test_an_op_that_was_removed(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    edited = world.copy()
    block, at = some_op(edited, random.Random(seed))
    gone = block.pop(at)
    comparison = comparer(world, edited)
    assert told(comparison) == [("only", f"{gone.name}({gone.label})", None)]
    assert comparison.alike == len(edited.ops())


@pytest.mark.slow
@every_way
@every_seed
def test_an_op_that_was_put_in(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    edited = world.copy()
    chance = random.Random(seed)
    block, at = some_op(edited, chance)
    new = random_op(chance)
    block.insert(at, new)
    comparison = comparer(world, edited)
    assert told(comparison) == [("only", None, f"{new.name}({new.label})")]
    assert comparison.alike == len(world.ops())


@every_way
@every_seed
def test_another_shape(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    edited = world.copy()
    block, at = some_op(edited, random.Random(seed))
    block[at].shape = (3, 3, 3)
    comparison = comparer(world, edited)
    text = f"{block[at].name}({block[at].label})"
    assert told(comparison) == [("shape", text, text)]
    assert comparison.first is not None
    assert comparison.first.alike_before == edited.ops().index(block[at])


@pytest.mark.slow
@every_way
@every_seed
def test_another_argument(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    edited = world.copy()
    block, at = some_op(edited, random.Random(seed))
    before = f"{block[at].name}({block[at].label})"
    block[at].label = "eps=1e-5"
    comparison = comparer(world, edited)
    assert told(comparison) == [("arguments", before, f"{block[at].name}(eps=1e-5)")]


@every_way
@every_seed
def test_another_op(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    edited = world.copy()
    block, at = some_op(edited, random.Random(seed))
    before = f"{block[at].name}({block[at].label})"
    block[at].name, block[at].label = "gelu", ""
    assert told(comparer(world, edited)) == [("op", before, "gelu()")]


@pytest.mark.slow
@every_seed
def test_other_values_are_found_where_they_begin(seed: int) -> None:
    world = random_world(seed, with_values=True)
    edited = world.copy()
    ops = edited.ops()
    at = random.Random(seed).randrange(len(ops))
    for op in ops[at:]:
        op.value *= 1.5
    comparison = with_the_same_file(world, edited)
    assert comparison.first is not None
    assert comparison.first.kind == "values"
    assert label(comparison.first.a) == f"{ops[at].name}({ops[at].label})"
    assert comparison.first.alike_before == at
    assert comparison.alike == at


@every_way
@every_seed
def test_a_renamed_module_is_the_same_module(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    edited = world.copy()
    chosen = random.Random(seed).choice(edited.modules()[1:])
    old, chosen.name = chosen.name, "stage"
    comparison = comparer(world, edited)
    assert [(item.kind, item.b) for item in comparison.throughout] == [("name", "stage")]
    assert comparison.throughout[0].a == old
    assert told(comparison) == []
    assert comparison.alike == len(world.ops())


@pytest.mark.slow
@every_way
@every_seed
def test_a_module_around_others(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    edited = world.copy()
    root = edited.modules()[0]
    root.inside = [Call("inner", class_name="Wrapper", inside=root.inside)]
    comparison = comparer(world, edited)
    assert told(comparison) == [("only", None, "net.inner")]
    assert comparison.differences[0].inside == 0
    assert comparison.alike == len(world.ops())


@every_way
@every_seed
def test_a_module_that_was_removed(seed: int, comparer: Comparer) -> None:
    world = random_world(seed)
    edited = world.copy()
    chance = random.Random(seed)
    block = chance.choice([b for b in edited.blocks() if any(call.class_name for call in b)][1:])
    at = chance.choice([at for at, call in enumerate(block) if call.class_name])
    gone = World([block.pop(at)])
    comparison = comparer(world, edited)
    assert [(item.kind, item.b) for item in comparison.differences] == [("only", None)]
    assert comparison.differences[0].inside == len(gone.ops())
    assert comparison.alike == len(edited.ops())


@pytest.mark.slow
@every_seed
def test_calls_in_another_order(seed: int) -> None:
    world = random_world(seed)
    chance = random.Random(seed)
    world.modules()[0].inside[0:0] = [Call("first", "1"), Call("second", "2"), Call("third", "3")]
    edited = world.copy()
    inside = edited.modules()[0].inside
    inside.insert(chance.choice((2, len(inside))), inside.pop(chance.choice((0, 1))))
    comparison = without_sources(world, edited)
    assert {item.kind for item in comparison.differences} <= {"order"}
    assert comparison.alike + len(comparison.differences) == len(world.ops())


@pytest.mark.slow
@every_seed
def test_many_edits_and_the_other_way_round(seed: int) -> None:
    world = random_world(seed, with_values=True)
    edited = world.copy()
    chance = random.Random(seed)
    edits = chance.randint(1, 8)
    for _ in range(edits):
        block, at = some_op(edited, chance)
        match chance.randrange(5):
            case 0 if len(block) > 1:
                block.pop(at)
            case 1:
                block.insert(at, random_op(chance))
            case 2:
                block[at].shape = (7, chance.randint(1, 9))
            case 3:
                block[at].value *= 2
            case _:
                block[at].device = "cuda:0"
    forth = without_sources(world, edited)
    back = compare(edited.trace(), world.trace())
    assert len(forth.differences) <= edits
    assert [(kind, b, a) for kind, a, b in told(forth)] == told(back)
    assert (forth.alike, forth.compared) == (back.alike, back.compared)
