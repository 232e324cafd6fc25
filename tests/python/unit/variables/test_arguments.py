"""What a call is told to begin with: all of its arguments, whatever their kind, in order."""

from __future__ import annotations

from collections.abc import Callable

from tests.python.unit.variables.programs import Program, text

Load = Callable[..., Program]


def arguments(it: Program) -> list[list[str]]:
    return [[f"{each.name} {text(each.value)}" for each in call.arguments] for call in it.began]


def test_every_kind_of_parameter(program: Load) -> None:
    it = program("""
        @var_tracker("b", "c", handler=told)
        def everything(a, /, b, *rest, c=3, d, **more):
            b += 1  # b
            rest += (9,)
            del c
            c = a  # c

        @var_tracker("rest", handler=told)
        def rest_only(*rest):
            rest = rest[1:]  # rest

        @var_tracker("more", handler=told)
        def named_only(*, x=1, **more):
            more["y"] = x  # more

        @auto_diff(handler=told)
        def nothing():
            return 1
    """)
    it.module.everything(1, 2, 4, 5, d=6, e=7)
    it.module.rest_only(1, 2)
    it.module.named_only(z=1)
    it.module.nothing()
    assert arguments(it) == [
        ["a 1", "b 2", "rest (4, 5)", "c 3", "d 6", "more {e: 7}"],
        ["rest (1, 2)"],
        ["x 1", "more {z: 1}"],
        [],
    ]
    assert it.history() == [
        "b b 2 -> 3 values",
        "c c nothing -> 1 new",
        "rest rest (1, 2) -> (2,) items values",
        "more more {z: 1} -> {z: 1, y: 1} items",
    ]


def test_parameters_that_inner_functions_or_classes_have_as_well(program: Load) -> None:
    it = program("""
        class Private:
            @var_tracker("kept", "hidden", handler=told)
            def method(self, __hidden, kept):
                def inner():
                    nonlocal kept
                    kept = __hidden
                inner()  # inner
                kept = 5  # own
                return kept

        def around():
            outer = [1]
            @var_tracker("outer", handler=told)
            def within(x):
                nonlocal outer
                outer = [*outer, x]  # longer
            return within
    """)
    it.module.Private().method(2, 1)
    it.module.around()(2)
    assert arguments(it) == [["self Private", "_Private__hidden 2", "kept 1"], ["x 2"]]
    assert it.history() == [
        "inner kept 1 -> 2 values",
        "own kept 2 -> 5 values",
        "longer outer [1] -> [1, 2] items",
    ]


def test_a_variable_and_what_is_in_it_are_apart(program: Load) -> None:
    it = program("""
        @var_tracker("sample", "sample['video']", "sample['mask']", handler=told)
        def transform(sample, last):
            sample["video"] = 2  # video
            sample["mask"] = 3  # mask
            sample = last  # all
    """)
    it.module.transform({"video": 1}, {"video": 2})
    assert arguments(it) == [["sample {video: 1}", "last {video: 2}", "sample['video'] 1"]]
    assert it.history() == [
        "video sample {video: 1} -> {video: 2} values",
        "video sample['video'] 1 -> 2 values",
        "mask sample {video: 2} -> {video: 2, mask: 3} items",
        "mask sample['mask'] nothing -> 3 new",
        "all sample {video: 2, mask: 3} -> {video: 2} items",
    ]
