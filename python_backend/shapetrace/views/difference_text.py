"""The words for one difference between two runs, shared by the views of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from shapetrace.comparing.comparison import (
    Apart,
    Aspect,
    Comparison,
    Difference,
    Event,
    Kind,
    extent,
)
from shapetrace.events.model import Frame, ModuleCall, Op, Other, Tensor, Value
from shapetrace.views.call_text import error_text, module_title
from shapetrace.views.place_text import place_text
from shapetrace.views.remedies import REMEDIES
from shapetrace.views.shapes import result_value, value_text
from shapetrace.views.source_excerpts import Sources
from shapetrace.views.styled import printable
from shapetrace.views.summary import counted

KIND_WORDS: dict[Kind, str] = {
    "only": "only one",
    "op": "op",
    "error": "error",
    "arguments": "arguments",
    "shape": "shape",
    "dtype": "dtype",
    "device": "device",
    "values": "values",
    "gradient": "gradient",
    "layout": "layout",
    "calls": "calls",
    "order": "order",
    "name": "name",
}


def notes_of(comparison: Comparison) -> list[str]:
    """Notes on calls that were not compared, and on parts that only one run did not record."""
    notes = [*comparison.notes]
    for letter, side, other in (
        ("A", comparison.a, comparison.b),
        ("B", comparison.b, comparison.a),
    ):
        for reason in side.unseen:
            if reason not in other.unseen:
                notes.append(f"only {letter} has what was not looked into: {reason}")
                notes += [REMEDIES[reason]] if reason in REMEDIES else []
    return notes


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that went into a call or came out of it, in both runs."""

    role: str
    a: Value | None
    b: Value | None
    marks: tuple[str, ...] = ()
    """In what it differs; empty where it is alike."""

    def text(self, is_a: bool, length: int | None = None) -> str:
        """The value in one of the runs, with its name in the program."""
        value = self.a if is_a else self.b
        if value is None:
            return "–"
        name = value.name if isinstance(value, Tensor) else None
        text = printable(value_text(value, length))
        if name and (length is None or len(text) + len(name) + 1 <= length):
            text = f"{text} {printable(name)}"
        return text


def event_of(difference: Difference) -> Event:
    """The call in A, or in B where A has none."""
    event = difference.a or difference.b
    if event is None:
        raise AssertionError("a difference is of a call")
    return event


def side_text(difference: Difference) -> str:
    """``only in A``; empty for a call that both made."""
    if difference.a is not None and difference.b is not None:
        return ""
    side = "A" if difference.b is None else "B"
    if difference.kind in ("shape", "calls"):
        return f"with these shapes only in {side}"
    inside = f", with {counted(difference.inside, 'op')} inside" if difference.inside else ""
    return f"only in {side}{inside}"


def where_text(difference: Difference) -> str:
    """The module that a call was made in: ``layers.3 (Block), call 2``."""
    module = difference.module_a or difference.module_b
    event = event_of(difference)
    if isinstance(event, ModuleCall):
        module = event
    if module is None:
        return "outside modules"
    number = "" if module.call == 1 else f", call {module.call}"
    text = f"{module_title(module)}{number}"
    other = difference.module_b if module is difference.module_a else None
    if isinstance(difference.a, ModuleCall) and isinstance(difference.b, ModuleCall):
        other = difference.b
    if other is not None and other.path != module.path:
        text += f", in B {module_title(other)}"
    return text


def call_text(event: Event) -> str:
    """The called op or module: the label of an op, the description of a module."""
    if isinstance(event, Op):
        return printable(event.label)
    return printable(f"{event.class_name}({event.detail})")


def short_text(difference: Difference) -> str:
    """The most important difference, in a few words: ``output f32[2,3] → f32[2,4]``."""
    if difference.a is None or difference.b is None:
        return side_text(difference)
    aspect = next(aspect for aspect in difference.aspects if aspect.kind == difference.kind)
    if aspect.kind == "order":
        return "at another time"
    if aspect.kind == "error":
        return f"{_error_name(difference.a)} → {_error_name(difference.b)}"
    if aspect.apart is not None:
        return f"{_part_text(aspect)} {apart_text(aspect.apart)}"
    ours, theirs = _aspect_text(aspect.a), _aspect_text(aspect.b)
    if aspect.kind in ("gradient", "layout"):
        ours, theirs = _trait_text(aspect.kind, aspect.a), _trait_text(aspect.kind, aspect.b)
    if aspect.part == "call":
        return changed_text(ours, theirs)
    return f"{_part_text(aspect)} {ours} → {theirs}"


def changed_text(a: str, b: str) -> str:
    """``eps=1e-12 → eps=1e-05``: the arguments in which two calls of one function differ."""
    name_a, inside_a = _split_call(a)
    name_b, inside_b = _split_call(b)
    if name_a != name_b or not (inside_a or inside_b):
        return f"{a} → {b}"
    start = 0
    while start < min(len(inside_a), len(inside_b)) and inside_a[start] == inside_b[start]:
        start += 1
    end = 0
    while end < min(len(inside_a), len(inside_b)) - start and (
        inside_a[-1 - end] == inside_b[-1 - end]
    ):
        end += 1
    ours = ", ".join(inside_a[start : len(inside_a) - end])
    theirs = ", ".join(inside_b[start : len(inside_b) - end])
    return f"{ours or '–'} → {theirs or '–'}"


def apart_text(apart: Apart) -> str:
    """``3.1e-02 apart in mean (tolerated: 1e-05)``."""
    if apart.where in ("nan", "infinite"):
        return f"another number of {'NaNs' if apart.where == 'nan' else 'infinities'}"
    call = "" if apart.first == 1 else f" from call {_range(apart)} on"
    if apart.where == "checksum":  # its distance is of no use to the reader
        return f"other whole numbers{call}"
    if math.isinf(apart.relative):
        return f"another {apart.where}"
    tolerated = f"tolerated: {apart.tolerance:.1g}" if apart.tolerance else "exact"
    return f"{apart.relative:.2g} apart in {apart.where}{call} ({tolerated})"


def amount_text(difference: Difference) -> str:
    """How often the tolerance the values are apart: ``1.2e+03×``."""
    amount = extent(difference)
    return "∞" if math.isinf(amount) else f"{amount:.3g}×"


def details(difference: Difference) -> Iterator[Detail]:
    """The inputs and outputs of a call in both runs, with what differs in them."""
    a, b = difference.a, difference.b
    marks: dict[tuple[str, int | None], list[str]] = {}
    for aspect in difference.aspects:
        said = f"values {apart_text(aspect.apart)}" if aspect.apart else KIND_WORDS[aspect.kind]
        if aspect.kind == "arguments" and aspect.part == "call":
            said = f"arguments {changed_text(_aspect_text(aspect.a), _aspect_text(aspect.b))}"
        marks.setdefault((aspect.part, aspect.position), []).append(said)
    whole = marks.get(("call", None), [])
    yield Detail(
        "call",
        None if a is None else Other(call_text(a)),
        None if b is None else Other(call_text(b)),
        tuple(mark for mark in whole if mark not in ("calls", "error", "order")),
    )
    for aspect in difference.aspects:
        if aspect.kind == "calls":
            yield Detail("times", aspect.a, aspect.b, ("calls",))
    yield from _inputs(a, b, marks)
    if (a is None or a.error is None) and (b is None or b.error is None):
        yield from _outputs(a, b, marks)
    else:
        yield Detail("error", _error(a), _error(b), tuple(m for m in whole if m == "error"))


def source_line(event: Event, sources: Sources) -> str:
    """The line of a call, if the file is as it ran; else nothing."""
    if event.file is None or event.line is None:
        return ""
    excerpt = sources.excerpt(Frame(0, event.file, event.line, event.function or ""))
    if excerpt.lines is None or excerpt.doubt or event.line not in excerpt.numbers:
        return ""
    return printable(excerpt.lines[excerpt.numbers.index(event.line)].strip())


def place(event: Event, base: str | None) -> str:
    """``model.py:41``."""
    return place_text(event.file, event.line, base)


def _inputs(
    a: Event | None, b: Event | None, marks: dict[tuple[str, int | None], list[str]]
) -> Iterator[Detail]:
    ours = () if a is None else a.inputs
    theirs = () if b is None else b.inputs
    overall = marks.get(("input", None), [])
    for at in range(max(len(ours), len(theirs))):
        one = ours[at] if at < len(ours) else None
        other = theirs[at] if at < len(theirs) else None
        said = marks.get(("input", at), overall if one is None or other is None else [])
        if not said and _is_none(one) and _is_none(other):
            continue
        yield Detail(_input_name(a or b, at, len(ours)), one, other, tuple(said))


def _outputs(
    a: Event | None, b: Event | None, marks: dict[tuple[str, int | None], list[str]]
) -> Iterator[Detail]:
    whole = marks.get(("output", None), [])
    said = [text for (part, at), texts in marks.items() if part == "output" for text in texts]
    many = max(len(event.outputs) for event in (a, b) if event is not None)
    if whole or many != 1 or a is None or b is None:
        yield Detail("output", _result(a), _result(b), tuple(dict.fromkeys(said)))
        return
    yield Detail("output", a.outputs[0], b.outputs[0], tuple(dict.fromkeys(said)))


def _result(event: Event | None) -> Value | None:
    return None if event is None else result_value(event.outputs, event.result)


def _input_name(event: Event | None, at: int, many: int) -> str:
    if isinstance(event, ModuleCall) and at < len(event.input_names):
        return printable(event.input_names[at])
    return "input" if many == 1 else f"input {at + 1}"


def _is_none(value: Value | None) -> bool:
    return value is None or (isinstance(value, Other) and value.text == "None")


def _error(event: Event | None) -> Value | None:
    return None if event is None or event.error is None else Other(error_text(event))


def _error_name(event: Event) -> str:
    return "no error" if event.error is None else printable(event.error.type)


def _part_text(aspect: Aspect) -> str:
    if aspect.part == "call":
        return ""
    number = "" if aspect.position in (None, 0) else f" {(aspect.position or 0) + 1}"
    return f"{aspect.part}{number}"


def _aspect_text(value: Value | None) -> str:
    return "–" if value is None else printable(value_text(value))


def _trait_text(kind: Kind, value: Value | None) -> str:
    if not isinstance(value, Tensor):
        return _aspect_text(value)
    if kind == "gradient":
        return "needs a gradient" if value.requires_grad else "needs none"
    return printable(" ".join(filter(None, [value.kind, value.layout, value.placements])))


def _range(apart: Apart) -> str:
    return str(apart.first) if apart.first == apart.last else f"{apart.first}–{apart.last}"


def _split_call(text: str) -> tuple[str, list[str]]:
    """The name and the arguments of ``view(2, (3, 4), x=1)``."""
    name, opened, rest = text.partition("(")
    if not opened or not rest.endswith(")"):
        return ("", _arguments(text)) if "=" in text else (text, [])
    return name, _arguments(rest[:-1])


def _arguments(text: str) -> list[str]:
    """The arguments of a call, not split inside brackets."""
    found: list[str] = []
    depth = begin = 0
    for at, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            found.append(text[begin:at].strip())
            begin = at + 1
    return [*found, text[begin:].strip()] if text else []
