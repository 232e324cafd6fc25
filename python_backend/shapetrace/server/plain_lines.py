"""Statements of source that this Python cannot parse, as far as single lines show them.

A program may run on a newer Python than the server, with syntax that only that one knows. What is
recorded is looked up by exact ranges, so a line that is misread here tells nothing, and nothing
wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shapetrace.server.ranges import SourceRange
from shapetrace.server.statements import Kind, Statement, StatementPart

_NAME = r"[^\W\d]\w*"
_ASSIGNMENT = re.compile(rf"\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*=(?!=)\s*")
_RETURN = re.compile(r"\s*return\s+")
_FUNCTION = re.compile(rf"\s*(?:async\s+)?def\s+({_NAME})\s*\(")
_PARAMETER = re.compile(rf"(?:\(|,)\s*\*{{0,2}}({_NAME})")
_NAMES = re.compile(_NAME)


def plain_statements(lines: Sequence[str]) -> Iterator[Statement]:
    """Statements that are complete on one line."""
    for number, line in enumerate(lines, 1):
        found = _statement(line, number)
        if found is not None:
            yield found


def _statement(line: str, number: int) -> Statement | None:
    code = line.rstrip()
    if "'" not in line and '"' not in line:
        code = line.partition("#")[0].rstrip()
    if match := _FUNCTION.match(code):
        if not code.endswith(":"):
            return None
        names = _PARAMETER.finditer(code, match.end() - 1)
        parts = [
            StatementPart(each[1], (_range(line, number, *each.span(1)),), None) for each in names
        ]
        whole = _range(line, number, len(line) - len(line.lstrip()), len(code))
        return Statement("parameters", whole, tuple(parts), function=match[1], declared=number)
    if match := _RETURN.match(code):
        value = _range(line, number, match.end(), len(code))
        return _simple("return", line, code, number, [StatementPart(None, (), value)])
    if match := _ASSIGNMENT.match(code):
        targets = list(_NAMES.finditer(code, *match.span(1)))
        value = _range(line, number, match.end(), len(code))
        parts = [
            StatementPart(
                each[0], (_range(line, number, *each.span()),), value if len(targets) == 1 else None
            )
            for each in targets
        ]
        return _simple("assignment", line, code, number, parts)
    return None


def _simple(
    kind: Kind, line: str, code: str, number: int, parts: Sequence[StatementPart]
) -> Statement:
    whole = _range(line, number, len(line) - len(line.lstrip()), len(code))
    return Statement(kind, whole, tuple(parts), declared=number)


def _range(line: str, number: int, start: int, end: int) -> SourceRange:
    first, last = (len(line[:index].encode("utf-8", "surrogatepass")) for index in (start, end))
    return SourceRange(number, first, number, last)
