"""Which assignment a name has its value from."""

from __future__ import annotations

import pytest

from shapetrace.server.definitions import Definition, definition_of
from shapetrace.server.source_structure import Structure
from tests.python.unit.server.annotated import plain

# The name meant is behind ``^``, what it is bound by behind ``@``; without one there is doubt.
BINDINGS = {
    "an assignment above": "@x = 1; y = ^x",
    "the last of several": "x = 1; @x = 2; y = ^x",
    "its own statement's former value": "@x = 1; x = ^x + 1",
    "augmented": "@x += 1; y = ^x",
    "annotated": "@x: int = 1; y = ^x",
    "only annotated": "x = 1; x: int; y = ^x",
    "unpacked": "a, (@x, *b) = c; y = ^x",
    "twice in one statement": "x, x = c; y = ^x",
    "chained": "a = @x = c; y = ^x",
    "deleted": "x = 1; del x; y = ^x",
    "imported since": "x = 1; import x; y = ^x",
    "imported under the name": "x = 1; from a import b as x; y = ^x",
    "everything imported": "x = 1; from a import *; y = ^x",
    "a function of the name": "x = 1\ndef x(): pass\ny = ^x",
    "nothing": "y = ^x",
    "given in the statement": "x = 1; y = (x := 2) + ^x",
    "given in an earlier statement": "x = 1; y = (x := 2); z = ^x",
    "a parameter": "def f(@x): return ^x",
    "keyword only": "def f(*, @x=1): return ^x",
    "a star": "def f(*@x): return ^x",
    "a parameter assigned since": "def f(x):\n @x = 1\n return ^x",
    "a lambda's parameter": "f = lambda @x: ^x",
    "outside of a lambda": "def f(x):\n return lambda: ^x",
    "a default": "x = 1\ndef f(y=^x): pass",
    "outside of a function": "x = 1\ndef f(): return ^x",
    "in a class": "class A:\n x = 1\n y = ^x",
    "global": "def f():\n global x\n x = 1\n return ^x",
    "nonlocal": "def f(x):\n def g():\n  nonlocal x\n  x = 1\n return ^x",
    "a function that changes the module": "x = 1\ndef g():\n global x\n x = 2\ng(); y = ^x",
    "an inner function's own": "def f(@x):\n def g():\n  x = 1\n return ^x",
    "a branch since": "def f(x):\n if x: x = 1\n return ^x",
    "a branch that says nothing": "def f(@x):\n if x: y = 1\n return ^x",
    "in a branch": "def f(x):\n if x:\n  @x = 1\n  return ^x",
    "in the other branch": "def f(@x):\n if x: x = 1\n else: return ^x",
    "the head of a branch": "def f(@x):\n if ^x: x = 1",
    "the head gives it": "def f(x):\n if (x := 1): return ^x",
    "a loop's own": "for @x in y: z = ^x",
    "a loop's own, changed": "for x in y:\n z = ^x\n x = 1",
    "a loop's own, behind it": "for x in y: pass\nz = ^x",
    "what is looped over": "@x = 1\nfor x in ^x: pass",
    "changed later in a loop": "x = 1\nfor y in z:\n w = ^x\n x = 2",
    "changed earlier in a loop": "x = 1\nfor y in z:\n @x = 2\n w = ^x",
    "not in the loop": "@x = 1\nfor y in z: w = ^x",
    "the end of a loop": "x = 1\nfor y in z: x = 2\nelse: w = ^x",
    "while": "x = 1\nwhile ^x: x = 2",
    "while it is the same": "@x = 1\nwhile ^x: y = 2",
    "with": "with a as @x: y = ^x",
    "with, behind it": "with a as x: pass\ny = ^x",
    "with several": "x = 1\nwith a as x, ^x: pass",
    "with a walrus": "x = 1\nwith (x := a) as b: y = ^x",
    "behind a block that may swallow errors": "x = 0\nwith a:\n x = 1\ny = ^x",
    "behind a block of torch's": "x = 0\nwith torch.no_grad(), autocast('cpu'):\n @x = 1\ny = ^x",
    "in such a block": "with torch.no_grad():\n @x = 1\n y = ^x",
    "tried": "x = 1\ntry: x = 2\nexcept E: y = ^x",
    "tried, and finally": "x = 1\ntry: x = 2\nfinally: y = ^x",
    "behind what was tried": "x = 1\ntry: x = 2\nexcept E: pass\ny = ^x",
    "not touched by what was tried": "@x = 1\ntry: z = 2\nexcept E: y = ^x",
    "within what is tried": "try:\n @x = 2\n y = ^x\nexcept E: pass",
    "the error's name": "x = 1\ntry: pass\nexcept E as x: y = ^x",
    "match": "@x = 1\nmatch ^x:\n case 1: pass",
    "a capture": "x = 1\nmatch y:\n case x: z = ^x",
    "in a case": "match y:\n case 1:\n  @x = 1\n  z = ^x",
    "a comprehension's own": "y = [^x for @x in z]",
    "a comprehension's own, in a condition": "y = [1 for x in z if ^x]",
    "what a comprehension goes over": "x = 1; y = [x for x in ^x]",
    "two loops in a comprehension": "y = [^x for x in a for x in b]",
    "from outside of a comprehension": "@x = 1; y = [^x for z in w]",
    "given in a comprehension": "x = 1; y = [x := 2 for z in w]; v = ^x",
    "a function with a default in between": "x = 1\ndef g(a=(x := 2)): pass\ny = ^x",
    "a loop's variable used in a nested loop": "for @x in y:\n for a in ^x: pass",
    "stored itself": "^x = 1",
    "reshaped in place": "x = a\nx.t_()\ny = ^x",
    "another tensor reshaped in place": "def f(x):\n y = x\n y.unsqueeze_(0)\n return ^x",
    "given other data": "x = a\nx.data = b\ny = ^x",
    "its data read": "@x = a\nb = x.data\ny = ^x",
    "reshaped in another function": "def f(): z.t_()\ndef g(@x): return ^x",
}


@pytest.mark.parametrize("marked", BINDINGS.values(), ids=BINDINGS.keys())
def test_a_name_is_bound_by_what_ran_for_certain(marked: str) -> None:
    assert shown(marked.replace("@", "")) == marked


def shown(text: str) -> str:
    """The text with the definition of the name behind ``^`` marked."""
    before, _, behind = text.partition("^")
    lines = before.split("\n")
    path = Structure(before + behind).path(len(lines), len(lines[-1]))
    definition = definition_of(path)
    if definition is None:
        return text
    target = definition.target
    assert target.end == (target.line, target.column + len(definition.name))
    marked = text.split("\n")
    line = marked[target.line - 1]
    column = target.column
    if target.line == len(lines) and column >= len(lines[-1]):
        column += 1
    marked[target.line - 1] = f"{line[:column]}@{line[column:]}"
    return "\n".join(marked)


def test_a_parameter_belongs_to_a_function_with_its_decorators() -> None:
    text = plain("""
        @a
        @b
        def f(x):
            return x
    """)
    definition = definition_of(Structure(text).path(4, 11))
    assert isinstance(definition, Definition)
    assert (definition.function, definition.declared, definition.target.line) == ("f", 1, 3)
