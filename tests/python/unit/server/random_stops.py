"""Random programs that stop here and there, and note what each of their stores has really stored.

    def work(a, b):
        begin(4, a=a, b=b)
        c = tail(a)
        note(6, c=c)
        for _ in range(2):
            if chance():
                c = torch.ones(size())
                note(10, c=c)
            with contextlib.suppress(Failed):
                b = c[1:]
                note(13, b=b)
                may_fail()
            stop()

Sizes repeat for a while, so that the recorder looks ever more rarely, and change then.
"""

from __future__ import annotations

from random import Random

NAMES = ("a", "b", "c", "d")

HELPERS = """\
class Failed(Exception):
    pass
def tail(x):
    return x[1:]
def new():
    return torch.ones(size())
def pair(x):
    return x[1:], torch.ones(size())
def same(x):
    return x
"""


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._lines: list[str] = []
        self._indent = 0
        self._loops = 0

    def program(self) -> str:
        """The text of a program."""
        kind = self._random.choice(("plain", "plain", "module", "generator", "recursive", "script"))
        # The text stands behind one line that imports what is needed.
        self._lines = HELPERS.rstrip().split("\n")
        getattr(self, f"_{kind}")()
        return "\n".join(self._lines) + "\n"

    def _add(self, text: str) -> int:
        self._lines.append("    " * self._indent + text)
        return len(self._lines) + 1

    def _plain(self) -> None:
        self._function("def work(a, b):", "a=a, b=b")
        self._add("for number in range(CALLS):")
        self._add("    with contextlib.suppress(Failed):")
        self._add("        work(torch.ones(size()), torch.ones(size()))")

    def _module(self) -> None:
        self._add("class Net(nn.Module):")
        self._indent += 1
        self._function("def forward(self, a, b):", "a=a, b=b")
        self._indent -= 1
        self._add("net = Net()")
        self._add("for number in range(CALLS):")
        self._add("    with contextlib.suppress(Failed):")
        self._add("        net(torch.ones(size()), torch.ones(size()))")

    def _generator(self) -> None:
        self._function("def work(a, b):", "a=a, b=b", is_generator=True)
        self._add("for number in range(CALLS // 2):")
        self._add("    made = [work(torch.ones(size()), torch.ones(size())) for _ in range(2)]")
        self._add("    for _ in range(6):")
        self._add("        for each in made:")
        self._add("            with contextlib.suppress(Failed):")
        self._add("                next(each, None)")

    def _recursive(self) -> None:
        self._function("def work(a, b, depth=2):", "a=a, b=b", is_recursive=True)
        self._add("for number in range(CALLS // 4):")
        self._add("    with contextlib.suppress(Failed):")
        self._add("        work(torch.ones(size()), torch.ones(size()))")

    def _script(self) -> None:
        for name in NAMES[:2]:
            self._store(f"{name} = torch.ones(size())", name)
        self._add("for number in range(CALLS):")
        self._indent += 1
        self._add("try:")
        self._indent += 1
        self._block(2, 4)
        self._add("stop()")
        self._indent -= 1
        self._add("except (Failed, UnboundLocalError, NameError):")
        self._add("    pass")
        self._indent -= 1

    def _function(
        self, head: str, names: str, is_generator: bool = False, is_recursive: bool = False
    ) -> None:
        line = self._add(head)
        self._indent += 1
        self._add(f"begin({line}, {names})")
        if self._random.random() < 0.2:
            self._add("read = lambda: (a, c)")  # these are in cells, then
        self._block(2, 5)
        if is_generator:
            self._add("yield a")
        if is_recursive:
            self._add("if depth:")
            self._add("    work(torch.ones(size()), torch.ones(size()), depth - 1)")
        self._block(2, 4)
        self._add("stop()")
        if is_generator:
            self._add("yield a")
        self._indent -= 1

    def _store(self, statement: str, *names: str) -> None:
        line = self._add(statement)
        given = ", ".join(f"{each}={each}" for each in names)
        self._add(f"note({line}, {given})")

    def _block(self, depth: int, most: int) -> None:
        for _ in range(self._random.randint(2, most)):
            self._statement(depth)

    def _inside(self, head: str, depth: int) -> None:
        self._add(head)
        self._indent += 1
        self._block(depth - 1, 3)
        self._indent -= 1

    def _statement(self, depth: int) -> None:
        random = self._random
        name, other, third = (random.choice(NAMES[:3]) for _ in range(3))
        known = random.choice(NAMES[:2])
        choice = random.randrange(20 if depth else 13)
        match choice:
            case 0 | 1:
                self._store(f"{name} = torch.ones(size())", name)
            case 2 | 3:
                self._store(f"{name} = tail({known})", name)
            case 4:
                self._store(f"{name} = {known} * 2", name)
            case 5:
                self._store(f"{name} = new()", name)
            case 6:
                self._store(f"{name} = same({known})", name)
            case 7:
                self._store(f"{name} = d = tail({known})", name)
            case 8 if name != other:
                self._store(f"{name}, {other} = pair({known})", name, other)
            case 9:
                self._add("may_fail()")
            case 10:
                self._add("d = torch.ones(size())")
                self._add("del d")
            case 11:
                self._store(f"{third} = [tail(it) for it in ({known},)][0]", third)
            case 13:
                self._inside("if chance():", depth)
                if random.random() < 0.5:
                    self._inside("else:", depth)
            case 14:
                self._loops += 1
                self._inside(f"for i{self._loops} in range({random.randint(0, 2)}):", depth)
            case 15:
                self._inside("with contextlib.suppress(Failed):", depth)
            case 16:
                self._inside("try:", depth)
                self._inside("except Failed:", depth)
            case 17:
                self._inside("with torch.no_grad():", depth)
            case 18:
                self._inside("try:", depth)
                self._inside("finally:", 1)
            case 19:
                line = self._add(f"for c in (torch.ones(size()), tail({known})):")
                self._indent += 1
                self._add(f"note({line}, c=c)")
                self._block(depth - 1, 2)
                if random.random() < 0.3:
                    self._add("if chance(): break")
                self._indent -= 1
            case _:
                self._add("stop()")
