"""What a call has done so far, for one who looks at it in its middle."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from shapetrace.events.model import ModuleCall, Op
from shapetrace.recorder import marks
from shapetrace.recorder.debuggers import Debugger
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.session import Recorder
from shapetrace.recorder.standing import standing_of
from shapetrace.views.shapes import result_text


class Looker:
    """Looks at frames of the program while it runs."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.looks: list[str] = []

    def look(self, outwards: int = 0, frame: Any = None, thread: int | None = None) -> int:
        """Note where the caller stands, or a function around it that the test has as well."""
        if frame is None:
            frame = sys._getframe(1)
            while outwards or frame.f_code.co_filename != __file__:
                frame = frame.f_back
                outwards -= frame.f_code.co_filename == __file__
        standing = standing_of(self.recorder, frame, thread)
        if standing is None:
            self.looks.append("unknown")
            return 1
        calls = self._calls()
        call = None if standing.call is None else calls[standing.call]
        where = ""
        if isinstance(call, ModuleCall):
            inputs = ", ".join(result_text((each,), None) for each in call.inputs)
            where = f" in {call.path or 'root'}({inputs})"
        found = "; ".join(map(_text, (calls[each] for each in sorted(standing.own.reached))))
        name = standing.own.function.rpartition("<locals>.")[2]
        self.looks.append(f"{name}{where}: {found}".rstrip(": ") or name)
        return 1

    def _calls(self) -> dict[int, Op | ModuleCall]:
        trace = self.recorder.snapshot()
        calls: list[Op | ModuleCall] = [*trace.ops, *trace.modules]
        return {call.id: call for call in calls}


def _text(call: Op | ModuleCall) -> str:
    name = call.label if isinstance(call, Op) else call.path
    result = f"!{call.error.type}" if call.error else result_text(call.outputs, call.result)
    return f"{name} {result}"


@contextmanager
def looking() -> Iterator[Looker]:
    """Record as under a debugger."""
    recorder = Recorder(RecorderOptions(debugger=Debugger((), frozenset())))
    recorder.start()
    try:
        yield Looker(recorder)
    finally:
        recorder.stop()
    assert [note for note in recorder.notes if "fault" in note[0]] == []


class Looked(nn.Module):
    """Looks at the beginning, between two ops and at the end."""

    def __init__(self, looker: Looker) -> None:
        super().__init__()
        self.look = looker.look

    def forward(self, x: Tensor) -> Tensor:
        self.look()
        x = x * 2
        self.look()
        x = x.sum(-1)
        self.look()
        return x


@pytest.mark.slow
def test_each_call_begins_anew() -> None:
    with looking() as looker:
        net = Looked(looker)
        for size in (3, 3, 4, 3):
            net(torch.ones(2, size))
    first = [
        "Looked.forward in root(f32[2,3])",
        "Looked.forward in root(f32[2,3]): * f32[2,3]",
        "Looked.forward in root(f32[2,3]): * f32[2,3]; sum(-1) f32[2]",
    ]
    other = [each.replace("2,3", "2,4") for each in first]
    assert looker.looks == [*first, *first, *other, *first]


def test_nothing_is_marked_where_nobody_can_ask() -> None:
    recorder = Recorder(RecorderOptions())
    recorder.start()
    seen = []

    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x = x * 2
            seen.append(recorder.states[threading.get_ident()].stack[-1].marks)
            return x

    try:
        Net()(torch.ones(1))
    finally:
        recorder.stop()
    assert seen == [None]


class Layer(nn.Module):
    def __init__(self, looker: Looker, looks: bool) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.looker = looker
        self.looks = looks

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        if self.looks:
            self.looker.look()
            self.looker.look(1)
        return x.relu()


class Stack(nn.Module):
    def __init__(self, looker: Looker, looks_in: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(looker, i == looks_in) for i in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        for layer in self.layers:
            y = layer(x)
            x = x + y * 2
        return x.mean()


@pytest.mark.parametrize(
    ("looks_in", "around"),
    [
        (0, "Stack.forward in root(f32[2,4]): + f32[2,4]"),
        # The ops of the last iteration are those of the line that this one has not come to.
        (1, "Stack.forward in root(f32[2,4]): + f32[2,4]"),
    ],
)
def test_a_frame_further_out_is_in_the_middle_of_a_call(looks_in: int, around: str) -> None:
    with looking() as looker:
        net = Stack(looker, looks_in)
        net(torch.ones(2, 4))
        net(torch.ones(2, 4))
    inside = f"Layer.forward in layers.{looks_in}(f32[2,4]): layers.{looks_in}.fc f32[2,4]"
    assert looker.looks == [inside, around] * 2


def test_after_a_loop_all_of_it_was_reached() -> None:
    with looking() as looker:

        class Net(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                y = x
                for size in (1, 2):
                    looker.look()
                    y = x.repeat(size)
                    looker.look()
                    y = y + 1
                looker.look()
                while len(y) < 6:
                    y = y.repeat(2)
                looker.look()
                return y

        net = Net()
        net(torch.ones(2))
        net(torch.ones(2))
    assert [each.replace("Net.forward in root(f32[2])", "") for each in looker.looks] == [
        "",
        ": repeat(1) f32[2]",
        "",
        ": repeat(2) f32[4]",
        ": repeat(2) f32[4]; + f32[4]",
        ": repeat(2) f32[4]; + f32[4]; repeat(2) f32[8]",
    ] * 2


def test_loops_beside_what_handles_errors() -> None:
    """Handlers lie between, behind or within loops, which jump back all the same."""
    with looking() as looker:

        class Net(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                with torch.no_grad():
                    x = x + 1
                for size in (1, 2):
                    looker.look()
                    with torch.no_grad():
                        x = x.repeat(size)
                    x = x * 2
                for attempt in range(2):
                    try:
                        looker.look()
                        x = x - attempt
                        x = x @ x[:attempt]
                    except RuntimeError:
                        looker.look()
                        continue
                looker.look()
                return x

        net = Net()
        net(torch.ones(1))
        net(torch.ones(1))
    before = "+ f32[1]; repeat(2) f32[2]; * f32[2]"
    assert [each.partition(": ")[2] for each in looker.looks] == [
        *("+ f32[1]", "+ f32[1]", before),
        # The error may be of this attempt or of what came before it.
        *(before, before, before),
        f"{before}; - f32[2]; [:1] f32[1]; @ !RuntimeError",
    ] * 2


def test_a_branch_that_was_not_taken_was_not_reached() -> None:
    with looking() as looker:

        class Net(nn.Module):
            def forward(self, x: Tensor, flag: bool) -> Tensor:
                if flag:
                    x += 1
                else:
                    x = x - 1
                looker.look()
                return x

        net = Net()
        for flag in (True, False, True):
            net(torch.ones(2), flag)
    assert [each.partition(": ")[2] for each in looker.looks] == [
        *("+= f32[2]", "- f32[2]", "+= f32[2]")
    ]


def test_a_call_that_raised_and_was_caught() -> None:
    with looking() as looker:

        class Part(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return x @ x

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = Part()

            def forward(self, x: Tensor) -> Tensor:
                try:
                    y = self.part(x)
                except RuntimeError:
                    y = x.sum()
                looker.look()
                return y + 1

        net = Net()
        net(torch.ones(2, 3))
        net(torch.ones(2, 2))
        net(torch.ones(2, 3))
    bad = "Net.forward in root(f32[2,3]): part !RuntimeError; sum() f32[]"
    assert looker.looks == [bad, "Net.forward in root(f32[2,2]): part f32[2,2]", bad]


def test_recursion_of_modules_and_of_functions() -> None:
    with looking() as looker:

        class Tree(nn.Module):
            def forward(self, x: Tensor, depth: int) -> Tensor:
                x = x[..., 1:]
                if depth:
                    x = self(x, depth - 1)
                else:
                    looker.look()
                    looker.look(1)
                    looker.look(2)
                return x * 2

        def countdown(x: Tensor, depth: int) -> Tensor:
            x = x[..., 1:]
            if depth:
                return countdown(x, depth - 1) * 2
            looker.look()
            looker.look(1)
            return x

        net = Tree()
        for _ in range(2):
            net(torch.ones(5), 2)
            countdown(torch.ones(5), 1)
    assert (
        looker.looks
        == [
            "Tree.forward in root(f32[3], int): [..., 1:] f32[2]",
            "Tree.forward in root(f32[4], int): [..., 1:] f32[3]",
            "Tree.forward in root(f32[5], int): [..., 1:] f32[4]",
            "countdown: [..., 1:] f32[3]",
            "countdown: [..., 1:] f32[4]",
        ]
        * 2
    )


def test_two_calls_of_one_helper_are_two() -> None:
    with looking() as looker:

        class Net(nn.Module):
            def helper(self, x: Tensor) -> Tensor:
                looker.look()
                y = x * 2
                looker.look()
                return y

            def forward(self, x: Tensor) -> Tensor:
                return self.helper(x) + self.helper(x[:1]).sum()

        net = Net()
        net(torch.ones(3))
        net(torch.ones(3))
    assert [each.replace("Net.helper in root(f32[3])", "") for each in looker.looks] == [
        *("", ": * f32[3]", "", ": * f32[1]"),
    ] * 2


def test_what_an_expression_calls_inside_of_itself() -> None:
    with looking() as looker:

        class Net(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                x = x + 1
                parts = [each * 2 for each in (x, x)]
                looker.look()
                return torch.stack([each - looker.look() for each in parts])

        net = Net()
        net(torch.ones(3))
        net(torch.ones(3))
    done = "Net.forward in root(f32[3]): + f32[3]; * f32[3]"
    assert looker.looks == [done, done, done] * 2


@pytest.mark.slow
def test_generators_and_coroutines() -> None:
    with looking() as looker:

        class Net(nn.Module):
            def parts(self, x: Tensor) -> Iterator[Tensor]:
                y = x * 2
                yield y
                looker.look()
                z = y.sum()
                looker.look()
                yield z

            async def later(self, x: Tensor) -> Tensor:
                y = x - 1
                await asyncio.sleep(0)
                looker.look()
                return y.mean()

            async def all(self, x: Tensor) -> tuple[Tensor, Tensor]:
                return await asyncio.gather(self.later(x), self.later(x))

            def forward(self, x: Tensor) -> Tensor:
                parts = self.parts(x)
                next(parts)
                looker.look()
                return next(parts) + asyncio.run(self.all(x))[0]

        net = Net()
        net(torch.ones(3))
        net(torch.ones(3))
    here = "in root(f32[3])"
    assert (
        looker.looks
        == [
            f"Net.forward {here}",
            f"Net.parts {here}: * f32[3]",
            f"Net.parts {here}: * f32[3]; sum() f32[]",
            f"Net.later {here}: - f32[3]",
            f"Net.later {here}: - f32[3]",
        ]
        * 2
    )


def test_outside_of_modules_the_order_of_the_source_tells() -> None:
    with looking() as looker:

        def main() -> None:
            torch.zeros(1)
            for size in (3, 4):
                x = torch.ones(size)
                looker.look()
                x = x * 2 if size == 3 else x + 1
                looker.look()
            looker.look()

        main()
    assert [each.replace("main: zeros(1) f32[1]; ", "") for each in looker.looks] == [
        "ones(3) f32[3]",
        "ones(3) f32[3]; * f32[3]",
        "ones(4) f32[4]",
        "ones(4) f32[4]; + f32[4]",
        "* f32[3]; ones(4) f32[4]; + f32[4]",
    ]


def test_forward_called_directly() -> None:
    with looking() as looker:

        class Outer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = Looked(looker)

            def forward(self, x: Tensor) -> Tensor:
                return self.inner.forward(x) + 1

        net, alone = Outer(), Looked(looker)
        for _ in range(2):
            net(torch.ones(2, 3))
        for _ in range(2):
            alone.forward(torch.ones(2, 3))
    inner = [
        "Looked.forward in inner(f32[2,3])",
        "Looked.forward in inner(f32[2,3]): * f32[2,3]",
        "Looked.forward in inner(f32[2,3]): * f32[2,3]; sum(-1) f32[2]",
    ]
    direct = [each.replace("inner", "root") for each in inner]
    # Only its first op tells that a forward runs for a module: this is the outer one's.
    assert looker.looks[0] == "Looked.forward in root(f32[2,3])"
    assert looker.looks[1:6] == [*inner[1:], *inner]
    assert looker.looks[6] == "Looked.forward"
    assert looker.looks[7:] == [*direct[1:], *direct]


def test_threads_of_their_own() -> None:
    with looking() as looker:
        net = Looked(looker)
        net(torch.ones(2, 3))
        for size in (3, 4):
            thread = threading.Thread(target=net, args=(torch.ones(2, size),))
            thread.start()
            thread.join()
    one = [
        "Looked.forward in root(f32[2,3])",
        "Looked.forward in root(f32[2,3]): * f32[2,3]",
        "Looked.forward in root(f32[2,3]): * f32[2,3]; sum(-1) f32[2]",
    ]
    assert looker.looks == [*one, *one, *(each.replace("2,3", "2,4") for each in one)]


def test_a_frame_is_looked_at_from_another_thread() -> None:
    with looking() as looker:
        arrived, over = threading.Event(), threading.Event()
        frames: list[Any] = []

        class Net(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                x = x * 2
                frames.append(sys._getframe())
                arrived.set()
                over.wait()
                return x + 1

        thread = threading.Thread(target=Net(), args=(torch.ones(3),))
        thread.start()
        arrived.wait()
        looker.look(frame=frames[0])
        over.set()
        thread.join()
        frames.clear()
    assert looker.looks == ["Net.forward in root(f32[3]): * f32[3]"]


def test_recomputation_of_a_checkpoint() -> None:
    with looking() as looker:

        class Part(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                looker.look()
                x = x * x
                looker.look()
                return x * x

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = Part()

            def forward(self, x: Tensor) -> Tensor:
                y: Tensor = checkpoint(self.part, x, use_reentrant=False)
                return y.sum()

        net = Net()
        for _ in range(2):
            net(torch.ones(2, 3, requires_grad=True)).backward()
    assert [each.partition(" in ")[2] for each in looker.looks] == [
        *("part(f32[2,3])", "part(f32[2,3]): * f32[2,3]"),
    ] * 4


def test_a_call_that_has_ended_with_an_error() -> None:
    def frames_of(error: BaseException) -> list[Any]:
        found, entry = [], error.__traceback__
        while entry is not None:
            if entry.tb_frame.f_code.co_filename == __file__:
                found.append(entry.tb_frame)
            entry = entry.tb_next
        return found

    with looking() as looker:

        class Part(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                y = x + 1
                return y @ x

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = Part()

            def forward(self, x: Tensor) -> Tensor:
                y: Tensor = self.part(x * 2)
                return y.sum()

        net = Net()
        net(torch.ones(2, 2))
        try:
            net(torch.ones(2, 3))
        except RuntimeError as error:
            ident = threading.get_ident()
            for frame in frames_of(error)[1:]:
                looker.look(frame=frame, thread=ident)
    assert looker.looks == [
        "Net.forward in root(f32[2,3]): * f32[2,3]; part !RuntimeError",
        "Part.forward in part(f32[2,3]): + f32[2,3]; @ !RuntimeError",
    ]


def test_hooks_are_not_the_forward() -> None:
    with looking() as looker:
        net = Looked(looker)

        def before(module: nn.Module, args: Any) -> None:
            args[0] - 1
            looker.look()

        def after(module: nn.Module, args: Any, result: Any) -> None:
            looker.look()
            result - 1

        net.register_forward_pre_hook(before)
        net.register_forward_hook(after)
        net(torch.ones(2, 3))
        first, looker.looks = looker.looks, []
        net(torch.ones(2, 3))
    assert first == looker.looks
    assert [each.partition(" in ")[0] for each in first] == [
        *("before", "Looked.forward", "Looked.forward", "Looked.forward", "after")
    ]
    assert [each.partition("): ")[2] for each in first] == [
        *("- f32[2,3]", "", "* f32[2,3]", "* f32[2,3]; sum(-1) f32[2]", "")
    ]


def test_too_much_to_be_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST_SITES", 1)
    with looking() as looker:

        class Net(nn.Module):
            def helper(self, x: Tensor) -> Tensor:
                x = x * 2
                looker.look()
                return x + 1

            def forward(self, x: Tensor) -> Tensor:
                looker.look()
                return self.helper(x - 1)

        net = Net()
        net(torch.ones(3))
        net(torch.ones(3))
    here = "in root(f32[3])"
    assert looker.looks == [f"Net.forward {here}", f"Net.helper {here}: * f32[3]"] * 2


def test_where_nothing_is_known() -> None:
    with looking() as looker:
        looker.recorder.stop()
        looker.look()

        class Net(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                looker.look()
                return x

        Net()(torch.ones(1))
    assert looker.looks == ["unknown", "unknown"]


def test_a_module_that_is_stepped_around() -> None:
    with looking() as looker:

        class Part(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                x = x * 2
                looker.look()
                looker.look(1)
                return x

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = Part()
                # As torch.compile leaves it, only that nothing is compiled.
                self.part._compiled_call_impl = self.part._call_impl

            def forward(self, x: Tensor) -> Tensor:
                y: Tensor = self.part(x + 1)
                return y

        Net()(torch.ones(3))
    assert looker.looks == ["unknown", "Net.forward in root(f32[3]): + f32[3]"]
