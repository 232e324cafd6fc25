"""At a stop the editor learns which recorded call a frame belongs to, and what that has reached."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shapetrace.events.model import ModuleCall, Op
from shapetrace.events.stop import Stop
from shapetrace.views.shapes import result_text, value_text, values_text
from tests.python.e2e.agent.differential import Watched, same_as_without_us
from tests.support.debug_client import DebugSession, Place, Script, launch
from tests.support.session_server import Heard, SessionServer

pytestmark = pytest.mark.e2e

STACK = """
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            h = self.fc(x)
            h = h.relu()  # @inside
            return x + h

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(12))

        def forward(self, x):
            x = x * 2
            for number, layer in enumerate(self.layers):
                x = layer(x)
                x = x - 1
            return x.sum()  # @end

    net = Stack()
    for size in (2, 3, 2):
        y = net(torch.ones(size, 4))
        y = y * 2  # @after
"""


class Debugged:
    """A debugged program whose frames are asked about."""

    def __init__(self, session: DebugSession, server: SessionServer) -> None:
        self.session = session
        self.server = server

    def here(self, place: Place) -> Stop | None:
        """What the server is told of a frame."""
        module = "__import__('sys').modules['shapetrace.agent.stop_query']"
        expression = f"{module}.describe_stop({place.number})"
        return self.server.process().stop_of(self.session.evaluate(expression))

    def tell(self, place: Place) -> str:
        """The same as text. By then the server has heard of all the calls."""
        stop = self.here(place)
        if stop is None:
            return "unknown"
        heard, own = self.server.process(), stop.own
        assert (own.file, own.line) == (place.file, place.line)
        call = "" if stop.call is None else f" in {_name(heard, stop.call)}"
        reached = sorted((_result(heard, each) for each in own.reached), key=_order)
        return f"{own.function}{call}: {', '.join(reached)}".rstrip(": ")


def _name(heard: Heard, number: int) -> str:
    module = heard.modules[number]
    return f"{module.path or 'root'}({values_text(module.inputs)})"


def _result(heard: Heard, number: int) -> str:
    call: Op | ModuleCall = heard.ops.get(number) or heard.modules[number]
    name = call.label if isinstance(call, Op) else call.path or "root"
    result = f"!{call.error.type}" if call.error else result_text(call.outputs, call.result)
    return f"{name} {result}"


def _order(text: str) -> tuple[bool, str]:
    """Ops before modules: which was seen first is of no interest here."""
    return ("." in text or text.startswith(("root", "part")), text)


@contextmanager
def debugged(text: str, directory: Path, *marks: str, **details: Any) -> Iterator[Debugged]:
    """Debug a program that stops at lines."""
    script = Script.write(text, directory)
    with SessionServer() as server, launch(script, server.launch()) as session:
        if marks:
            session.break_at(*marks, **details)
        yield Debugged(session, server)


def test_a_stop_in_layer_seven_and_the_frames_around(tmp_path: Path) -> None:
    with debugged(STACK, tmp_path, "inside", condition="x.shape[0] == 3") as program:
        program.session.go()
        stop = program.session.stop()
        for _ in range(7):
            program.session.resume(stop.thread)
            stop = program.session.stop()
        assert [program.tell(place) for place in stop.frames] == [
            "Layer.forward in layers.7(f32[3,4]): layers.7.fc f32[3,4]",
            # The subtraction of the iteration before is not what this one will come to.
            "Stack.forward in root(f32[3,4]): * f32[3,4]",
            "<module>: ones(3, 4) f32[3,4]",
        ]
        told = [program.here(place) for place in stop.frames]
        own = [each and each.own for each in told]
        assert [each and [*each.outer] for each in told] == [own[1:], own[2:], []]


def test_two_calls_of_one_line_with_different_shapes(tmp_path: Path) -> None:
    with debugged(STACK, tmp_path, "end") as program:
        program.session.go()
        told = []
        for _ in range(3):
            stop = program.session.stop()
            told.append(program.tell(stop.top).replace("Stack.forward in root", ""))
            program.session.resume(stop.thread)
    assert told == [
        f"({shape}): * {shape}, - {shape}, layers.11 {shape}"
        for shape in ("f32[2,4]", "f32[3,4]", "f32[2,4]")
    ]


def test_while_it_runs_and_after_it_went_on(tmp_path: Path) -> None:
    with debugged(STACK, tmp_path, "end") as program:
        program.session.go()
        stop = program.session.stop()
        former = stop.top
        program.session.clear_breakpoints()
        program.session.break_at("after")
        program.session.resume(stop.thread)
        stop = program.session.stop()
        assert program.here(former) is None
        assert program.here(Place(4711, "", "", 0, "")) is None
        assert program.tell(stop.top).startswith("<module>: ")


def test_recursion_generators_and_threads(tmp_path: Path) -> None:
    text = """
        import threading
        import torch
        from torch import nn

        class Tree(nn.Module):
            def forward(self, x, depth):
                x = x[1:]
                if depth:
                    x = self(x, depth - 1)
                return x * 2  # @deepest

        class Parts(nn.Module):
            def parts(self, x):
                for size in (1, 2):
                    part = x.repeat(size)
                    yield part  # @part

            def forward(self, x):
                return sum(each.sum() for each in self.parts(x))

        def work():
            for _ in range(2):
                Tree()(torch.ones(5), 2)
                Parts()(torch.ones(3))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    """
    with debugged(text, tmp_path, "deepest", "part") as program:
        program.session.go()
        told = []
        for number in range(10):
            stop = program.session.stop()
            told.append([program.tell(place) for place in stop.frames if "work" not in place.text])
            if number == 0:
                assert program.tell(stop.frames[3]).startswith("work: ones(5) f32[5]")
            program.session.resume(stop.thread)
    tree = [
        "Tree.forward in root(f32[3], int): [1:] f32[2]",
        "Tree.forward in root(f32[4], int): [1:] f32[3]",
        "Tree.forward in root(f32[5], int): [1:] f32[4]",
    ]
    assert told[0] == tree
    assert told[1][0] == "Tree.forward in root(f32[4], int): [1:] f32[3], root f32[2]"
    assert told[2][0] == "Tree.forward in root(f32[5], int): [1:] f32[4], root f32[2]"
    assert told[3][0] == "Parts.parts in root(f32[3]): repeat(1) f32[3]"
    assert told[4][0] == "Parts.parts in root(f32[3]): repeat(2) f32[6]"
    assert told[3][1].startswith("Parts.forward in root(f32[3])")
    assert told[5:] == told[:5]


def test_what_the_variables_hold(tmp_path: Path) -> None:
    """Also where the recorder has long ceased to look at them, and after one was set by hand."""
    text = """
        import torch

        def tail(x):
            return x[1:]

        def step(x):
            c = tail(x)
            m = torch.ones(4)
            d = c  # @here
            return d

        for i in range(40):
            result = step(torch.ones(4 if i < 30 else 5))
    """
    with debugged(text, tmp_path, "here", condition="x.shape[0] == 5") as program:
        program.session.go()
        stop = program.session.stop()
        told = program.here(stop.top)
        assert told is not None
        variables = told.own.locals.variables
        held = {each.name: (value_text(each.value), each.is_fresh) for each in variables}
        assert held == {"x": ("f32[5]", True), "c": ("f32[4]", True), "m": ("f32[4]", True)}
        assert [len(each.stores[0]) for each in variables] == [1, 4, 4]
        assert told.own.locals.unbound == frozenset({"d"})
        (module,) = told.outer
        assert [each.name for each in module.locals.variables] == ["result"]
        program.session.set_variable(stop.top, "c", "torch.ones(7)")
        told = program.here(stop.top)
        assert told is not None
        assert told.own.locals.variables == ()


def test_an_uncaught_error(tmp_path: Path) -> None:
    text = """
        import torch
        from torch import nn

        class Part(nn.Module):
            def forward(self, x):
                y = x + 1
                return y @ x

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.part = Part()

            def forward(self, x):
                return self.part(x * 2).sum()

        net = Net()
        for width in (2, 3):
            net(torch.ones(2, width))
    """
    with debugged(text, tmp_path) as program:
        program.session.break_on_exceptions("uncaught")
        program.session.go()
        stop = program.session.stop()
        assert [program.tell(place) for place in stop.frames] == [
            "Part.forward in part(f32[2,3]): + f32[2,3], @ !RuntimeError",
            "Net.forward in root(f32[2,3]): * f32[2,3], part !RuntimeError",
            "<module>: ones(2, 3) f32[2,3], root !RuntimeError",
        ]


def test_rows_come_at_once(tmp_path: Path) -> None:
    with debugged(STACK, tmp_path, "end") as program:
        program.session.go()
        stop = program.session.stop()
        before = time.monotonic()
        program.tell(stop.top)
        assert time.monotonic() - before < 2


def test_nothing_is_changed_by_being_asked(tmp_path: Path) -> None:
    """No name, no warning that is shown again, no value that is kept alive, no record."""
    text = """
        import gc
        import warnings
        import weakref
        import torch
        from torch import nn

        def complain():
            warnings.warn("only once")

        class Net(nn.Module):
            def forward(self, x):
                y = x * 2
                self.seen = weakref.ref(y)
                y = y + 1  # @stop
                print(sorted(locals()), self.seen() is None)
                complain()
                return y.sum()

        net = Net()
        for _ in range(3):
            net(torch.ones(3))
        print(sorted(globals()), len(warnings.filters))
    """

    def drive(watched: Watched) -> None:
        session = watched.session
        session.break_at("stop")
        session.go()
        for _ in range(3):
            stop = watched.stop()
            for place in stop.frames:
                asked = f"(lambda m: m and m.describe_stop({place.number}))"
                module = "__import__('sys').modules.get('shapetrace.agent.stop_query')"
                session.evaluate(f"{asked}({module})")
            session.resume(stop.thread)
        watched.end()

    heard, script = same_as_without_us(text, drive, tmp_path)
    assert heard.module_counts() == {"": 3}
    assert heard.calls(script.path) == ["21: ones(3)", "12: *", "14: +", "17: sum()"]
