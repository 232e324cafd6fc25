"""Tooltips as Markdown: all that was recorded of an expression or a name.

query f32[8,4,32,12] @ f32[8,4,12,32] → f32[8,4,32,32]
float32 · cpu · 128 KiB · requires grad
blocks.0.attention · CausalSelfAttention · 20 calls
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from shapetrace.events.model import Container, ModuleCall, Op, Other, Tensor, Value
from shapetrace.views.call_text import (
    count_text,
    error_text,
    filled_form,
    module_inputs,
    operands,
    outcome,
)
from shapetrace.views.labels import FAILED, merged_text
from shapetrace.views.owners import MOST_PATHS, CallInModule, ValueInModule, owners_of
from shapetrace.views.remedies import with_remedy
from shapetrace.views.shapes import CUT, cut_end, result_value, value_text
from shapetrace.views.styled import printable
from shapetrace.views.summary import SEPARATOR, counted, human_number

_WIDTH = 76
"""Characters that fit on a line of a tooltip."""

_MOST_LINES = 6
"""Different calls of one expression that get a line each."""

CHOSEN = "▸"
"""Marks the selected calls where others are listed too."""

DIFFERENT = "≠"
"""Stands before other calls, whose shapes differ from theirs."""

_BITS = re.compile(r"(?:float|int|bfloat|complex|qint|quint)(\d+)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def calls_story(
    told: Sequence[CallInModule],
    notes: Iterable[str] = (),
    *,
    named: bool = True,
    others: Sequence[CallInModule] = (),
) -> str:
    """All calls of one expression, and notes below them; ``named`` shows what inputs are called.

    Of ``others``, which the expression made as well, only those are told that differ.
    """
    calls = [each.call for each in told]
    parts = [code(_call_lines(told, named, others))]
    finished = [call for call in calls if call.outputs or call.result is not None]
    details = details_text([result_value(call.outputs, call.result) for call in finished])
    if details:
        parts.append(details)
    parts.append(SEPARATOR.join(filter(None, [_where(told), _calls_text(told)])))
    unseen = dict.fromkeys(each.call.note for each in told if isinstance(each.call, ModuleCall))
    parts.extend(f"Not recorded inside: {escaped(with_remedy(note))}" for note in unseen if note)
    return paragraphs([*parts, *notes])


def name_story(
    name: str,
    values: Sequence[Value],
    origin: str,
    held: Sequence[ValueInModule] = (),
    others: Sequence[ValueInModule] = (),
) -> str:
    """One name, the values that it had, and where it got them.

    ``held`` says which calls these are of; of ``others`` those are told that differ.
    """
    lines = [*name_lines(name, values)]
    groups = _by_text(held)
    different = {text: group for text, group in _by_text(others).items() if text not in groups}
    if different:
        lines[0] = f"{CHOSEN} {lines[0]}"
        marked = [
            (f"{DIFFERENT} {printable(name)}: {text}", each) for text, each in different.items()
        ]
    else:
        marked = [(f"  {text}", group) for text, group in groups.items()] if len(groups) > 1 else []
    owners = owners_of([group for _, group in marked], besides=held)
    told = [pair for pair in zip(marked, owners, strict=True) if different or pair[1]]
    for (line, _), owner in told[: _MOST_LINES - 1]:
        lines.extend(_with_owner(cut_end(line, _WIDTH), owner))
    if len(told) >= _MOST_LINES:
        lines.append(f"{CUT} {len(told) - _MOST_LINES + 1} more")
    return paragraphs([code(lines), details_text(values), origin])


def _by_text(held: Sequence[ValueInModule]) -> dict[str, list[ValueInModule]]:
    groups: dict[str, list[ValueInModule]] = {}
    for each in held:
        groups.setdefault(printable(value_text(each.value)), []).append(each)
    return groups


def name_lines(name: str, values: Sequence[Value]) -> list[str]:
    """``x: f32[2,16,64]``, or a line for each of a few values that are not written as one."""
    return [cut_end(f"{printable(name)}: {merged_text(values)}", _WIDTH)]


def details_text(values: Sequence[Value], *, is_of_one: bool = True) -> str:
    """``float32 · cpu · 128 KiB · requires grad``: what the shape itself does not say.

    Values that are not of one thing are those of different things side by side.
    """
    tensors = list(dict.fromkeys(tensor for value in values for tensor in _tensors(value)))
    if not tensors:
        return ""
    facts = [
        _alike(tensor.dtype for tensor in tensors),
        _alike(tensor.device for tensor in tensors),
        _memory_text(tensors, is_of_one and all(isinstance(each, Tensor) for each in values)),
    ]
    if len(tensors) == 1 and tensors[0].strides is not None:
        strides = ", ".join(map(str, tensors[0].strides))
        facts.append(f"strides ({strides}{',' if len(tensors[0].strides) == 1 else ''})")
    facts.append(_alike(tensor.layout for tensor in tensors if tensor.layout != "strided"))
    facts.append(_alike(tensor.kind for tensor in tensors if tensor.kind != "Tensor"))
    facts.append(_alike(tensor.placements or "" for tensor in tensors))
    needing = sum(tensor.requires_grad for tensor in tensors)
    if needing:
        facts.append("requires grad" if needing == len(tensors) else "some require grad")
    return SEPARATOR.join(escaped(fact) for fact in facts if fact)


def code(lines: Iterable[str]) -> str:
    """Lines as a block of code."""
    return "```python\n" + "\n".join(lines) + "\n```"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", printable(text))


def quoted(text: str) -> str:
    """A piece of code within a line of Markdown."""
    shown = printable(text)
    return f"`{shown}`" if "`" not in shown else escaped(shown)


def paragraphs(parts: Iterable[str]) -> str:
    """Blocks of code and lines below each other."""
    text = ""
    for part in filter(None, parts):
        between = "\n" if text.endswith("```") else "  \n"
        text += (between if text else "") + part
    return text


def memory_text(size: int) -> str:
    """``128 KiB``: a number of bytes."""
    if size < 1024:
        return f"{size} B"
    units = ["TiB", "GiB", "MiB", "KiB"]
    unit = units.pop()
    scaled = size / 1024
    while scaled >= 999.5 and units:
        scaled /= 1024
        unit = units.pop()
    digits = 0 if scaled == int(scaled) or scaled >= 99.95 else 1 if scaled >= 9.995 else 2
    return f"{scaled:.{digits}f} {unit}"


def _call_lines(
    told: Sequence[CallInModule], named: bool, others: Sequence[CallInModule]
) -> Iterator[str]:
    groups = _grouped(told, named)
    different = {
        line: group for line, group in _grouped(others, named).items() if line not in groups
    }
    marked = [
        *((CHOSEN if different else "", line, group) for line, group in groups.items()),
        *((DIFFERENT, line, group) for line, group in different.items()),
    ]
    is_alone = len(marked) == 1
    owners = [""] if is_alone else owners_of([group for _, _, group in marked])
    for position, (mark, line, group) in enumerate(marked):
        if position == _MOST_LINES - 1 and len(marked) > _MOST_LINES:
            yield f"{CUT} {len(marked) - position} more"
            return
        mark = f"{mark} " if mark else ""
        failure = next((error_text(each.call) for each in group if each.call.error), "")
        if failure:
            yield from _with_owner(cut_end(f"{mark}{FAILED} {line}", _WIDTH), owners[position])
            yield from _wrapped(failure)
        elif is_alone and len(line) > _WIDTH:
            yield from _long_call_lines(group[0])
        else:
            counts = (1 if each.count is None else each.count for each in group)
            times = "" if is_alone else count_text(sum(counts))
            room = _WIDTH - len(mark) - (len(times) + 2 if times else 0)
            yield from _with_owner(
                f"{mark}{cut_end(line, room)}  {times}".rstrip(), owners[position]
            )


def _grouped(told: Sequence[CallInModule], named: bool) -> dict[str, list[CallInModule]]:
    """Calls by what is said of them."""
    groups: dict[str, list[CallInModule]] = {}
    for each in told:
        groups.setdefault(_call_line(each, named), []).append(each)
    return groups


def _with_owner(line: str, owner: str) -> Iterator[str]:
    """A line, with a comment on the same line if there is room, else on the next one."""
    if not owner:
        yield line
    elif len(line) + len(owner) + 4 <= _WIDTH:
        yield f"{line}  # {owner}"
    else:
        yield line
        yield cut_end(f"    # {owner}", _WIDTH)


def _call_line(told: CallInModule, named: bool) -> str:
    """``x f32[2,3] @ w f32[3,4] → f32[2,4]``: a call on one line."""
    call = told.call
    if isinstance(call, Op):
        text = filled_form(call, lambda tensor: _named_text(tensor, _path(told)))
    else:
        is_lone = named and len(call.inputs) == 1 and isinstance(call.inputs[0], Tensor)
        inputs = _named_text(call.inputs[0], "") if is_lone else module_inputs(call)
        text = f"{printable(call.class_name)}({inputs})"
    return f"{text}{_arrow(call)}"


def _long_call_lines(told: CallInModule) -> Iterator[str]:
    """The lines of a call, one for each input."""
    call = told.call
    rows: list[tuple[str, str]] = []
    if isinstance(call, Op):
        yield printable(call.label)
        for operand in operands(call):
            name = (operand.name or operand.argument or "").removeprefix(_path(told))
            rows.append((name, operand.text))
    else:
        yield printable(call.class_name)
        for position, value in enumerate(call.inputs):
            name = call.input_names[position] if position < len(call.input_names) else ""
            if not (isinstance(value, Other) and value.text == "None"):
                rows.append((name, merged_text([value])))
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        yield cut_end(f"  {name.ljust(width)}  {text}" if width else f"  {text}", _WIDTH)
    arrow = _arrow(call).strip()
    if arrow:
        yield cut_end(arrow, _WIDTH)


def _arrow(call: Op | ModuleCall) -> str:
    if not call.outputs and call.result is None:
        return ""
    text = outcome(call)
    return "" if text == "None" else f" → {text}"


def _named_text(value: Value, path: str) -> str:
    text = value_text(value)
    name = value.name if isinstance(value, Tensor) else None
    return text if name is None else f"{name.removeprefix(path)} {text}"


def _path(told: CallInModule) -> str:
    """The prefix of an op's parameter names, if the parameters are its module's own."""
    return f"{told.module.path}." if told.module is not None and told.module.path else ""


def _wrapped(text: str) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + len(word) + 1 > _WIDTH:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    yield cut_end(line, 4 * _WIDTH)


def _where(told: Sequence[CallInModule]) -> str:
    """The modules that these calls are of, or ran in."""
    modules = [
        each.call if isinstance(each.call, ModuleCall) else each.module
        for each in told
        if isinstance(each.call, ModuleCall) or each.module is not None
    ]
    known = [module for module in modules if module is not None]
    paths = list(dict.fromkeys(module.path for module in known if module.path))
    shown = [quoted(path) for path in paths[:MOST_PATHS]]
    if len(paths) > MOST_PATHS:
        shown.append(f"{len(paths) - MOST_PATHS} more")
    is_module = all(isinstance(each.call, ModuleCall) for each in told)
    classes = list(dict.fromkeys(_class_text(module, is_module) for module in known))
    class_text = classes[0] if len(classes) == 1 else ""
    sizes = {module.parameters for module in known} if is_module else set()
    size = sizes.pop() if len(sizes) == 1 else 0
    each = " each" if len(paths) > 1 else ""
    parameters = f"{human_number(size)} parameters{each}" if size else ""
    class_text = quoted(class_text) if is_module and class_text else escaped(class_text)
    return SEPARATOR.join(filter(None, [", ".join(shown), class_text, parameters]))


def _class_text(module: ModuleCall, with_detail: bool) -> str:
    detail = f"({module.detail})" if with_detail and module.detail else ""
    return module.class_name + detail


def _calls_text(told: Sequence[CallInModule]) -> str:
    known = [each.count for each in told if each.count is not None]
    return counted(sum(known), "call") if known else ""


def _tensors(value: Value) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Container):
        for item in value.items:
            yield from _tensors(item)


def _alike(facts: Iterable[str]) -> str:
    """The common part of all, or a list of all."""
    return ", ".join(dict.fromkeys(fact for fact in facts if fact))


def _memory_text(tensors: Sequence[Tensor], is_of_one: bool) -> str:
    """The memory of one tensor, in one call or in several; nothing for different tensors."""
    sizes = [_memory(tensor) for tensor in tensors]
    known = [size for size in sizes if size is not None]
    low, high = (memory_text(size) for size in (min(known, default=0), max(known, default=0)))
    if len(known) < len(sizes) or (low != high and not is_of_one):
        return ""
    return low if low == high else f"{low} to {high}"


def _memory(tensor: Tensor) -> int | None:
    """The bytes of a dense tensor's elements; None where that is not known."""
    bits = _BITS.match(tensor.dtype)
    if tensor.dtype == "bool":
        width = 1
    elif bits is not None and int(bits[1]) % 8 == 0:
        width = int(bits[1]) // 8
    else:
        return None
    if tensor.shape is None or tensor.layout != "strided":
        return None
    sizes = [size for size in tensor.shape if isinstance(size, int)]
    return width * math.prod(sizes) if len(sizes) == len(tensor.shape) else None
