"""Random programs as trees of calls, edits of them, and the traces that they would leave.

A program's text has one call on each line: one that is put in or taken out moves all below it.
"""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.events.model import Frame, ModuleCall, Op, Tensor, Trace
from tests.support.runs import made_run

NAMES = ("relu", "linear", "add", "softmax", "view", "transpose", "matmul")
SIZES = ((2, 16), (2, 16, 64), (4, 8))


@dataclass
class Call:
    """One call: of an op, or of a module if it has a class."""

    name: str
    """The function, or the module as its parent calls it."""
    label: str = ""
    shape: tuple[int, ...] = (2, 16)
    dtype: str = "float32"
    device: str = "cpu"
    class_name: str = ""
    detail: str = ""
    inside: list[Call] = field(default_factory=list)
    value: float = 1.0
    count: int = 1
    line: int = 0
    """Set when it is written down."""


@dataclass
class World:
    """A program: what it calls, outermost first."""

    calls: list[Call]
    folder: str = "/home/ada/project"
    passes: int = 1
    with_values: bool = False

    def copy(self) -> World:
        """The same program, to be edited."""
        return copy.deepcopy(self)

    def blocks(self) -> Iterator[list[Call]]:
        """All lists of calls, outermost first."""
        pending = [self.calls]
        while pending:
            block = pending.pop(0)
            yield block
            pending += [call.inside for call in block if call.class_name]

    def ops(self) -> list[Call]:
        """All ops in the order in which they run."""
        return [call for call in self._walk(self.calls) if not call.class_name]

    def modules(self) -> list[Call]:
        """All module calls in the order in which they begin."""
        return [call for call in self._walk(self.calls) if call.class_name]

    def _walk(self, calls: list[Call]) -> Iterator[Call]:
        for call in calls:
            yield call
            yield from self._walk(call.inside)

    def text(self) -> str:
        """The program, one line for each call."""
        lines: list[str] = []
        for call in self._walk(self.calls):
            lines.append(f"x = self.{call.name}({call.label})")
            call.line = len(lines)
        return "\n".join(lines) + "\n"

    def trace(self) -> Trace:
        """What recording it gives."""
        return _Writer(self).trace()

    def read_source(self, path: str) -> bytes | None:
        """Its file."""
        return self.text().encode() if path == f"{self.folder}/model.py" else None


class _Writer:
    def __init__(self, world: World) -> None:
        text = world.text()
        self._path = f"{world.folder}/model.py"
        self._world = world
        self._digest = hashlib.sha256(text.encode()).hexdigest()
        self._ops: list[Op] = []
        self._modules: list[ModuleCall] = []
        self._frames: dict[tuple[int, str], Frame] = {}
        self._number = 0

    def trace(self) -> Trace:
        self._write(self._world.calls, None, "", "main", ())
        run = made_run((self._path,), {self._path: self._digest}, self._world.passes)
        frames = tuple(self._frames.values())
        return Trace(run, tuple(self._modules), tuple(self._ops), frames)

    def _write(
        self,
        calls: list[Call],
        parent: int | None,
        path: str,
        function: str,
        stack: tuple[int, ...],
    ) -> None:
        for call in calls:
            self._number += 1
            number = self._number
            frame = self._frame(call.line, function)
            output = Tensor(call.shape, call.dtype, call.device)
            source = Tensor((2, 16), call.dtype, call.device)
            prints = (_print(call),) if self._world.with_values else ()
            inner = (*stack, frame.id)
            if call.class_name:
                own = call.name if not path else f"{path}.{call.name}"
                self._modules.append(
                    ModuleCall(
                        id=number,
                        parent=parent,
                        path=own,
                        class_name=call.class_name,
                        detail=call.detail,
                        call=1,
                        count=call.count,
                        file=self._path,
                        line=call.line,
                        column=4,
                        end_line=call.line,
                        end_column=40,
                        function=function,
                        stack=inner,
                        inputs=(source,),
                        input_names=("x",),
                        outputs=(output,),
                        result=None,
                        fingerprints=prints,
                    )
                )
                self._write(call.inside, number, own, f"{call.class_name}.forward", inner)
                continue
            self._ops.append(
                Op(
                    id=number,
                    name=f"torch.{call.name}",
                    label=f"{call.name}({call.label})",
                    form=f"{call.name}({{0}}, {call.label})",
                    module=parent,
                    function=function,
                    file=self._path,
                    line=call.line,
                    column=4,
                    end_line=call.line,
                    end_column=40,
                    direct=True,
                    stack=inner,
                    inputs=(source,),
                    outputs=(output,),
                    result=None,
                    count=call.count,
                    fingerprints=prints,
                )
            )

    def _frame(self, line: int, function: str) -> Frame:
        key = (line, function)
        if key not in self._frames:
            self._frames[key] = Frame(
                len(self._frames) + 1, self._path, line, function, 4, line, 40
            )
        return self._frames[key]


def _print(call: Call) -> CallFingerprints:
    value = call.value
    numbers = tuple(value * step for step in (0.25, -1.0, 0.5))
    return CallFingerprints(
        1, call.count, (Fingerprint(call.dtype, 32, value / 8, value, -value, value, numbers),)
    )


def random_world(seed: int, *, with_values: bool = False, depth: int = 3) -> World:
    """A program of nested modules."""
    chance = random.Random(seed)
    root = Call("net", class_name="Net", inside=_block(chance, depth))
    return World([*_ops(chance, 2), root, *_ops(chance, 2)], with_values=with_values)


def _block(chance: random.Random, depth: int) -> list[Call]:
    calls: list[Call] = []
    for number in range(chance.randint(2, 5)):
        calls += _ops(chance, chance.randint(0, 4))
        if depth:
            width = chance.choice((8, 16))
            calls.append(
                Call(
                    f"block{number}",
                    class_name=chance.choice(("Block", "Attention")),
                    detail=f"width={width}",
                    inside=_block(chance, depth - 1),
                    value=chance.uniform(1, 2),
                )
            )
    return calls or _ops(chance, 1)


def _ops(chance: random.Random, many: int) -> list[Call]:
    return [random_op(chance) for _ in range(many)]


def random_op(chance: random.Random) -> Call:
    """An op with some arguments."""
    name = chance.choice(NAMES)
    label = f"dim={chance.randint(0, 2)}" if chance.random() < 0.5 else ""
    return Call(name, label, chance.choice(SIZES), value=chance.uniform(1, 2))
