"""Repeated calls merge and count; past sixteen signatures a place widens to ranges."""

from __future__ import annotations

from typing import Any

from tests.support.recorder import Harmless, Traced, outline, unindented


def test_repeated_calls_count(harmless: Harmless) -> None:
    trace = harmless(
        """
        net, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), torch.ones(2, 3)

        def main():
            for _ in range(5):
                y = net(x) * 2
            return y
        """
    )
    assert outline(trace) == unindented(
        """
        root: Sequential(f32[2,3]) -> f32[2,3] ×5
          0: Linear(f32[2,3]) -> f32[2,3] ×5
            linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] ×5 inside
          1: ReLU(f32[2,3]) -> f32[2,3] ×5
            relu() (f32[2,3]) -> f32[2,3] ×5 inside
        * (f32[2,3]) -> f32[2,3] ×5
        """
    )
    assert trace.run.passes == 5


def test_an_instruction_is_one_place_whether_the_interpreter_has_specialized_it(
    traced: Traced,
) -> None:
    """``parts[0]`` is such a place up to 3.12, a property or a generator in 3.12 alone."""
    trace = traced(
        """
        import asyncio

        class Parts:
            def __init__(self):
                self.x = torch.ones(2, 3)
            @property
            def twice(self):
                return self.x * 2
            def __getitem__(self, index):
                return self.x + index
            def __iter__(self):
                for number in range(30):
                    yield self.x - number

        async def part(parts):
            await asyncio.sleep(0)
            return parts.x / 3

        async def whole(parts):
            for _ in range(30):
                await part(parts)

        def passed_on(parts):
            yield from parts

        def alternating(kinds):
            for each in kinds:
                for part in each:
                    pass

        def main():
            parts = Parts()
            for _ in range(30):
                parts.twice, parts[0]
            for part in parts:
                pass
            for part in passed_on(parts):
                pass
            alternating([[1, 2, 3], parts, (4, 5, 6), parts] * 3)
            asyncio.run(whole(parts))
        """
    )
    assert sorted((op.label, op.count) for op in trace.ops) == [
        ("*", 30),
        ("+", 30),
        ("-", 30),
        ("-", 30),
        ("-", 180),
        ("/", 30),
        ("ones(2, 3)", 1),
    ]


def test_other_inputs_are_another_call_of_the_module(harmless: Harmless) -> None:
    trace = harmless(
        """
        net = nn.Sequential(nn.Linear(3, 3))

        def main():
            return [net(torch.ones(size, 3)) for size in (1, 2, 1, 2, 2)]
        """
    )
    assert outline(trace) == unindented(
        """
        ones(1, 3) () -> f32[1,3] ×2
        root: Sequential(f32[1,3]) -> f32[1,3] ×2
          0: Linear(f32[1,3]) -> f32[1,3] ×2
            linear() (f32[1,3], f32[3,3], f32[3]) -> f32[1,3] ×2 inside
        ones(2, 3) () -> f32[2,3] ×3
        root: Sequential(f32[2,3]) -> f32[2,3] ×3
          0: Linear(f32[2,3]) -> f32[2,3] ×3
            linear() (f32[2,3], f32[3,3], f32[3]) -> f32[2,3] ×3 inside
        """
    )
    assert [call.call for call in trace.modules if call.path == ""] == [1, 2]


def test_each_variant_has_the_arguments_it_was_called_with(traced: Traced) -> None:
    trace = traced(
        """
        x = torch.ones(4, 3)

        def main():
            for size in (2, 3, 6, 2):
                x.view(size, -1)
            for dtype in (torch.float64, torch.int64):
                torch.zeros(2, dtype=dtype)
            for _ in range(50):
                for dim in (0, 1):
                    x.sum(dim)
        """
    )
    assert outline(trace) == unindented(
        """
        view(2, -1) (f32[4,3]) -> f32[2,6] ×2
        view(3, -1) (f32[4,3]) -> f32[3,4]
        view(6, -1) (f32[4,3]) -> f32[6,2]
        zeros(2, dtype=torch.float64) () -> f64[2]
        zeros(2, dtype=torch.int64) () -> i64[2]
        sum(0) (f32[4,3]) -> f32[3] ×50
        sum(1) (f32[4,3]) -> f32[4] ×50
        """
    )


def test_calls_from_other_places_and_contexts_stay_apart(traced: Traced) -> None:
    trace = traced(
        """
        x = torch.ones(3)

        def helper(t):
            return t + 1

        def main():
            helper(x)
            helper(x)
            x.sin().sin()
        """
    )
    assert [(op.label, op.count, len(op.stack)) for op in trace.ops] == [
        ("+", 1, 3),
        ("+", 1, 3),
        ("sin()", 1, 2),
        ("sin()", 1, 2),
    ]
    assert len({op.stack for op in trace.ops}) == 4


def test_operation_widens_past_sixteen_signatures(traced: Traced) -> None:
    trace = traced(
        """
        def main():
            for size in range(1, 101):
                x = torch.ones(size, 4) * 2
                y = x.nonzero()
        """
    )
    lines = outline(trace).splitlines()
    assert len(lines) < 60
    assert lines[-1] == "nonzero() (f32[17..100,4]) -> i64[68..400,2] ×84"
    assert "* (f32[17..100,4]) -> f32[17..100,4] ×84" in lines
    assert "ones(17, 4) () -> f32[17..100,4] ×84" in lines or any(
        line.startswith("ones(") and "..100,4]" in line for line in lines
    )


def test_module_widens_with_all_that_is_in_it(traced: Traced) -> None:
    trace = traced(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

            def forward(self, x, *, mask=None):
                for layer in self.layers:
                    x = layer(x)
                return x, {"sizes": [x[0], x[:1]]}

        net = Net()

        def main():
            for size in range(1, 101):
                net(torch.ones(size, 4), mask=torch.ones(size))
        """
    )
    (wide,) = [call for call in trace.modules if call.count == 84]
    assert wide.path == ""
    inside = [call for call in trace.modules if call.parent == wide.id]
    assert [(call.path, call.count) for call in inside] == [
        ("layers.0", 1),
        ("layers.1", 1),
        ("layers.0", 83),
        ("layers.1", 83),
    ]
    lines = [line.strip() for line in outline(trace).splitlines()]
    assert (
        "root: Net(f32[17..100,4], f32[17..100]) -> "
        "(f32[17..100,4], {sizes: [f32[4], f32[1,4]]}) ×84"
    ) in lines
    assert "layers.0: Linear(f32[18..100,4]) -> f32[18..100,4] ×83" in lines
    assert trace.run.passes == 100


def test_what_differs_in_kind_widens_to_what_is_common(traced: Traced) -> None:
    trace = traced(
        """
        class Any(nn.Module):
            def forward(self, *values, **named):
                return values[0] if values else named

        net = Any()
        values = [torch.ones([1] * dims) for dims in range(20)]
        values += [torch.ones(2, dtype=torch.int64), None, (torch.ones(1),), "text", 5]

        def main():
            for value in values:
                net(value)
                net(given=value)
            net()
            for value in values[:20]:
                value + 1
        """
    )
    assert trace.coverage == ()
    assert sum(call.count or 0 for call in trace.modules) == 2 * 25 + 1
    assert len(trace.modules) <= 2 * 17 + 1


def test_outputs_that_differ_past_sixteen_widen(traced: Traced) -> None:
    trace = traced(
        """
        x = torch.ones(120)

        def main():
            for columns in range(1, 121):
                if 120 % columns == 0 or columns > 40:
                    x.as_strided((columns,), (1,))
                    x.as_strided((columns,), (1,))
        """
    )
    assert len(trace.ops) <= 2 * 20
    assert sum(op.count for op in trace.ops) == 2 * 94


def test_ids_tell_the_order_of_first_appearance(harmless: Harmless) -> None:
    trace = harmless(
        """
        net, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), torch.ones(2, 3)

        def main():
            for _ in range(3):
                y = net(x + 1) + 2
            return y
        """,
        level="aten",
    )
    events: list[Any] = [*trace.modules, *trace.ops]
    events.sort(key=lambda event: event.id)
    assert len({event.id for event in events}) == len(events)
    assert [getattr(event, "label", getattr(event, "path", None)) for event in events] == [
        "+",
        "add.Tensor(1)",
        "",
        "0",
        "linear()",
        "t()",
        "addmm()",
        "1",
        "relu()",
        "relu()",
        "detach()",
        "+",
        "add.Tensor(2)",
    ]
    assert [op.count for op in trace.ops] == [3] * len(trace.ops)


def test_kernels_of_a_growing_shape_widen_with_their_call(traced: Traced) -> None:
    trace = traced(
        """
        def main():
            for size in range(1, 101):
                x = torch.ones(size, 4)
                y = x @ x.T
        """,
        level="aten",
    )
    assert len(trace.ops) < 160
    matmul = [op for op in trace.ops if op.name == "torch.Tensor.matmul"][-1]
    kernels = [op for op in trace.ops if op.parent == matmul.id]
    assert sum(kernel.count for kernel in kernels) == matmul.count == 84
    assert len(kernels) <= 2


def test_kernels_belong_to_the_call_that_ran_them_whatever_came_out_of_it(traced: Traced) -> None:
    trace = traced(
        """
        x = torch.ones(2, 3)

        def main():
            for dim in (0, 1, 0):
                x.sum(dim)
            for size in (3, 4):
                try:
                    x.reshape(size, -1)
                except RuntimeError:
                    pass
        """,
        level="aten",
    )
    assert outline(trace) == unindented(
        """
        sum(0) (f32[2,3]) -> f32[3] ×2
          sum.dim_IntList([0]) (f32[2,3]) -> f32[3] ×2
        sum(1) (f32[2,3]) -> f32[2]
          sum.dim_IntList([1]) (f32[2,3]) -> f32[2]
        reshape(3, -1) (f32[2,3]) -> f32[3,2]
          view([3, -1]) (f32[2,3]) -> f32[3,2]
        reshape(4, -1) (f32[2,3]) -> !RuntimeError
          view([4, -1]) (f32[2,3]) -> !RuntimeError
        """
    )
