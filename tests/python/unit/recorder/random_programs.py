"""Random programs of tensor operations as source text, all of whose shapes are known to fit.

Sample::

    def main(x, y, b):
        v0 = torch.ones(2, 3) * 2
        for i1 in range(2):
            v0 += helper(x.T.reshape(2, 3))
        v2, v3 = (v0 @ y.T).chunk(2)
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeAlias

from hypothesis import strategies as st

Shape: TypeAlias = tuple[int, ...]

SHAPES: tuple[Shape, ...] = ((), (2,), (3,), (6,), (2, 2), (2, 3), (3, 2), (3, 3))

PRELUDE = """\
def helper(t):
    half = t / 2
    return half.tanh()


def fold(function, t):
    return function(t) + function(t * 2)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(size, size)
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, t, *, shift=None):
        h = self.inner(t)
        h = F.gelu(h) * self.scale
        if shift is not None:
            h = h + shift
        return h


block2, block3 = Block(2), Block(3)
linear23, linear32 = nn.Linear(2, 3), nn.Linear(3, 2)
pair2 = nn.Sequential(block2, nn.ReLU(), block2)
"""
FINALE = """\


try:
    main(x, y, b)
except (RuntimeError, IndexError) as error:
    failure = str(error)
"""


class ProgramWriter:
    """Writes one program, asking ``choose`` at every turn which way to go."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.names = 0
        self.variables: dict[str, Shape] = {"x": (2, 3), "y": (2, 3), "b": (3,)}

    def choose(self, count: int) -> int:
        """Return one of the numbers below ``count``."""
        return self.draw(st.integers(0, count - 1))

    def new_name(self, kind: str) -> str:
        """Return a name that was not used before."""
        self.names += 1
        return f"{kind}{self.names}"

    def program(self) -> str:
        """Write a whole program."""
        self.lines.append("\n\ndef main(x, y, b):")
        for _ in range(2 + self.choose(5)):
            self.statement(1)
        return PRELUDE + "\n".join(self.lines) + "\n" + FINALE

    # Statements: each writes one, in which ``self.variables`` are what can be read.

    def statement(self, depth: int) -> None:
        """Write a statement; only shallow ones hold others."""
        simple = [
            self.assign,
            self.assign,
            self.assign_pair,
            self.unpack,
            self.augment,
            self.in_place,
            self.set_item,
            self.evaluate,
        ]
        compound = [
            self.loop,
            self.loop_over_tensor,
            self.branch,
            self.without_gradients,
            self.attempt,
            self.function,
        ]
        choices = simple + compound if depth < 3 else simple
        choices[self.choose(len(choices))](depth)

    def write(self, depth: int, text: str) -> None:
        """Write a line, or several."""
        self.lines.extend("    " * depth + line for line in text.split("\n"))

    def block(self, depth: int) -> None:
        """Write statements whose new names are not known behind them."""
        before = dict(self.variables)
        for _ in range(1 + self.choose(2)):
            self.statement(depth)
        self.variables = before

    def shape(self) -> Shape:
        """Choose a shape."""
        return SHAPES[self.choose(len(SHAPES))]

    def assign(self, depth: int) -> None:
        shape = self.shape()
        value = self.expression(shape, 3)
        name = self.new_name("v")
        self.write(depth, f"{name} = {value}")
        self.variables[name] = shape

    def assign_pair(self, depth: int) -> None:
        first, second = self.shape(), self.shape()
        values = f"{self.expression(first, 2)}, {self.expression(second, 2)}"
        names = self.new_name("v"), self.new_name("v")
        self.write(depth, f"{', '.join(names)} = {values}")
        self.variables.update(zip(names, (first, second), strict=True))

    def unpack(self, depth: int) -> None:
        values = (
            self.expression((2, 3), 2) + ".chunk(2)",
            self.expression((2, 3), 2) + ".unbind()",
            self.expression((2, 3), 2),
            self.expression((3, 2), 2) + ".max(dim=1)",
        )
        kind = self.choose(4)
        shape: Shape = ((1, 3), (3,), (3,), (3,))[kind]
        names = self.new_name("v"), self.new_name("v")
        self.write(depth, f"{', '.join(names)} = {values[kind]}")
        if shape in SHAPES:
            self.variables.update(dict.fromkeys(names[:1], shape))

    def augment(self, depth: int) -> None:
        name, shape = self.variable()
        operator = ("+=", "-=", "*=", "/=")[self.choose(4)]
        self.write(depth, f"{name} {operator} {self.expression(shape, 2)}")

    def in_place(self, depth: int) -> None:
        name, shape = self.variable()
        other = self.expression(shape, 1)
        call = ("relu_()", f"mul_({other})", f"copy_({other})", "fill_(0.5)")[self.choose(4)]
        self.write(depth, f"{name}.{call}")

    def set_item(self, depth: int) -> None:
        name, shape = self.variable()
        if shape:
            self.write(depth, f"{name}[0] = {self.expression(shape[1:], 2)}")
        else:
            self.write(depth, f"{name}[...] = {self.expression((), 1)}")

    def evaluate(self, depth: int) -> None:
        value = self.expression(self.shape(), 3)
        endings = ("", ".shape", ".sum().item()", ".tolist()", ".size()")
        self.write(depth, value + endings[self.choose(len(endings))])

    def loop(self, depth: int) -> None:
        self.write(depth, f"for {self.new_name('i')} in range({1 + self.choose(3)}):")
        self.block(depth + 1)

    def loop_over_tensor(self, depth: int) -> None:
        value = self.expression((2, 3), 2)
        name = self.new_name("row")
        self.write(depth, f"for {name} in {value}:")
        before = dict(self.variables)
        self.variables[name] = (3,)
        self.block(depth + 1)
        self.variables = before

    def branch(self, depth: int) -> None:
        self.write(depth, f"if {self.expression((), 2)} > 0:")
        self.block(depth + 1)
        self.write(depth, f"elif ({self.expression((3,), 2)} < 1).all():")
        self.block(depth + 1)
        self.write(depth, "else:")
        self.block(depth + 1)

    def without_gradients(self, depth: int) -> None:
        self.write(depth, "with torch.no_grad():")
        self.block(depth + 1)

    def attempt(self, depth: int) -> None:
        self.write(depth, "try:")
        self.block(depth + 1)
        self.write(depth + 1, f"{self.expression((2, 3), 2)} @ {self.expression((2, 2), 1)}")
        self.write(depth, "except RuntimeError:")
        self.block(depth + 1)

    def function(self, depth: int) -> None:
        name = self.new_name("f")
        shape = self.shape()
        self.write(depth, f"def {name}(t):")
        before = dict(self.variables)
        self.variables = {"t": shape}
        for _ in range(self.choose(2)):
            self.statement(depth + 1)
        self.write(depth + 1, f"return {self.expression(shape, 2)}")
        self.variables = before
        value = self.new_name("v")
        self.write(depth, f"{value} = {name}({self.expression(shape, 1)})")
        self.variables[value] = shape

    # Expressions: each returns one of the shape that is asked for.

    def variable(self) -> tuple[str, Shape]:
        """Choose a variable."""
        names = list(self.variables)
        name = names[self.choose(len(names))]
        return name, self.variables[name]

    def expression(self, shape: Shape, depth: int) -> str:
        """Write an expression of a shape, with at most ``depth`` operations around each other."""
        if depth == 0:
            return self.leaf(shape)
        ways: list[Callable[[Shape, int], str]]
        ways = [self.leaf, self.unary, self.method, self.binary, self.function_call, self.reduced]
        ways += [self.lambda_call, self.conditional, self.reshaped]
        if shape:
            ways += [self.stacked, self.sliced, self.on_two_lines]
        if len(shape) == 2:
            ways += [self.transposed, self.product, self.joined]
        if shape and shape[-1] in (2, 3):
            ways += [self.module_call, self.module_call]
        return ways[self.choose(len(ways))](shape, depth - 1)

    def leaf(self, shape: Shape, depth: int = 0) -> str:
        fitting = [name for name, its in self.variables.items() if its == shape]
        factories = [f"torch.ones({list(shape)})", f"torch.full({shape}, 0.5)"]
        choices = fitting * 2 + factories
        return choices[self.choose(len(choices))]

    def unary(self, shape: Shape, depth: int) -> str:
        inner = self.expression(shape, depth)
        forms = ("(-{})", "abs({})", "torch.tanh({})", "F.relu({})", "torch.exp(input={})")
        return forms[self.choose(len(forms))].format(inner)

    def method(self, shape: Shape, depth: int) -> str:
        inner = self.expression(shape, depth)
        methods = ("relu()", "clone()", "to(torch.float32)", "data", "clamp(max=2)", "cumsum(-1)")
        return f"{inner}.{methods[self.choose(len(methods))]}"

    def binary(self, shape: Shape, depth: int) -> str:
        left, right = self.expression(shape, depth), self.expression(shape, depth)
        forms = ("({} + {})", "({} * {})", "({} - {} / 2)", "torch.maximum({}, {})")
        return (*forms, "torch.add({}, other={})")[self.choose(5)].format(left, right)

    def function_call(self, shape: Shape, depth: int) -> str:
        inner = self.expression(shape, depth)
        return ("helper({})", "fold(torch.sin, {})", "fold(helper, t={})")[self.choose(3)].format(
            inner
        )

    def lambda_call(self, shape: Shape, depth: int) -> str:
        return f"(lambda t, n=2: t * n)({self.expression(shape, depth)})"

    def conditional(self, shape: Shape, depth: int) -> str:
        one, other = self.expression(shape, depth), self.expression(shape, 0)
        return f"({one} if {self.expression((), 1)} < 1 else {other})"

    def reduced(self, shape: Shape, depth: int) -> str:
        inner = self.expression((*shape, 2) if (*shape, 2) in SHAPES else shape, depth)
        if (*shape, 2) in SHAPES:
            return f"{inner}.{('sum', 'mean', 'amax')[self.choose(3)]}(dim=-1)"
        return f"sum([{inner}, {self.expression(shape, 0)}])"

    def reshaped(self, shape: Shape, depth: int) -> str:
        others = [other for other in SHAPES if prod(other) == prod(shape)]
        inner = self.expression(others[self.choose(len(others))], depth)
        return f"{inner}.reshape({shape})"

    def stacked(self, shape: Shape, depth: int) -> str:
        row = self.expression(shape[1:], depth)
        return f"torch.stack([{row} * i for i in range({shape[0]})])"

    def sliced(self, shape: Shape, depth: int) -> str:
        wide = (6, *shape[1:])
        if wide in SHAPES:
            return f"{self.expression(wide, depth)}[:{shape[0]}]"
        return f"{self.expression(shape, depth)}[:, None].squeeze(1)"

    def on_two_lines(self, shape: Shape, depth: int) -> str:
        return f"({self.expression(shape, depth)}\n    .neg())"

    def transposed(self, shape: Shape, depth: int) -> str:
        return f"{self.expression(shape[::-1], depth)}.{('T', 'mT', 't()')[self.choose(3)]}"

    def product(self, shape: Shape, depth: int) -> str:
        left, right = self.expression((shape[0], 3), depth), self.expression((3, shape[1]), 0)
        return f"({left} @ {right})"

    def joined(self, shape: Shape, depth: int) -> str:
        first, rest = self.expression((shape[1],), depth), self.expression(shape, 0)
        return f"torch.cat([{first}[None], *{rest}[1:].split(1)])"

    def module_call(self, shape: Shape, depth: int) -> str:
        size = shape[-1]
        inner = self.expression(shape, depth)
        swapped = (*shape[:-1], 5 - size)
        choices = [f"block{size}({inner})", f"block{size}({inner}, shift={inner})"]
        choices.append(f"block{size}.forward({inner})")
        if size == 2:
            choices.append(f"pair2({inner})")
        if swapped in SHAPES:
            choices.append(f"linear{5 - size}{size}({self.expression(swapped, depth)})")
        return choices[self.choose(len(choices))]


@st.composite
def programs(draw: Callable[[st.SearchStrategy[int]], int]) -> str:
    """Draw the source text of a random program."""
    return ProgramWriter(draw).program()
