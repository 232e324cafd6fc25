"""When a value is another one, and that nobody notices how this was found out."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import shapetrace
from shapetrace.events.followed import FollowedStatistics, FollowedValue
from tests.python.unit.variables.programs import Program, text

Load = Callable[..., Program]


def changes(program: Load, body: str, *values: Any, options: str = "") -> list[str]:
    """What is told of ``x`` by a function with this body."""
    lines = "\n".join(f"            {line}" for line in body.split("; "))
    it = program(f"""
        import collections, types
        @var_tracker("x"{options}, handler=told)
        def f(x, y=None):
{lines}
            return x
    """)
    it.module.f(*values)
    return [" ".join(each.differs) for each in it.changes]


def test_tensors(program: Load) -> None:
    x = torch.ones(4, 3)
    assert changes(program, "y = x.sum(); x = x; y = x.view(-1)", x) == []
    assert changes(program, "x = x.clone()", x) == []
    assert changes(program, "x = x + 1", x) == ["values"]
    assert changes(program, "x.add_(1)", x.clone()) == ["values"]
    assert changes(program, "x.mul_(1)", x) == []
    assert changes(program, "x[1, 1] = 9", x.clone()) == ["values"]
    assert changes(program, "x = x.double()", x) == ["dtype"]
    assert changes(program, "x = x.to('meta')", x) == ["device"]
    assert changes(program, "x = x[:2].half()", x) == ["shape dtype"]
    assert changes(program, "x = x.numpy()", x) == ["kind"]
    assert changes(program, "x = torch.nn.Parameter(x)", x) == ["kind"]
    assert changes(program, "x = x.to_sparse()", x) == ["kind"]
    assert changes(program, "x = None", x) == ["kind"]
    assert changes(program, "x.t_()", x.clone()) == ["shape"]
    assert changes(program, "x.data = x.data.half()", x.clone()) == ["dtype"]
    assert changes(program, "x.resize_(2)", x.clone()) == ["shape"]


def test_a_container_of_another_class_is_told_as_a_whole(program: Load) -> None:
    it = program("""
        Pair = __import__("collections").namedtuple("Pair", "u v")
        @var_tracker("x", handler=told)
        def f(x):
            x = {0: 1, 1: 2}
            x = Pair(1, 2)
            x = (1, 2)
            x = (1, 3)
            return x
    """)
    it.module.f([1, 2])
    assert [len(each.parts) for each in it.changes] == [0, 0, 0, 1]
    assert [" ".join(each.differs) for each in it.changes] == ["kind", "kind", "kind", "values"]


def test_what_is_not_read_is_not_claimed(program: Load) -> None:
    meta = torch.ones(3, device="meta")
    assert changes(program, "x = x + 1; x.add_(1)", meta) == ["assigned", "written"]
    large = torch.zeros(1 << 20)
    assert changes(program, "x = x.clone(); x[12345] = 1; x = x + 1", large) == [
        "assigned",
        "written",
        "values",
    ]
    assert changes(program, "x = x.conj()", torch.ones(3, dtype=torch.complex64) * 1j) == [
        "assigned"
    ]


def test_tensors_of_inference_mode_are_read(program: Load) -> None:
    with torch.inference_mode():
        x = torch.ones(4)
        assert changes(program, "y = x.sum(); x.add_(1); y = x", x) == ["values"]


def test_a_tensor_in_the_place_of_one_that_is_gone_is_another(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def f():
            for i in range(5):
                x = torch.full((3,), float(i))
                del x
    """)
    it.module.f()
    assert [text(each.after) for each in it.changes] == ["f32[3]"] * 5


def test_arrays(program: Load) -> None:
    import numpy as np

    x = np.ones((4, 3))
    assert changes(program, "y = x.sum(); x = x; x = x.copy()", x) == []
    assert changes(program, "x[0, 1] = np.nan; y = x.sum()", x.copy()) == ["values"]
    assert changes(program, "x += 1", x.copy()) == ["values"]
    assert changes(program, "x = x[:, ::2]", x) == ["shape"]
    assert changes(program, "x = x.astype('f4')", x) == ["dtype"]
    assert changes(program, "x = x.tolist()", x) == ["kind"]
    assert changes(program, "x[::-1, 0] = 5", x.copy()[::-1]) == ["values"]
    assert changes(program, "x.shape = (3, 4)", x.copy()) == ["shape"]
    large = np.zeros((1 << 10, 1 << 12))
    assert changes(program, "x[...] = 1; y = 1; x = x.copy(); x = x + 1", large) == [
        "values",
        "assigned",
        "values",
    ]
    assert changes(program, "x = np.float64(2)", np.float64(1)) == ["values"]
    objects = np.array([1, "a", None, object()], dtype=object)
    assert changes(program, "y = len(x); x[2] = 5; x[3] = []; y = x", objects) == [
        "values",
        "values",
    ]


def test_plain_values(program: Load) -> None:
    assert changes(program, "x = 1; x = 1.0; x = True; x = 'a'; x = 'a'; x = None", 1) == [
        "kind",
        "kind",
        "kind",
        "kind",
    ]
    assert changes(program, "x = x + 0.25; x = x + 3", 1.0, options=", tolerance=0.5") == [
        "tolerance",
        "values",
    ]


def test_containers(program: Load) -> None:
    assert changes(program, "x.append(1); y = 2; x[0] = 5; x = list(x); x.pop()", [1, 2]) == [
        "items",
        "values",
        "items",
    ]
    assert changes(program, "x['b'] = torch.ones(2); x['b'] += 1; del x['a']", {"a": 1}) == [
        "items",
        "values",
        "items",
    ]
    assert changes(program, "x.add(3); x.add(3)", {1}) == ["items"]
    assert changes(program, "x = (x[0], torch.ones(2)); x = x[::-1]", (1, 2)) == ["kind", "kind"]
    assert changes(program, "x.a = [1]; x.a.append(2)", _space(a=[])) == ["items", "items"]
    nested: list[Any] = [1]
    nested.append(nested)
    assert changes(program, "y = len(x); x[0] = 2", nested) == ["values"]
    assert changes(program, "x[9000] = 1; x.append(1)", [0] * 10_000) == ["items"]


def _space(**values: Any) -> Any:
    import types

    return types.SimpleNamespace(**values)


class Hostile:
    """An object whose every method is the program's, and raises."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("asked")

    def __bool__(self) -> bool:
        raise AssertionError("asked")

    __hash__ = None  # type: ignore[assignment]
    __repr__ = __str__ = __len__ = __iter__ = __bool__  # type: ignore[assignment]
    __getattr__ = __bool__  # type: ignore[misc]
    __class__ = property(__bool__)


def test_no_code_of_the_programs_is_asked(program: Load) -> None:
    class Items(list[Any]):
        __iter__ = __len__ = __getitem__ = __eq__ = Hostile.__bool__  # type: ignore[assignment]

    class Table(dict[Any, Any]):
        __iter__ = __len__ = __getitem__ = __eq__ = Hostile.__bool__  # type: ignore[assignment]
        keys = values = items = get = Hostile.__bool__  # type: ignore[assignment]

    class Tensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("asked")

    it = program("""
        @var_tracker("x", "x['a']", "x.a", "x[0]", handler=told)
        def f(x, y):
            len([])
            x = y
            len([])
            return x
    """)
    tensor = torch.ones(2).as_subclass(Tensor)
    for value in (Hostile(), Items([1]), Table(a=1), tensor):
        it.events.clear()
        assert it.module.f(value, [value]) is not None
        assert [each.outcome for each in it.ended] == ["returned"]


@pytest.mark.slow
def test_nothing_is_kept_alive_and_nothing_is_noticed(program: Load) -> None:
    it = program("""
        import weakref
        alive = []

        @var_tracker("x", handler=told)
        def f(x):
            x = x * 2
            gone = weakref.ref(x)
            x = x + 1
            alive.append(gone())
            return x
    """)
    x = torch.ones(3, requires_grad=True)
    seen: list[Any] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        result = it.module.f(x)
    assert [each.__name__ for each in seen] == ["mul", "add"]
    assert it.module.alive == [None]
    assert result.grad_fn is not None
    assert result.grad_fn.next_functions[0][0].name() == "MulBackward0"
    result.sum().backward()
    reference = weakref.ref(result)
    del result
    gc.collect()
    assert reference() is None


def test_statistics_are_seen_by_no_mode_or_recording(program: Load) -> None:
    it = program("""
        @var_tracker("x", stats=True, tolerance=0.1, handler=told)
        def f(x):
            x = x * 2
            return x
    """)
    with shapetrace.trace(level="aten") as trace:
        it.module.f(torch.ones(3))
    assert [op.name for op in trace.ops if op.level == "torch"] == [
        "torch.ones",
        "torch.Tensor.mul",
    ]
    assert trace.ops[-1].line == it.changes[0].line
    found = it.changes[0].after.statistics
    assert found is not None
    assert (found.low, found.high, found.mean, found.total) == (2, 2, 2, 3)


def test_statistics_read_a_bounded_part(program: Load) -> None:
    it = program("""
        @auto_diff(stats=True, handler=told)
        def f(x):
            return x
    """)
    import numpy as np

    array = np.zeros((1 << 12, 1 << 12), "f4")
    array[:, 0] = np.nan
    it.module.f(array)
    found = statistics_of(it.ended[0].value)
    assert found.total == 1 << 24
    assert 0 < found.seen <= 5 << 20
    assert found.not_numbers > 0
    it.module.f(np.array([True, False, True]))
    found = statistics_of(it.ended[-1].value)
    assert (found.true, found.total) == (2, 3)


def statistics_of(value: FollowedValue | None) -> FollowedStatistics:
    assert value is not None
    assert value.statistics is not None
    return value.statistics


def test_torch_jit_trace_writes_nothing_of_it_down(program: Load) -> None:
    it = program("""
        from shapetrace import _log_change

        @var_tracker("x", handler=told)
        def f(x):
            x = x * 2
            _log_change("f", "x", (x,))
            return x

        def g(x):
            x = x * 2
            return x
    """)
    x = torch.ones(2)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*torch.jit", DeprecationWarning)
        graphs = [
            torch.jit.trace(each, x, check_trace=False).graph for each in (it.module.f, it.module.g)
        ]
    kinds = [[node.kind() for node in graph.nodes()] for graph in graphs]
    assert kinds[0] == kinds[1]
    assert it.events == []
    it.module.f(x)
    assert len(it.changes) == 1


@pytest.mark.parametrize("compiled", [False, True])
def test_torch_compile_passes_it_by(program: Load, compiled: bool) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def f(x):
            x = x * 2
            return x
    """)
    function = torch.compile(it.module.f, backend="eager", fullgraph=True) if compiled else None
    result = (function or it.module.f)(torch.ones(2))
    assert result.tolist() == [2, 2]
    assert len(it.began) == (0 if compiled else 1)


def test_keys_that_look_alike_are_told_apart(program: Load) -> None:
    it = program("""
        class Key:
            pass

        @var_tracker("d", handler=told)
        def f():
            one, other = Key(), Key()
            d = {(0, 1): 1, (2, 3): 2, one: 3, other: 4}
            d[(0, 1)] = 5
            d[one] = 6
    """)
    it.module.f()
    assert [[part.path for part in each.parts] for each in it.changes[1:]] == [
        ["[(0, 1)]"],
        ["[Key]"],
    ]
    assert [text(part.before) for each in it.changes[1:] for part in each.parts] == ["1", "3"]


def test_a_part_that_comes_into_sight_is_not_said_to_be_new(program: Load) -> None:
    it = program("""
        @var_tracker("d", handler=told)
        def f(d):
            del d[3]
            d[70] = 1
    """)
    it.module.f(dict.fromkeys(range(70), 0))
    assert [each.parts for each in it.changes] == [(), ()]
    assert [each.differs for each in it.changes] == [("items",), ("items",)]


def test_small_differences_of_numbers_are_seen_and_called_so(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def exact():
            x = {(0, 1)}
            x = {(2, 3)}
            x = 0.0
            x = -0.0
            x = -0.0

        @var_tracker("x", tolerance=0.01, handler=told)
        def near():
            x = np.float32(1)
            x = np.float32(1.001)
            x = np.float32(2)
    """)
    it.module.exact()
    assert [each.differs for each in it.changes] == [("new",), ("items",), ("kind",), ("values",)]
    it.events.clear()
    it.module.near()
    assert [each.differs for each in it.changes] == [("new",), ("tolerance",), ("values",)]


def test_the_mask_of_a_masked_array_belongs_to_it(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def f():
            x = np.ma.array([1.0, 2.0, 3.0])
            x[0] = np.ma.masked  # first
            x[1] = np.ma.masked  # second
            x.mean()
    """)
    it.module.f()
    assert [(each.line, each.differs) for each in it.changes[1:]] == [
        (it.line("first"), ("values",)),
        (it.line("second"), ("values",)),
    ]


def test_gradients_can_be_followed(program: Load) -> None:
    it = program("""
        @var_tracker("x.grad", "y.grad", handler=told)
        def f(x):
            y = x * 2  # kept_by_nobody
            y.sum().backward()  # backward
            x.grad.zero_()  # zeroed
            x.grad = None  # none
    """)
    it.module.f(it.module.torch.ones(2, requires_grad=True))
    assert it.history() == [
        "backward x.grad None -> f32[2] kind",
        "zeroed x.grad f32[2] -> f32[2] values",
        "none x.grad f32[2] -> None kind",
    ]
