"""Random functions, which end, and may raise or use variables that have no value."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c", "d", "e")


class Programs:
    """Writes one function."""

    def __init__(self, seed: int, kind: str = "plain") -> None:
        self._random = random.Random(seed)
        self._kind = kind
        self._loops = 0
        self._left = self._random.choice([2, 5, 10, 20])

    def text(self) -> str:
        keyword = "async def" if self._kind.startswith("async") else "def"
        body = ["global elsewhere", *self.block(0, self._random.randint(1, 4))]
        if self._kind.endswith("generator"):
            body.append("yield 0")
        return "\n".join([f"{keyword} f(a, b=2, *rest, d=4, **named):", *_indented(body)]) + "\n"

    def block(self, depth: int, count: int = 0) -> list[str]:
        lines = []
        for _ in range(count or self._random.randint(1, 3)):
            self._left -= 1
            lines += self.statement(depth)
            if lines[-1].startswith(("raise", "return")):
                break
        return lines

    def name(self) -> str:
        return self._random.choice(NAMES)

    def value(self, depth: int = 0) -> str:
        choice = self._random.randint(0, 17 if depth < 2 else 4)
        inner = depth + 1
        match choice:
            case 0 | 1 | 2:
                return self.name()
            case 3:
                return str(self._random.randint(0, 3))
            case 4:
                return "[1, 2]"
            case 5 | 6:
                return f"(\n  {self.value(inner)} +\n  {self.value(inner)})"
            case 7:
                return f"call({self.value(inner)}, {self.value(inner)})"
            case 8:
                return f"({self.name()} := {self.value(inner)})"
            case 9:
                return f"[call(i, {self.value(2)}) for i in (1, 2)]"
            case 10:
                return f"sum({self.name()} for {self.name()} in items({self.value(inner)}))"
            case 11:
                return f"[({self.name()} := j) for i in (1, 2) for j in items(i) if i]"
            case 12:
                return f"({self.value(inner)} if {self.value(inner)} else {self.value(inner)})"
            case 13:
                return f"({self.value(inner)} and {self.value(inner)})"
            case 14:
                return f"{{i: {self.value(2)} for i in [0, 1]}}"
            case 15:
                if self._kind != "plain":
                    return "(await pause())" if self._kind.startswith("async") else "(yield 1)"
                return f"(lambda q={self.value(inner)}: q)()"
            case _:
                return f"append({self.value(inner)}, {self.value(inner)})"

    def statement(self, depth: int) -> list[str]:
        if depth > 2 or self._left < 0:
            return [f"{self.name()} = {self.value()}"]
        inner = depth + 1
        match self._random.randint(0, 27):
            case 0 | 1 | 2:
                return [f"{self.name()} = {self.value()}"]
            case 3:
                return [f"{self.name()} += {self.value()}"]
            case 4:
                first, second = self._random.sample(NAMES, 2)
                return [f"{first}, *{second} = items({self.value()})"]
            case 5:
                first, second = self._random.sample(NAMES, 2)
                return [f"{first} = {second} = {self.value()}; log(list(locals()))"]
            case 6:
                return [f"call({self.value()}, 1)"]
            case 7 | 8:
                return self.branch(inner)
            case 9:
                return [f"if {self.value()}: {self.name()} = 1; {self.name()} = {self.value(1)}"]
            case 10 | 11:
                return [
                    f"for {self.name()} in items({self.value()}):",
                    *self.looped(inner),
                    *self.otherwise(inner),
                ]
            case 12:
                counter = f"n{depth}"
                return [
                    f"{counter} = 3",
                    f"while {counter}:",
                    *_indented([f"{counter} -= 1"]),
                    *self.looped(inner),
                    *self.otherwise(inner),
                ]
            case 13 | 14 | 15:
                return self.attempt(inner)
            case 16 | 17:
                asynchronous = "async " if self._kind.startswith("async") else ""
                name = f" as {self.name()}" if self._random.random() < 0.6 else ""
                return [
                    f"{asynchronous}with manager({self.value()}){name}:",
                    *_indented(self.block(inner)),
                ]
            case 18:
                return [f"del {self.name()}"]
            case 19:
                if self._random.random() < 0.5:
                    return [f"raise Error({self.value()})"]
                return ["return" if "generator" in self._kind else f"return {self.value()}"]
            case 20:
                return [
                    f"match {self.value()}:",
                    *_indented([f"case [{self.name()}, *_]:", *_indented(self.block(inner))]),
                    *_indented([f"case int(x) if {self.name()}:", *_indented(self.block(inner))]),
                    *_indented(["case _:", *_indented(self.block(inner))]),
                ]
            case 21:
                return (
                    [
                        f"def helper(p={self.value()}):",
                        f"    nonlocal {self.name()}",
                        f"    return p + {self.value(1)}",
                        "helper()",
                    ]
                    if self._kind == "plain" and depth == 1
                    else [f"import math as {self.name()}"]
                )
            case 22:
                return [f"class {self.name()}: x = {self.value(1)}"]
            case 23:
                return [f"{self.name()}: int = {self.value()}", "elsewhere = 1"]
            case 24:
                return [f"assert {self.name()}"]
            case 25:
                return [f"log({self.name()}, \\", f"  {self.value()})"]
            case 26 if "generator" in self._kind:
                return [f"{self.name()} = yield {self.value()}"]
            case _:
                return [f"items({self.name()})[0:1] = {self.value()}"]

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.value()}:", *_indented(self.block(depth))]
        if self._random.random() < 0.3:
            lines += [f"elif {self.value()}:", *_indented(self.block(depth))]
        return lines + self.otherwise(depth)

    def otherwise(self, depth: int) -> list[str]:
        if self._random.random() < 0.5:
            return []
        return ["else:", *_indented(self.block(depth))]

    def looped(self, depth: int) -> list[str]:
        lines = self.block(depth)
        if self._random.random() < 0.4:
            word = self._random.choice(["break", "continue"])
            lines += [f"if {self.value(1)}: {word}", *self.block(depth, 1)]
        return _indented(lines)

    def attempt(self, depth: int) -> list[str]:
        lines = ["try:", *_indented(self.block(depth))]
        way = self._random.randint(0, 2)
        if way != 1:
            name = f" as {self.name()}" if self._random.random() < 0.5 else ""
            lines += [f"except (Error, NameError){name}:", *_indented(self.block(depth))]
            if self._random.random() < 0.3:
                lines += ["except TypeError:", *_indented(self.block(depth))]
            lines += self.otherwise(depth)
        if way != 0:
            lines += ["finally:", *_indented(self.block(depth))]
        return lines


def _indented(lines: list[str]) -> list[str]:
    return ["\n".join("    " + part for part in line.split("\n")) for line in lines]
