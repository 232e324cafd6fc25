"""Random functions that store, copy, branch, loop and fail, where no two tensors are of one size.

What is said of a variable can then be right at one store only. Sample::

    @looping
    def forward(self, a, b, flag, none):
        c = new()
        p = a, c
        if flag:
            a, c = c, p[0]
        for i1 in range(2):
            b = f1(a, c, chance(), None)
            look()
        return b
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

PRELUDE = """\
import contextlib, functools, itertools


class Stop(Exception):
    pass


sizes, chances = itertools.count(2), itertools.cycle(CHANCES)


def new():
    return torch.ones(next(sizes))


def same(t):
    return t


def look():
    torch.ones(1)


def chance():
    return next(chances)


def may_fail():
    if chance():
        raise Stop


def plain(function):
    return function


def handing(function):
    def wrapper(*args):
        return function(*args)
    return wrapper


def careful(function):
    def wrapper(*args):
        try:
            return function(*args)
        except Stop:
            return new()
    return wrapper


def around(function):
    @functools.wraps(function)
    def wrapper(self, *args):
        extra = new()
        result = function(self, *args)
        return result
    return wrapper


def twice(function):
    def wrapper(*args):
        function(*args)
        return function(*args)
    return wrapper


def looping(function):
    def wrapper(*args):
        for _ in range(2):
            result = function(*args)
        return result
    return wrapper


def mapping(function):
    def wrapper(self, a, b, *args):
        return list(map(lambda a, b: function(self, a, b, *args), (a, b), (b, a)))[1]
    return wrapper


def mapped(function):
    def wrapper(*args):
        return list(map(function, *zip(args, args)))[1]
    return wrapper
"""
DECORATORS = (
    "plain",
    "handing",
    "careful",
    "around",
    "twice",
    "looping",
    "mapping",
    "mapped",
    "torch.no_grad()",
)
HOOKS = (
    "",
    "register_forward_hook(lambda module, args, output: new())",
    "register_forward_pre_hook(lambda module, args: (new(), *args[1:]))",
)
CONDITIONS = ("chance()", "flag", "not flag", "none is None", "none is not None", "j", "k is None")


class FunctionWriter:
    """Writes a program, asking ``choose`` at every turn which way to go."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.loops = 0

    def choose(self, count: int) -> int:
        """Return one of the numbers below ``count``."""
        return self.draw(st.integers(0, count - 1))

    def one_of(self, *choices: str) -> str:
        """Return one of some texts."""
        return choices[self.choose(len(choices))]

    def write(self, depth: int, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * depth + text)

    def program(self) -> str:
        """Write a whole program."""
        chances = [self.choose(3) == 0 for _ in range(3 + self.choose(9))]
        self.lines.append(PRELUDE.replace("CHANCES", repr([*chances, False])))
        if self.choose(2):
            self.function("f1", 1, ("a", "b"))
            self.functions.append("f1")
        self.write(0, "class Model(nn.Module):")
        for _ in range(1 + self.choose(2)):
            self.write(1, f"@{self.one_of(*DECORATORS)}")
        self.function("forward", 2, ("a", "b", "(b, a)"))
        self.write(0, "model = Model()")
        hook = self.one_of(*HOOKS)
        if hook:
            self.write(0, f"model.{hook}")
        self.write(0, "def main():")
        self.write(1, f"for turn in range({1 + self.choose(3)}):")
        for function in (*self.functions, "model"):
            none = self.one_of("None", "new()")
            self.write(2, f"z = {function}(new(), new(), chance(), {none})")
        self.write(0, "with contextlib.suppress(Stop):")
        self.write(1, "main()")
        return "\n".join(self.lines) + "\n"

    def function(self, name: str, depth: int, results: tuple[str, ...]) -> None:
        """Write a function whose variables a to d are tensors and p is a pair."""
        parameters = "self, a, b" if depth > 1 else "a, b"
        self.write(depth - 1, f"def {name}({parameters}, flag, none):")
        self.write(depth, "c = new(); d = b; p = a, c")
        self.write(depth, f"j = {self.one_of('flag', 'None', '1')}; k = {self.one_of('flag', 'p')}")
        self.results = results
        self.block(depth, 3 + self.choose(5), in_loop=False)
        self.write(depth, f"return {self.one_of(*results)}")

    def name(self) -> str:
        """Choose a variable that holds a tensor."""
        return self.one_of("a", "b", "c", "d")

    def value(self) -> str:
        """Write an expression that is a tensor."""
        one, other = self.name(), self.name()
        values = [
            "new()",
            "new()",
            one,
            f"same({one})",
            f"p[{self.one_of('0', '1', '-1')}]",
            f"{one} if chance() else {other}",
            f"new() if {self.one_of(*CONDITIONS)} else {one}",
            f"torch.cat([{one}, {other}])",
            f"({one} := {self.one_of('new()', other)})",
            *(f"{each}({one}, {other}, chance(), None)" for each in self.functions),
        ]
        return self.one_of(*values)

    def block(self, depth: int, count: int, in_loop: bool) -> None:
        """Write some statements."""
        for _ in range(count):
            if depth < 5 and self.choose(3) == 0:
                self.compound(depth, in_loop)
            else:
                self.write(depth, self.simple(depth))

    def simple(self, depth: int) -> str:
        """Write a statement on one line; deep within others one that may fail."""
        one, other = self.name(), self.name()
        return self.one_of(
            f"{one} = {self.value()}",
            f"{one} = {self.value()}",
            f"{one} = {other}",
            f"{one}, {other} = {self.name()}, {self.name()}",
            f"{one} = {other} = {self.value()}",
            f"p = {one}, {other}",
            f"{one}, {other} = p",
            f"{one} = {other} * 1",
            f"del {one}; {self.one_of('same(p)', 'look()')}; {one} = p[0]",
            f"j = {self.one_of('chance()', 'None', 'flag')}",
            f"r = [{one} for {other} in (new(), {self.name()})]",
            "look()",
            "look()",
            "may_fail()" if depth > 2 else "look()",
        )

    def compound(self, depth: int, in_loop: bool) -> None:
        """Write a statement with others in it."""
        kind = self.choose(8)
        body = (depth + 1, 1 + self.choose(3), in_loop)
        if kind < 2:
            self.write(depth, f"if {self.one_of(*CONDITIONS)}:")
            self.block(*body)
            if self.choose(2):
                self.write(depth, "else:")
                self.block(*body)
        elif kind < 4:
            self.loops += 1
            values = f"range({1 + self.choose(3)})", f"({self.name()}, new())"
            name, value = ((f"i{self.loops}", values[0]), (self.name(), values[1]))[kind - 2]
            self.write(depth, f"for {name} in {value}:")
            self.block(depth + 1, 1 + self.choose(3), in_loop=True)
        elif kind == 4:
            self.write(depth, "try:")
            self.block(*body)
            self.write(depth + 1, "may_fail()")
            self.write(depth + 1, self.simple(depth))
            self.write(depth, self.one_of("except Stop:", "finally:"))
            self.block(*body)
        elif kind == 5:
            self.write(depth, "with contextlib.suppress(Stop):")
            self.block(*body)
            self.write(depth + 1, "may_fail()")
            self.write(depth + 1, self.simple(depth))
        else:
            ends = [f"return {self.one_of(*self.results)}"]
            ends += ["break", "continue"] if in_loop else []
            self.write(depth, f"if {self.one_of(*CONDITIONS)}:")
            self.write(depth + 1, self.one_of(*ends))


@st.composite
def programs(draw: Callable[[st.SearchStrategy[int]], int]) -> str:
    """Draw the source text of a random program."""
    return FunctionWriter(draw).program()
