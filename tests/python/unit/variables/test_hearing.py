"""What is told of calls and of variables, and on which lines."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.python.unit.variables.programs import Program, text

Load = Callable[..., Program]


def test_each_change_is_told_at_the_line_that_made_it(program: Load) -> None:
    it = program("""
        @var_tracker("video", handler=told)
        def transform(video):
            video = torch.from_numpy(video)  # tensor
            video = video.permute(1, 0, 2)  # permuted
            other = video.float()  # nothing
            video = other  # floats
            video.mul_(2)  # in_place
            video = video[:1]  # last
            return video
    """)
    it.module.transform(it.module.np.ones((2, 3, 4), "uint8"))
    assert it.history() == [
        "tensor video u8[2,3,4] -> u8[2,3,4] kind",
        "permuted video u8[2,3,4] -> u8[3,2,4] shape",
        "floats video u8[3,2,4] -> f32[3,2,4] dtype",
        "in_place video f32[3,2,4] -> f32[3,2,4] values",
        "last video f32[3,2,4] -> f32[1,2,4] shape",
    ]
    assert text(it.ended[0].value) == "f32[1,2,4]"
    assert it.ended[0].outcome == "returned"


def test_a_call_is_told_with_arguments_and_callers(program: Load) -> None:
    it = program("""
        class Dataset:
            def __getitem__(self, index):
                return self.transform(torch.ones(2), "left", flag=index)  # call

            @auto_diff(handler=told)
            def transform(self, video, /, *rest, scale=1.5, **more):  # def
                return {"video": video, "pair": (1, None)}

        def main():
            return Dataset()[3]  # main
    """)
    it.module.main()
    (began,) = it.began
    assert [(each.name, text(each.value)) for each in began.arguments] == [
        ("self", "Dataset"),
        ("video", "f32[2]"),
        ("rest", "('left',)"),
        ("scale", "1.5"),
        ("more", "{flag: 3}"),
    ]
    assert (began.function, began.line) == ("Dataset.transform", it.line("def"))
    assert [(each.function, each.line) for each in began.callers[:2]] == [
        ("Dataset.__getitem__", it.line("call")),
        ("main", it.line("main")),
    ]
    assert text(it.ended[0].value) == "{video: f32[2], pair: (1, None)}"
    assert it.ended[0].seconds >= 0


def test_calls_nest_and_recursion_does_not_mix(program: Load) -> None:
    it = program("""
        @var_tracker("n", handler=told)
        def outer(n):
            n = n - 1  # less
            if n:
                outer(n)
            inner(n)
            n = n + 10  # more
            return n

        @var_tracker("n", handler=told)
        def inner(x):
            n = x * 100  # hundred
    """)
    it.module.outer(2)
    assert it.history() == [
        "less n 2 -> 1 values",
        "less n 1 -> 0 values",
        "hundred n nothing -> 0 new",
        "more n 0 -> 10 values",
        "hundred n nothing -> 100 new",
        "more n 1 -> 11 values",
    ]
    assert [(each.function, each.depth) for each in it.began] == [
        ("outer", 0),
        ("outer", 1),
        ("inner", 2),
        ("inner", 1),
    ]
    first, second, third, fourth = it.began
    assert (second.parent, third.parent, fourth.parent) == (first.call, second.call, first.call)
    assert len({each.call for each in it.began}) == 4


def test_a_variable_of_a_callee_is_not_the_callers(program: Load) -> None:
    it = program("""
        def helper():
            a = 100
            return a

        @var_tracker("a", handler=told)
        def f():
            a = 1  # one
            helper()
            b = helper()
            return a
    """)
    it.module.f()
    assert it.history() == ["one a nothing -> 1 new"]


def test_what_a_callee_changes_in_place_is_told_at_the_call(program: Load) -> None:
    it = program("""
        def fill(tensor, array, sample):
            tensor.zero_()
            array[0] = 7
            sample["mask"] = array
            sample["list"].append(1)

        @var_tracker("tensor", "array", "sample", handler=told)
        def f(tensor, array, sample):
            fill(tensor, array, sample)  # call
    """)
    np, torch = it.module.np, it.module.torch
    it.module.f(torch.ones(2), np.ones(2), {"list": []})
    assert it.history() == [
        "call array f64[2] -> f64[2] values",
        "call sample {list: []} -> {list: [1], mask: f64[2]} items",
        "call tensor f32[2] -> f32[2] values",
    ]
    (changed,) = [each for each in it.changes if each.name == "sample"]
    assert [each.path for each in changed.parts] == ["['list'][0]", "['mask']"]


def test_attributes_and_items_are_followed(program: Load) -> None:
    it = program("""
        import collections
        from dataclasses import dataclass

        @dataclass
        class Cache:
            k: object = None

        Pair = collections.namedtuple("Pair", "left right")

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cache = Cache()
                self.register_buffer("mean", torch.zeros(2))
                self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2)])

            @var_tracker("self.cache.k", "self.mean", "outs[-1]", "pair.left", "x.y",
                         "self.layers[0].weight", "outs['no']", handler=told)
            def run(self, x):
                self.cache.k = x  # cached
                self.helper()  # helper
                outs = []
                outs.append(x)  # appended
                pair = Pair(1, 2)  # pair
                with torch.no_grad():
                    self.layers[0].weight.mul_(2)  # weight

            def helper(self):
                self.cache.k = self.cache.k.half()
                self.mean += 1
    """)
    it.module.Net().run(it.module.torch.ones(3))
    assert it.history() == [
        "cached self.cache.k None -> f32[3] kind",
        "helper self.cache.k f32[3] -> f16[3] dtype",
        "helper self.mean f32[2] -> f32[2] values",
        "appended outs[-1] nothing -> f32[3] new",
        "pair pair.left nothing -> 1 new",
        "weight self.layers[0].weight f32[2,2] -> f32[2,2] values",
    ]
    named = {each.name for each in it.began[0].arguments if not each.argument}
    assert named == {"self.cache.k", "self.mean", "self.layers[0].weight"}


def test_a_name_that_is_never_assigned_is_said_once(program: Load) -> None:
    it = program("""
        @var_tracker("vidoe", "z.y", handler=told)
        def transform(video):
            return video
    """)
    it.module.transform(1)
    it.module.transform(1)
    assert it.notes == [
        "transform never assigns 'vidoe'; did you mean 'video'?",
        "transform never assigns 'z'",
    ]


def test_generators_are_neither_run_nor_copied(program: Load) -> None:
    it = program("""
        @var_tracker("source", "x", handler=told)
        def f(source):
            x = (i for i in range(3))
            return x

        @var_tracker("x", handler=told)
        def steps(n):
            for x in range(n):  # loop
                yield x
    """)
    given = iter([1, 2])
    made = it.module.f(given)
    assert list(made) == [0, 1, 2]
    assert list(given) == [1, 2]
    assert text(it.ended[0].value) == "generator"
    it.events.clear()
    assert list(it.module.steps(2)) == [0, 1]
    assert it.history() == ["loop x nothing -> 0 new", "loop x 0 -> 1 values"]
    assert (it.began[0].flavor, it.ended[0].outcome) == ("generator", "returned")
    it.events.clear()
    started = it.module.steps(2)
    next(started)
    started.close()
    assert [each.outcome for each in it.ended] == ["closed"]


def test_generators_in_turns_have_their_own_callers(program: Load) -> None:
    it = program("""
        @auto_diff(handler=told)
        def one():
            yield 1
            leaf()
            yield 2

        @auto_diff(handler=told)
        def leaf():
            pass

        @auto_diff(handler=told)
        def main():
            first, second = one(), one()
            next(first); next(second)
            leaf()
            next(first)
            first.close(); second.close()
    """)
    it.module.main()
    parents = [(each.function, each.parent) for each in it.began]
    calls = [each.call for each in it.began]
    assert parents == [
        ("main", None),
        ("one", calls[0]),
        ("one", calls[0]),
        ("leaf", calls[0]),
        ("leaf", calls[1]),
    ]


def test_coroutines_in_turns_do_not_mix(program: Load) -> None:
    it = program("""
        import asyncio

        @var_tracker("x", handler=told)
        async def work(x):
            await asyncio.sleep(0)
            x = await double(x)  # doubled
            await asyncio.sleep(0)
            return x

        @auto_diff(handler=told)
        async def double(x):
            await asyncio.sleep(0)
            return x * 2

        @var_tracker("x", handler=told)
        async def items(x):
            yield x
            x = x + 1  # next
            yield x

        @auto_diff(handler=told)
        async def main():
            both = await asyncio.gather(work(1), work(2))
            return both, [each async for each in items(5)]
    """)
    assert asyncio.run(it.module.main()) == ([2, 4], [5, 6])
    assert it.history() == [
        "doubled x 1 -> 2 values",
        "doubled x 2 -> 4 values",
        "next x 5 -> 6 values",
    ]
    workers = [each for each in it.began if each.function == "work"]
    doubles = [each for each in it.began if each.function == "double"]
    assert [each.parent for each in doubles] == [each.call for each in workers]
    assert {each.thread for each in workers} != {None}
    assert [each.flavor for each in it.began if each.function == "items"] == ["async generator"]
    assert {each.outcome for each in it.ended} == {"returned"}


def test_threads_do_not_mix(program: Load) -> None:
    it = program("""
        import threading
        barrier = threading.Barrier(2, timeout=60)

        @var_tracker("x", handler=told)
        def work(x):
            barrier.wait()
            leaf()
            barrier.wait()
            x = x + 1  # more
            return x

        @auto_diff(handler=told)
        def leaf():
            barrier.wait()
    """)
    threads = [threading.Thread(target=it.module.work, args=(at,), name=f"T{at}") for at in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    works = {each.call: each.thread for each in it.began if each.function == "work"}
    assert sorted(map(str, works.values())) == ["T1", "T2"]
    for leaf in (each for each in it.began if each.function == "leaf"):
        assert leaf.parent is not None
        assert works[leaf.parent] == leaf.thread
    assert sorted((each.thread, text(each.after)) for each in it.changes) == [
        ("T1", "2"),
        ("T2", "3"),
    ]


def test_an_exception_ends_the_call_and_nothing_else(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def f(x, error):
            x = x + 1  # more
            if error is not None:
                raise error  # raise
            return x
    """)
    for error in (ValueError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            it.module.f(1, error)
        assert caught.value is error
        assert (it.ended[-1].outcome, it.ended[-1].line) == ("raised", it.line("raise"))
        names = [each.name for each in caught.traceback]
        assert names[-1] == "f"
        assert len(names) == 2
    it.module.f(1, None)
    assert len(it.changes) == 3
    assert it.ended[-1].outcome == "returned"
    assert it.began[-1].depth == 0


def test_methods_of_every_kind_are_followed(program: Load) -> None:
    it = program("""
        import functools

        class A:
            @auto_diff(handler=told)
            @classmethod
            def outside(cls): return 1
            @classmethod
            @auto_diff(handler=told)
            def inside(cls): return 2
            @staticmethod
            @auto_diff(handler=told)
            def static(): return 3
            @auto_diff(handler=told)
            @property
            def prop(self): return 4
            @property
            @auto_diff(handler=told)
            def getter(self): return 5
            @auto_diff(handler=told)
            @functools.cached_property
            def cached(self): return 6
            @auto_diff(handler=told)
            @functools.lru_cache
            def memo(self): return 7
            @auto_diff(handler=told)
            @torch.no_grad()
            def quiet(self): return 8
            @torch.no_grad()
            @auto_diff(handler=told)
            def loud(self): return 9
    """)
    a = it.module.A()
    got = [a.outside(), a.inside(), a.static(), a.prop, a.getter, a.cached, a.memo()]
    assert [*got, a.quiet(), a.loud()] == [*range(1, 10)]
    assert [text(each.value) for each in it.ended] == [str(at) for at in range(1, 10)]
    assert isinstance(vars(it.module.A)["prop"], property)


def test_a_decorated_function_is_the_function_itself(program: Load) -> None:
    it = program("""
        import functools

        def plain(x: int, *, y: str = "a") -> float:
            '''What it does.'''
            x = y
            return x

        before = plain
        code = plain.__code__
        followed = var_tracker("x", handler=told)(plain)

        @var_tracker("x", handler=told)
        async def later(x): return x
    """)
    followed: Any = it.module.followed
    assert followed is it.module.before
    assert (
        str(inspect.signature(followed)) == "(x: 'int', *, y: 'str' = 'a') -> 'float'"
        or str(inspect.signature(followed)) == "(x: int, *, y: str = 'a') -> float"
    )
    assert followed.__doc__ == "What it does."
    assert inspect.getsource(followed).startswith("def plain")
    assert followed.__code__.co_varnames == it.module.code.co_varnames
    assert followed.__code__.co_firstlineno == it.module.code.co_firstlineno
    assert inspect.iscoroutinefunction(it.module.later)
    assert pickle.loads(pickle.dumps(followed)) is followed


def test_functions_in_functions_share_their_code(program: Load) -> None:
    it = program("""
        def make(k):
            @var_tracker("y", handler=told)
            def inner(x):
                y = x + k  # sum
                return y
            return inner
    """)
    first, second = it.module.make(1), it.module.make(10)
    assert (first(1), second(1)) == (2, 11)
    assert it.history() == ["sum y nothing -> 2 new", "sum y nothing -> 11 new"]
    assert first.__code__ is second.__code__
    assert it.began[0].function == "make.<locals>.inner"


def test_two_decorators_on_one_function_tell_once(program: Load) -> None:
    it = program("""
        @var_tracker("a", handler=told)
        @var_tracker("b", handler=told)
        @auto_diff(handler=told)
        def f(a):
            a = a + 1  # first
            b = a  # second
            return b
    """)
    assert it.module.f(1) == 2
    assert len(it.began) == len(it.ended) == 1
    assert it.history() == ["first a 1 -> 2 values", "second b nothing -> 2 new"]


@pytest.mark.parametrize("is_captured_first", [True, False])
def test_captured_functions_can_be_followed(program: Load, is_captured_first: bool) -> None:
    it = program("""
        from shapetrace import ModelTracer

        def make():
            class Net(torch.nn.Module):
                def forward(self, x):
                    h = x * 2  # twice
                    return h
            return Net()
    """)
    model = it.module.make()
    follow = it.module.var_tracker("h", handler=it.events.append)
    if not is_captured_first:
        follow(type(model).forward)
    with it.module.ModelTracer(model, ["forward.h"]) as tracer:
        if is_captured_first:
            follow(type(model).forward)
        model(it.module.torch.ones(2))
    assert it.history() == ["twice h nothing -> f32[2] new"]
    assert tracer.problems == []
    assert len(tracer.results["forward.h"].values) == 1
    model(it.module.torch.ones(2))
    assert len(it.changes) == 2


def test_calls_that_a_handler_makes_are_not_told(program: Load) -> None:
    it = program("""
        heard = []

        def handler(event):
            heard.append(event)
            f(0)

        @auto_diff(handler=handler)
        def f(x):
            return x
    """)
    it.module.f(1)
    assert len(it.module.heard) == 2


def test_a_mistake_of_ours_is_said_once_and_is_not_the_programs(
    program: Load, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = program("""
        @var_tracker("x", "y", handler=told)
        def f(x):
            x = x + 1
            y = x
            return x
    """)

    def broken(*values: object) -> None:
        raise RuntimeError("ours")

    with monkeypatch.context() as patches:
        patches.setattr("shapetrace.variables.variable_listener.differences", broken)
        assert (it.module.f(1), it.module.f(2)) == (2, 3)
    assert capsys.readouterr().err == "shapetrace: something is missing of f: RuntimeError: ours\n"
    assert len(it.began) == len(it.ended) == 2
    assert it.changes == []
    it.module.f(1)
    assert len(it.changes) == 2


def test_a_handler_that_fails_is_left_out(
    program: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    it = program("""
        def handler(event):
            raise ValueError("mine")

        @auto_diff(handler=handler)
        def f(x):
            return x
    """)
    assert (it.module.f(1), it.module.f(2)) == (1, 2)
    error = capsys.readouterr().err
    assert error == (
        "shapetrace: the handler of followed values has failed and is left out: ValueError: mine\n"
    )
