"""The hints of a program that stands still are of the call and the iteration that it is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.unit.server.annotated import plain
from tests.python.unit.server.stops import Stops


def shown(text: str, tmp_path: Path) -> list[str]:
    """What each stop of a program shows."""
    return Stops(text, tmp_path / "program.py").run().shown


def test_a_line_whose_call_still_runs_tells_of_calls_before(tmp_path: Path) -> None:
    text = """
        class Layer(nn.Module):
            def forward(self, x):
                y = x + 1
                stop(1)
                return y
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Layer(), Layer()])
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x.sum()
        net = Net()
        for size in (2, 3):
            net(torch.ones(size))
    """
    first, second, third, _ = shown(text, tmp_path)
    assert first == ""
    assert second == "x = layer(x) «~ f32[2]»"
    # In this call of the model no layer is done yet.
    assert third.endswith("x = layer(x) «~ f32[2]»\nreturn x.sum() «~ f32[]»")


def test_functions_that_wait_are_in_the_middle_of_a_call_too(tmp_path: Path) -> None:
    text = """
        class Layer(nn.Module):
            def forward(self, x):
                stop(0, int(where))
                return x + 1
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Layer(), Layer()])
            def forward(self, x):
                x = x * 2
                for layer in self.layers:
                    x = layer(x)
                    y = x - 1
                return y.sum()
        net = Net()
        for size in (2, 3):
            where = size - 1
            inputs = torch.ones(size)
            out = net(inputs)
            loss = out * 2
    """
    _, _, first, second = shown(text, tmp_path)
    assert first == second
    assert first == plain(
        """
        inputs = torch.ones(size) «f32[3]»
        out = net(inputs) «~ f32[]»
        loss = out * 2 «~ f32[]»"""
    )
    *_, first, second = shown(text.replace("size - 1", "1"), tmp_path)
    around = plain(
        """
        def forward(self, x): «x f32[3]»
        x = x * 2 «f32[3]»"""
    )
    assert first == plain(
        f"""
        {around.replace(chr(10), chr(10) + " " * 8)}
        x = layer(x) «~ f32[2]»
        y = x - 1 «~ f32[2]»
        return y.sum() «~ f32[]»"""
    )
    assert "x = layer(x) «~ f32[3]»\ny = x - 1 «~ f32[3]»" in second


def test_a_branch_is_of_the_iteration_that_took_it(tmp_path: Path) -> None:
    text = """
        for size in (2, 3, 4, 5):
            x = torch.ones(size)
            if size % 2:
                odd = x + 1
            if size:
                each = x * 2
            stop()
            after = x - 1
        stop()
    """
    first, second, third, fourth, end = shown(text, tmp_path)
    assert first == plain(
        """
        x = torch.ones(size) «f32[2]»
        each = x * 2 «f32[2]»"""
    )
    assert second == plain(
        """
        x = torch.ones(size) «f32[3]»
        odd = x + 1 «f32[3]»
        each = x * 2 «f32[3]»
        after = x - 1 «~ f32[2]»"""
    )
    assert third == plain(
        """
        x = torch.ones(size) «f32[4]»
        odd = x + 1 «~ f32[3]»
        each = x * 2 «f32[4]»
        after = x - 1 «~ f32[3]»"""
    )
    assert "odd = x + 1 «f32[5]»" in fourth
    assert end == plain(
        """
        x = torch.ones(size) «f32[5]»
        odd = x + 1 «f32[5]»
        each = x * 2 «f32[5]»
        after = x - 1 «f32[5]»"""
    )


@pytest.mark.slow
def test_what_cannot_be_told_is_not_said_to_be_of_this_iteration(tmp_path: Path) -> None:
    text = """
        for size in (2, 3, 4, 5):
            x = torch.ones(size)
            if size % 2:
                odd = x + 1
            if size == 5:
                stop()
    """
    (only,) = shown(text, tmp_path)
    # It was taken in this iteration, but nothing tells: there was no stop before.
    assert only == plain(
        """
        x = torch.ones(size) «f32[5]»
        odd = x + 1 «~ f32[5]»"""
    )


def test_loops_with_handlers_in_them(tmp_path: Path) -> None:
    text = """
        class Net(nn.Module):
            def forward(self, x):
                for size in (2, 3):
                    x = torch.ones(size)
                    stop()
                    with torch.no_grad():
                        y = x + 1
                    try:
                        z = y @ torch.ones(2)
                    except RuntimeError:
                        z = y.sum()
                    stop()
                return z
        net = Net()
        net(torch.ones(1))
    """
    first, second, third, fourth = shown(text, tmp_path)
    assert first == "x = torch.ones(size) «f32[2]»"
    assert "y = x + 1 «f32[2]»\nz = y @ torch.ones(2) «f32[]»" in second
    assert "x = torch.ones(size) «f32[3]»\ny = x + 1 «~ f32[2]»" in third
    assert "z = y @ torch.ones(2) «~ f32[]»" in third
    assert "y = x + 1 «f32[3]»" in fourth
    assert "z = y.sum() «f32[]»" in fourth
    assert "«~" not in fourth


def test_an_error_of_an_earlier_iteration_is_marked(tmp_path: Path) -> None:
    text = """
        for size in (3, 4):
            x = torch.ones(2, size)
            stop()
            try:
                y = x @ x
            except RuntimeError:
                pass
            z = x * 2
            stop()
    """
    _, at_end, again, _ = shown(text, tmp_path)
    assert "y = x @ x «✗" in at_end
    assert "y = x @ x «~ ✗" in again


def test_inner_loops_belong_to_the_outer_iteration(tmp_path: Path) -> None:
    text = """
        class Net(nn.Module):
            def forward(self, x):
                for size in (2, 3):
                    y = torch.ones(size)
                    for _ in range(size):
                        if size > 2:
                            y = y + 1
                        z = y * 2
                        stop()
                    stop()
                return z
        net = Net()
        net(torch.ones(1))
        net(torch.ones(1))
    """
    stops = shown(text, tmp_path)
    assert len(stops) == 14
    for number in range(14):
        size = 2 if number % 7 < 3 else 3
        assert f"y = torch.ones(size) «f32[{size}]»" in stops[number]
        assert f"z = y * 2 «f32[{size}]»" in stops[number]
        if size == 3:
            assert "y = y + 1 «f32[3]»" in stops[number]


def test_a_function_that_is_called_again_begins_anew(tmp_path: Path) -> None:
    text = """
        def step(x, is_first):
            y = x + 1
            if is_first:
                z = y * 2
            stop()
            return y - 1
        for size in (2, 3):
            out = step(torch.ones(size), size == 2)
    """
    first, second = shown(text, tmp_path)
    assert "y = x + 1 «f32[2]»\nz = y * 2 «f32[2]»" in first
    assert "y = x + 1 «f32[3]»\nz = y * 2 «~ f32[2]»\nreturn y - 1 «~ f32[2]»" in second


def test_a_forward_that_is_called_directly(tmp_path: Path) -> None:
    text = """
        class Part(nn.Module):
            def forward(self, x):
                y = x + 1
                stop()
                return y * 2
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.part = Part()
            def forward(self, x):
                return self.part.forward(x).sum()
        net = Net()
        for size in (2, 3):
            net(torch.ones(size))
    """
    first, second = shown(text, tmp_path)
    assert first.endswith("y = x + 1 «f32[2]»")
    assert second.endswith("y = x + 1 «f32[3]»\nreturn y * 2 «~ f32[2]»")


def test_a_forward_that_was_under_way_when_the_recording_began(tmp_path: Path) -> None:
    text = """
        class Part(nn.Module):
            def forward(self, x):
                y = x + 1
                if len(x) == 3:
                    begin()
                if len(x) < 4:
                    z = y * 2
                stop()
                w = y / 2
                stop(0, 1)
                return w
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.part = Part()
            def forward(self, x):
                for size in (2, 3, 4, 5):
                    a = torch.ones(size)
                    if size < 4:
                        b = self.part(a)
                    else:
                        c = self.part(a)
                    d = a - 1
                stop()
                return a
        net = Net()
        net(torch.ones(1))
        net(torch.ones(2))
    """
    stops = shown(text, tmp_path)
    joined, around, second, second_around, *_ = stops
    # What was done before is not known, but what it has left is.
    assert joined == plain(
        """
        def forward(self, x): «x f32[3]»
        y = x + 1 «f32[3]»
        z = y * 2 «f32[3]»"""
    )
    assert around.endswith("b = self.part(a) «~ f32[2]»\nd = a - 1 «~ f32[2]»")
    assert second == plain(
        """
        def forward(self, x): «x f32[4]»
        y = x + 1 «f32[4]»
        z = y * 2 «~ f32[3]»
        w = y / 2 «~ f32[3]»"""
    )
    assert second_around.endswith(
        plain(
            """
            a = torch.ones(size) «f32[4]»
            b = self.part(a) «~ f32[3]»
            d = a - 1 «~ f32[3]»"""
        )
    )


def test_what_comes_before_a_call_that_still_runs_was_reached(tmp_path: Path) -> None:
    text = """
        class Head(nn.Module):
            def forward(self, features):
                stop(0, 1)
                return features + 1
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = Head()
            def forward(self, x):
                out = x * 2
                maps = {str(i): it for i, it in enumerate([out])}
                after = self.head(maps["0"])
                return after
        net = Net()
        for size in (2, 2):
            net(torch.ones(size))
    """
    before = plain(
        """
        def forward(self, x): «x f32[2]»
        out = x * 2 «f32[2]»
        maps = {str(i): it for i, it in enumerate([out])} «{0: f32[2]}»"""
    )
    first, second = shown(text, tmp_path)
    assert first == before.strip()
    after = 'after = self.head(maps["0"]) «~ f32[2]»\nreturn after «~ f32[2]»'
    assert second == f"{before.strip()}\n{after}"


@pytest.mark.slow
def test_what_an_earlier_call_did_before_it_left_early(tmp_path: Path) -> None:
    """Though all that this call has come by for certain was done for the first time."""
    text = """
        def work(size):
            if size == 2:
                a = torch.ones(size)
                if size:
                    return a
            b = torch.ones(size)
            stop()
            return b
        def search(size):
            for turn in range(3):
                if size == 2:
                    a = torch.ones(size)
                    if size:
                        break
                b = torch.ones(size + turn)
                stop()
        for size in (2, 3):
            work(size)
            search(size)
    """
    assert shown(text, tmp_path)[:2] == [
        "a = torch.ones(size) «~ f32[2]»\nb = torch.ones(size) «f32[3]»",
        "a = torch.ones(size) «~ f32[2]»\nb = torch.ones(size + turn) «f32[3]»",
    ]


def test_coroutines_that_run_in_turns_are_not_each_other(tmp_path: Path) -> None:
    text = """
        import asyncio
        class Net(nn.Module):
            async def part(self, x):
                a = x + 1
                b = torch.ones(4)
                await asyncio.sleep(0)
                stop()
                c = a * 2
                return c.sum()
            async def parts(self):
                return await asyncio.gather(self.part(torch.ones(2)), self.part(torch.ones(3)))
            def forward(self, x):
                return asyncio.run(self.parts())
        Net()(torch.ones(1))
    """
    first, second = shown(text, tmp_path)
    assert first == plain(
        """
        async def part(self, x): «x f32[2]»
        a = x + 1 «f32[2]»
        b = torch.ones(4) «f32[4]»"""
    )
    assert second.startswith(first.replace("[2]", "[3]"))


def test_what_was_just_stored_is_what_the_variable_holds(tmp_path: Path) -> None:
    """The recorder has not looked at it yet, though a call in the statement has been made."""
    text = """
        def tail(x):
            return x[1:]
        class Net(nn.Module):
            def forward(self, x):
                for size in (2, 3):
                    part = tail(x[:size])
                    stop()
                    first, last = x[:size].split(1)[::size - 1]
                    stop()
                    part = part + 1
                return part
        Net()(torch.ones(5))
    """
    *_, stored, item = shown(text, tmp_path)
    assert "part = tail(x[:size]) «f32[2]»\nfirst, last" in stored
    assert "part = tail(x[:size]) «f32[2]»\nfirst, last" in item


def test_what_a_plain_function_returned_is_of_this_call(tmp_path: Path) -> None:
    """The recorder looks at variables ever more rarely where all stays as it was."""
    text = """
        def tail(x):
            return x[1:]
        def step(x):
            c = tail(x)
            m = torch.ones(4)
            if len(x) > 4:
                stop()
            return c
        for i in range(40):
            step(torch.ones(4 if i < 30 else 5))
    """
    assert set(shown(text, tmp_path)) == {
        "def step(x): «x f32[5]»\nc = tail(x) «f32[4]»\nm = torch.ones(4) «f32[4]»"
    }


def test_what_a_block_that_swallows_errors_has_not_come_to_is_marked(tmp_path: Path) -> None:
    text = """
        class Failed(Exception):
            pass
        def may_fail(fails):
            if fails:
                raise Failed
        def new(n, fails):
            with contextlib.suppress(Failed):
                a = torch.ones(n)
                may_fail(fails)
                b = torch.ones(n)
            stop()
        def again(n, fails):
            b = torch.zeros(7)
            with contextlib.suppress(Failed):
                a = torch.ones(n)
                may_fail(fails)
                b = torch.ones(n)
            stop()
        for step in (new, again):
            for n, fails in ((2, False), (3, False), (4, True)):
                step(n, fails)
    """
    _, passed, failed, _, passed_again, failed_again = shown(text, tmp_path)
    assert passed == "a = torch.ones(n) «f32[3]»\nb = torch.ones(n) «f32[3]»"
    assert failed == "a = torch.ones(n) «f32[4]»\nb = torch.ones(n) «~ f32[2|3]»"
    assert passed_again == f"b = torch.zeros(7) «f32[7]»\n{passed}"
    assert failed_again == f"b = torch.zeros(7) «f32[7]»\n{failed}"


def test_generators_of_one_function_are_not_each_other(tmp_path: Path) -> None:
    text = """
        def parts(n):
            for i in range(2):
                x = torch.ones(n)
                y = x[1:]
                stop()
                yield x
        for pair in zip(parts(3), parts(5)):
            pass
    """
    first, second = shown(text, tmp_path)[2:]
    assert first == "x = torch.ones(n) «f32[3]»\ny = x[1:] «f32[2]»"
    assert second == "x = torch.ones(n) «f32[5]»\ny = x[1:] «f32[4]»"


def test_a_name_that_holds_something_else_by_now(tmp_path: Path) -> None:
    """Its first value is not in sight any more, and the recorder may have seen that of others."""
    text = """
        def tail(x):
            return x[1:]
        def step(x):
            y = torch.ones(4)
            x = tail(x)
            x = tail(x)
            z = tail(y)
            z = y + 1
            w = tail(y)
            del w
            stop()
        for n in (4, 5):
            step(torch.ones(n))
    """
    *_, last = shown(text, tmp_path)
    assert last == plain(
        """
        def step(x): «~ x f32[4|5]»
        y = torch.ones(4) «f32[4]»
        x = tail(x) «~ f32[3|4]»
        x = tail(x) «f32[3]»
        z = tail(y) «~ f32[3]»
        z = y + 1 «f32[4]»"""
    )


def test_each_call_of_a_recursion_has_names_of_its_own(tmp_path: Path) -> None:
    text = """
        def tail(x):
            return x[1:]
        def deeper(x, depth):
            y = tail(x)
            if depth:
                deeper(y, depth - 1)
            else:
                stop(0, 0)
                stop(1, 0)
                stop(2, 0)
        deeper(torch.ones(6), 2)
    """
    assert shown(text, tmp_path) == [
        f"def deeper(x, depth): «x f32[{n}]»\ny = tail(x) «f32[{n - 1}]»" for n in (4, 5, 6)
    ]


@pytest.mark.slow
def test_closures_classes_and_comprehensions(tmp_path: Path) -> None:
    text = """
        def tail(x):
            return x[1:]
        def step(x):
            inner = tail(x)
            plain = tail(x)
            class Sizes:
                plain = torch.ones(2)
                stop()
            def read():
                return inner
            found = [tail(it) for it in (x, plain) if stop()]
            stop()
        for n in (4, 5):
            step(torch.ones(n))
    """
    *_, in_class, _, second, after = shown(text, tmp_path)
    assert in_class == plain(
        """
        def step(x): «x f32[5]»
        plain = tail(x) «f32[4]»
        plain = torch.ones(2) «~ f32[2]»"""
    )
    assert "found" not in second
    assert "found = [tail(it) for it in (x, plain) if stop()] «[f32[4], f32[3]]»" in after


def test_a_script_that_has_not_come_to_a_name_again(tmp_path: Path) -> None:
    text = """
        def tail(x):
            return x[1:]
        for n in (4, 5, 6):
            x = torch.ones(n)
            if n != 5:
                y = tail(x)
            else:
                z = tail(x)
            stop()
    """
    first, second, third = shown(text, tmp_path)
    assert first == "x = torch.ones(n) «f32[4]»\ny = tail(x) «f32[3]»"
    assert second == plain(
        """
        x = torch.ones(n) «f32[5]»
        y = tail(x) «~ f32[3]»
        z = tail(x) «f32[4]»"""
    )
    assert third == plain(
        """
        x = torch.ones(n) «f32[6]»
        y = tail(x) «f32[5]»
        z = tail(x) «~ f32[4]»"""
    )
