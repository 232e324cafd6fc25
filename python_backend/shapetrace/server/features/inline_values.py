"""Inline values: what the focused function has reached, on its lines that carry no hint.

    if mask.any():                     mask.any() bool[]
        x = torch.cat(
            [self.left(x),             self.left(x) f32[2,8]
             self.right(x)],           self.right(x) f32[2,8]
            dim=1,
        ) «f32[2,16]»

Where hints are switched off, all that these would say of the function is said here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shapetrace.server.features.inlay_hints import BEFORE, inlay_hints
from shapetrace.server.file_records import Expression
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.ranges import SourceRange, character_index
from shapetrace.server.records_in_scope import MODULE
from shapetrace.server.scope import ScopePath
from shapetrace.server.view import DocumentView
from shapetrace.views.labels import merged_text
from shapetrace.views.shapes import CUT, holds_tensor

_MOST_SOURCE = 32
"""Characters of an expression, past which it is cut."""


@dataclass(frozen=True, slots=True)
class InlineText:
    """The text at the end of a line of the document, counted from 0."""

    line: int
    text: str


def inline_values(
    view: DocumentView, scope_path: ScopePath, first: int, last: int, options: HintOptions
) -> list[InlineText]:
    """The texts at line ends of the focused function, beside the hints."""
    wanted = {
        line: source
        for line in range(max(first, 0), min(last, len(view.document.lines) - 1) + 1)
        if (source := view.source_line(line)) is not None and _is_focused(view, scope_path, source)
    }
    if not wanted:
        return []
    first, last = min(wanted), max(wanted)
    taken = {hint.line for hint in inlay_hints(view, first, last, options)}
    everything = replace(options, position="lineEnd", parameters=True)
    texts: dict[int, list[str]] = {}
    for hint in inlay_hints(view, first, last, everything):
        if hint.line in wanted and hint.line not in taken:
            taken.add(hint.line)
            if BEFORE not in hint.text:
                texts[hint.line] = [hint.text]
    for line, source in wanted.items():
        if line not in taken:
            found = list(_expressions(view, source, options.maximum_length))
            if found:
                texts[line] = found
    return [InlineText(line, ", ".join(each)) for line, each in sorted(texts.items())]


def _is_focused(view: DocumentView, scope_path: ScopePath, line: int) -> bool:
    function = view.structure.function_at(line)
    name = MODULE if function is None else function.qualified_name
    return scope_path.is_focused_on(view.document.key, name)


def _expressions(view: DocumentView, line: int, room: int) -> Iterator[str]:
    """The outermost expressions that end on a line of the source."""
    statement = view.structure.covering(line)
    first = line if statement is None else min(statement.range.line, line)
    ending = [
        each
        for each in view.records.expressions(first, line)
        if each.range.end_line == line and _is_told(each)
    ]
    for each in ending:
        if not any(each is not other and other.range.contains(each.range) for other in ending):
            source = _source(view, each.range)
            yield f"{source} {merged_text(list(each.values), max(room - len(source) - 1, 8))}"


def _is_told(expression: Expression) -> bool:
    return not expression.is_before and any(map(holds_tensor, expression.values))


def _source(view: DocumentView, where: SourceRange) -> str:
    """An expression on one line, cut where it is long."""
    lines = view.structure.lines[where.line - 1 : where.end_line]
    lines[-1] = lines[-1][: character_index(lines[-1], where.end_column, "utf-8")]
    lines[0] = lines[0][character_index(lines[0], where.column, "utf-8") :]
    text = " ".join(" ".join(lines).split())
    return text if len(text) <= _MOST_SOURCE else f"{text[: _MOST_SOURCE - 1]}{CUT}"
