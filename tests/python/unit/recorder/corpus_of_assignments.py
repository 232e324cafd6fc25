"""Functions and what their bytecode tells of the values of their variables, as text.

Each text is a function and, behind a line of dashes, what is known at its call of ``here()``,
coming from its call of ``since()``, where there is one::

    name: line 3 or line 5      the lines that may have stored what a variable holds
    line 4: name is other[0]    a copy that was made for certain, of what ``other`` still holds
    returns name: line 3        how the function ends, where there is no ``here()``
    value()[0] to name          where the result of ``value()`` goes, where there is such a call

A first line ``# flag = None`` says what is known of a variable's value. Behind some ``here()``
there is a ``return`` that keeps the compiler from having a copy of the call on each way.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from textwrap import dedent
from types import CodeType

from shapetrace.recorder.assignments import BEFORE, Assignments
from shapetrace.recorder.targets import Path, Targets

ASSIGNMENTS = {
    "the last of several stores": """
        def f(x):
            z = x + 1
            z = z * 2
            here()
        ----
        x: entry
        z: line 3
    """,
    "parameters of every kind": """
        def f(a, /, b, *c, d, **e):
            b = 1
            here()
        ----
        a: entry
        b: line 2
        d: entry
        c: entry
        e: entry
    """,
    "two ways to one place": """
        def f(x):
            z = x()
            if x:
                z = 1 + z
            here()
        ----
        x: entry
        z: line 2 or line 4
    """,
    "both ways store": """
        def f(x):
            if x:
                z = 1 + x
            else:
                z = 2 + x
            here()
            return x(1, 2)
        ----
        x: entry
        z: line 3 or line 5
    """,
    "a variable that only one way binds": """
        def f(x):
            if x:
                z = 1 + x
            here()
        ----
        x: entry
        z: line 3
    """,
    "a loop comes back": """
        def f(x):
            z = x()
            for y in z:
                here()
                z = y + 1
        ----
        x: entry
        z: line 2 or line 5
        y: line 3
    """,
    "since an earlier place": """
        def f(x):
            z = x()
            if since():
                z = 1 + z
            here()
        ----
        x: unchanged
        z: unchanged or line 4
    """,
    "nothing need have happened since the same place": """
        def f(x):
            for y in x:
                both_since_and_here()
                z = y + 1
        ----
        x: unchanged
        y: unchanged or line 2
        z: unchanged or line 4
    """,
    "all ways since an earlier place store": """
        def f(x):
            for y in x:
                since()
                z = y + 1
                here()
        ----
        x: unchanged
        y: unchanged or line 2
        z: line 4
    """,
    "an error before the store and behind it": """
        def f(x):
            z = x()
            try:
                y = x + 1
                z = y + 1
                x()
            except ValueError:
                here()
        ----
        x: entry
        z: line 2 or line 5
        y: line 4
    """,
    "finally after both": """
        def f(x):
            z = x()
            try:
                z = x + 1
            finally:
                here()
        ----
        x: entry
        z: line 4
    """,
    "a block that may swallow an error": """
        def f(x):
            z = x()
            with x:
                z = x + 1
            here()
            return x(1, 2)
        ----
        x: entry
        z: line 2 or line 4
    """,
    "a deleted variable": """
        def f(x):
            z = x()
            if x:
                del z
            else:
                z = 3 + x
            here()
            return x(1, 2)
        ----
        x: entry
        z: line 6
    """,
    "what a closure can change": """
        def f(x):
            z = x()
            y = lambda: z
            here()
        ----
        x: entry
        y: line 3
    """,
    "a return in between": """
        def f(x):
            z = x()
            if x:
                z = 1
                return z
            here()
        ----
        x: entry
        z: line 2
    """,
    "an error in between": """
        def f(x):
            z = x()
            if x:
                z = 1
                raise ValueError
            here()
        ----
        x: entry
        z: line 2
    """,
    "several in one statement": """
        def f(x):
            a, (b, *c) = x()
            d = e = x()
            with x as g:
                here()
        ----
        x: entry
        a: line 2
        b: line 2
        c: line 2
        d: line 3
        e: line 3
        g: line 4
    """,
    "augmented, annotated, walrus, loop, handler": """
        def f(x):
            a: int = x()
            a += 1
            if (b := a + 1):
                pass
            here()
        ----
        x: entry
        a: line 3
        b: line 4
    """,
}

COPIES = {
    "a copy": """
        def f(x):
            z = x
            here()
        ----
        x: entry
        z: line 2
        line 2: z is x
    """,
    "a copy that may not have been made": """
        def f(x):
            z = x()
            if z:
                z = x
            here()
        ----
        x: entry
        z: line 2 or line 4
    """,
    "a copy that was stored over": """
        def f(x):
            z = x
            if x():
                z = x()
            here()
        ----
        x: entry
        z: line 2 or line 4
        line 2: z is x
    """,
    "a copy of what has changed since": """
        def f(x):
            z = x
            x = x()
            here()
        ----
        x: line 3
        z: line 2
    """,
    "a copy of what may have changed since": """
        def f(x):
            z = x
            if z():
                x = x()
            here()
        ----
        x: entry or line 4
        z: line 2
    """,
    "a copy made again": """
        def f(x):
            z = x
            x = x()
            z = x
            here()
        ----
        x: line 3
        z: line 4
        line 4: z is x
    """,
    "a copy in a loop": """
        def f(x):
            for y in x:
                z = y
                here()
        ----
        x: entry
        y: line 2
        z: line 3
        line 3: z is y
    """,
    "a copy of a deleted variable": """
        def f(x):
            z = x
            del x
            here()
        ----
        z: line 2
    """,
    "copies that change places": """
        def f(x, y):
            x, y = y, x
            here()
        ----
        x: line 2
        y: line 2
    """,
    "copies side by side": """
        def f(x, y):
            a, b, c = x, y, 3
            here()
        ----
        x: entry
        y: entry
        a: line 2
        b: line 2
        c: line 2
        line 2: a is x
        line 2: b is y
    """,
    "items": """
        def f(x, y):
            a = x[-1]
            b, c = x
            first, *rest, last = y
            d = y["key"]
            here()
        ----
        x: entry
        y: entry
        a: line 2
        b: line 3
        c: line 3
        first: line 4
        rest: line 4
        last: line 4
        d: line 5
        line 2: a is x[-1]
        line 3: b is x[0 of 2]
        line 3: c is x[1 of 2]
        line 4: first is y[0]
        line 4: last is y[-1]
    """,
    "an item of what is taken apart further": """
        def f(x):
            a = x[-1]
            x = x[:-1]
            here()
        ----
        x: line 3
        a: line 2
    """,
    "one of two values": """
        def f(x, y):
            z = x if x() else y()
            here()
        ----
        x: entry
        y: entry
        z: line 2
    """,
    "a name given twice at once": """
        def f(x):
            _, _ = x
            here()
        ----
        x: entry
        _: line 2
        line 2: _ is x[1 of 2]
    """,
    "the same in a chain": """
        def f(x):
            a = b = x
            here()
        ----
        x: entry
        a: line 2
        b: line 2
        line 2: a is x
        line 2: b is x
    """,
}

BRANCHES = {
    "a parameter that is None": """
        # flag = None
        def f(x, flag):
            z = x()
            if flag is not None:
                z = flag + 1
            here()
        ----
        x: entry
        flag: entry
        z: line 2
    """,
    "a parameter that is not None": """
        # flag = [0]
        def f(x, flag):
            z = x()
            if flag is not None:
                z = flag + 1
            here()
        ----
        x: entry
        flag: entry
        z: line 4
    """,
    "a parameter that is true": """
        # flag = 'yes'
        def f(x, flag):
            if not flag:
                z = x()
            else:
                z = x + 1
            here()
            return x(1, 2)
        ----
        x: entry
        flag: entry
        z: line 5
    """,
    "a list may have been filled since": """
        # flag = []
        def f(x, flag):
            z = x()
            if flag:
                z = x + 1
            here()
        ----
        x: entry
        flag: entry
        z: line 2 or line 4
    """,
    "a parameter that may have changed": """
        # flag = None
        def f(x, flag):
            z = x()
            if flag is not None:
                z = x + 1
                flag = None
            here()
        ----
        x: entry
        flag: entry or line 5
        z: line 2 or line 4
    """,
    "a variable that is stored to once": """
        # flag = False
        def f(x):
            z = x()
            flag = x + 1
            while flag:
                z = z + 1
            here()
        ----
        x: entry
        z: line 2
        flag: line 3
    """,
    "a variable that is stored to in a loop": """
        # flag = False
        def f(x):
            z = x()
            for y in z:
                flag = y()
                if flag:
                    z = z + 1
                here()
        ----
        x: entry
        z: line 2 or line 6
        y: line 3
        flag: line 4
    """,
    "part of a condition": """
        # flag = None
        def f(x, flag):
            z = x()
            if z and flag is not None:
                z = 1 + z
            here()
        ----
        x: entry
        flag: entry
        z: line 2
    """,
    "one of two values by a variable": """
        # flag = None
        def f(x, flag):
            z = x + 1
            z = z if flag is None else x()
            here()
        ----
        x: entry
        flag: entry
        z: line 3
    """,
}

RETURNS = {
    "a variable": """
        def f(x):
            z = x()
            return z
        ----
        returns z: line 2
    """,
    "a tuple": """
        def f(x):
            z = x()
            y = x + 1
            return z, None, y
        ----
        returns z[0 of 3]: line 2
        returns y[2 of 3]: line 3
    """,
    "several returns": """
        def f(x):
            z = x()
            if x:
                return z
            return z
        ----
    """,
    "the only return there is left": """
        def f(x):
            if x:
                return x
            since()
            z = x()
            return z
        ----
        returns z: line 5
    """,
    "one of two values": """
        def f(x):
            z = x()
            return z if x else x
        ----
    """,
    "an expression": """
        def f(x):
            z = x()
            return z + 1, z
        ----
    """,
}

TARGETS = {
    "a name": """
        def f():
            z = value()
        ----
        value() to z
    """,
    "several names": """
        def f():
            a = b = c.d = value()
        ----
        value() to a
        value() to b
    """,
    "a tuple of names": """
        def f():
            a, (b, _), [c, d] = value()
        ----
        value()[0 of 3] to a
        value()[1 of 3][0 of 2] to b
        value()[1 of 3][1 of 2] to _
        value()[2 of 3][0 of 2] to c
        value()[2 of 3][1 of 2] to d
    """,
    "starred": """
        def f():
            a, *b, c, d = value()
        ----
        value()[0] to a
        value()[-2] to c
        value()[-1] to d
    """,
    "the same name twice": """
        def f():
            _, z, _ = value()
        ----
        value()[1 of 3] to z
        value()[2 of 3] to _
    """,
    "an item": """
        def f():
            z = value()[1][-1]
        ----
        value()[1][-1] to z
    """,
    "a slice, a key, an attribute": """
        def f(k):
            z = value()[k] if k else value()[:1] if k else value()["k"] if k else value().k
        ----
    """,
    "a walrus": """
        def f():
            y = (z := value())[0]
        ----
        value() to z
        value()[0] to y
    """,
    "the second of two values": """
        def f(x):
            a, b = x(), value()
        ----
        value() to b
    """,
    "the first of two values": """
        def f(x):
            a, b = value(), x
        ----
        value() to a
    """,
    "a choice": """
        def f(x):
            z = value() if x else 3
        ----
        value() to z
    """,
    "given to a call": """
        def f(x):
            z = x(value())
        ----
    """,
    "asked whether it is true": """
        def f(x):
            z = value() or x
            y = not value()
        ----
    """,
    "used by an operator": """
        def f(x):
            z = value() + x
            z += value()
        ----
    """,
    "an attribute first": """
        def f(x):
            x.y, z = value()
        ----
    """,
    "a global and a cell": """
        def f():
            global a
            a, b = value()
            return lambda: b
        ----
        value()[0 of 2] to a
        value()[1 of 2] to b
    """,
    "thrown away": """
        def f(x):
            value()
            z = x
        ----
    """,
}


def render(text: str) -> str:
    """What the bytecode of a function tells, in the form of the texts here."""
    source = dedent(text).removeprefix("\n").split("----\n")[0]
    first, _, rest = source.partition("\n")
    values = {}
    if first.startswith("#"):
        name, _, value = first.removeprefix("# ").partition(" = ")
        values[name], source = ast.literal_eval(value), rest
    module = compile(source, "program.py", "exec")
    code = next(each for each in module.co_consts if isinstance(each, CodeType))
    rows = _values_of(code, source) if "value()" in source else _rows(code, source, values)
    return "".join(f"{row}\n" for row in rows)


def _rows(code: CodeType, source: str, values: dict[str, object]) -> Iterator[str]:
    assignments = Assignments(code)
    never = assignments.never_taken(values)
    here = _call(code, source, "here()")
    since = _call(code, source, "since()")
    both = _call(code, source, "both_since_and_here()")
    here, since = (here, since) if both is None else (both, both)
    if here is None:
        ending = assignments.returned(since, never)
        if ending is not None:
            stores = assignments.reached(ending.offset, since, never).stores
            for name, path in ending.variables:
                yield f"returns {name}{_steps(path)}: {_lines(code, stores[name], since)}"
        return
    reached = assignments.reached(here, since, never)
    for name in assignments.names:
        if name in reached.stores:
            yield f"{name}: {_lines(code, reached.stores[name], since)}"
    for copy in sorted(reached.made, key=lambda copy: (_line(code, copy.offset), copy.name)):
        line = _line(code, copy.offset)
        yield f"line {line}: {copy.name} is {copy.source}{_steps(copy.path)}"


def _values_of(code: CodeType, source: str) -> Iterator[str]:
    targets = Targets()
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("CALL") and _text(instruction, source) == "value()":
            for target in targets.of(code, instruction.offset):
                yield f"value(){_steps(target.path)} to {target.name}"


def _call(code: CodeType, source: str, text: str) -> int | None:
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("CALL") and _text(instruction, source) == text:
            return Assignments(code).align(instruction.offset)
    return None


def _text(instruction: dis.Instruction, source: str) -> str | None:
    place = instruction.positions
    if place is None or place.lineno is None or place.lineno != place.end_lineno:
        return None
    return source.splitlines()[place.lineno - 1][place.col_offset : place.end_col_offset]


def _line(code: CodeType, offset: int) -> int:
    return list(code.co_positions())[offset // 2][0] or 0


def _lines(code: CodeType, stores: list[int], since: int | None) -> str:
    lines = [_line(code, store) for store in stores if store != BEFORE]
    texts = [f"line {line}" for line in sorted(set(lines))]
    if BEFORE in stores:
        texts.insert(0, "entry" if since is None else "unchanged")
    return " or ".join(texts)


def _steps(path: Path) -> str:
    return "".join(
        f"[{item.number}]" if item.among is None else f"[{item.number} of {item.among}]"
        for item in path
    )
