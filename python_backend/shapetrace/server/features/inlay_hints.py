"""Inlay hints: the shapes of what each line produced.

def forward(self, x, mask):                x f32[2,16,64], mask bool[16,16]
    q, k = self.split(self.proj(x))        q,k f32[2,4,16,8]
    return q @ k.transpose(-2, -1)         f32[2,4,16,16]

A statement has a hint if a tensor or an error is known of it (``server.statement_values``). The
hint is on its last line; that of a parameter on a line of its own is there. With the setting
``afterName`` it is behind the name instead. What no longer fits on a line is left out.

A watched variable also shows what it was before, and its shape only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shapetrace.events.model import Value
from shapetrace.server.features.watched_hints import watched_pieces, watched_text
from shapetrace.server.messages.settings import HintOptions, HintPosition
from shapetrace.server.ranges import SourceRange, editor_column, editor_length
from shapetrace.server.scope import ScopePath
from shapetrace.server.statement_values import StatementValues
from shapetrace.server.statements import Statement, StatementPart
from shapetrace.server.view import DocumentView
from shapetrace.server.watched_lines import WatchedLine
from shapetrace.views.labels import Labelled, failure_text, labelled_text, tuple_text
from shapetrace.views.shapes import cut_end

_LEAST = 6
"""Characters below which a further hint on a line would say nothing."""

_BETWEEN_STATEMENTS = "; "

BEFORE = "~ "
"""Stands before the shapes of an earlier call, where the one that is shown has not come yet."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A text behind a place in the document."""

    line: int
    column: int
    text: str
    statement: SourceRange
    """The source range of the statement; of the first one if there are several."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """The text of one statement at one place."""

    line: int
    column: int | None
    """None for the end of the line."""
    range: SourceRange
    """The source range that it belongs to."""
    statement: Statement | None
    items: tuple[Labelled, ...] = ()
    facts: StatementValues | None = None
    """Set for the piece at the end of the statement, with everything that has no other place."""
    mark: str = ""
    watched: tuple[WatchedLine, ...] = ()
    scope_path: ScopePath | None = None


def inlay_hints(
    view: DocumentView,
    first: int,
    last: int,
    options: HintOptions,
    encoding: str = "utf-16",
    scope_path: ScopePath | None = None,
) -> list[Hint]:
    """The hints on some lines of a document, counted from 0; ``scope_path`` is what is shown."""
    if options.position == "off":
        return []
    pieces: dict[int, list[_Piece]] = {}
    watched: dict[SourceRange, frozenset[str]] = {}
    for told in watched_pieces(view, first, last):
        watched[told.range] = frozenset(each.name for each in told.lines)
        line = told.range.end_line
        piece = _Piece(
            line, None, told.range, told.statement, watched=told.lines, scope_path=scope_path
        )
        pieces.setdefault(line, []).append(piece)
    for statement in view.statements(first, last):
        if statement.kind != "parameters" or options.parameters:
            facts = view.facts(statement)
            if statement.range in watched:
                facts = _without(statement, facts, watched[statement.range])
            for piece in _pieces(statement, facts, options.position):
                pieces.setdefault(piece.line, []).append(piece)
    hints: list[Hint] = []
    for line, on_line in sorted(pieces.items()):
        now = view.document_line(line)
        if now is not None and first <= now <= last:
            hints.extend(_hints(view, now, on_line, options.maximum_length, encoding))
    return hints


def _without(
    statement: Statement, facts: StatementValues, names: frozenset[str]
) -> StatementValues:
    """The values of a statement without those of watched variables, which have their own text."""

    def left(
        parts: Sequence[StatementPart], values: Sequence[tuple[Value, ...]]
    ) -> list[tuple[Value, ...]]:
        pairs = zip(parts, values, strict=True)
        return [() if part.name in names else known for part, known in pairs]

    values = tuple(left(statement.parts, facts.values))
    named = tuple(left(statement.named, facts.named))
    return StatementValues(values, named, facts.errors, facts.is_before)


def _pieces(
    statement: Statement, facts: StatementValues, position: HintPosition
) -> Sequence[_Piece]:
    """The pieces of a statement, each with its place."""
    return facts.once(position, lambda: tuple(_make_pieces(statement, facts, position)))


def _make_pieces(
    statement: Statement, facts: StatementValues, position: HintPosition
) -> Iterator[_Piece]:
    if not facts:
        return
    mark = BEFORE if facts.is_before else ""
    values: list[tuple[Value, ...]] = []
    named: list[tuple[Value, ...]] = []
    for parts, known, rest in (
        (statement.parts, facts.values, values),
        (statement.named, facts.named, named),
    ):
        for part, its_values in zip(parts, known, strict=True):
            places = list(_places(statement, part, position)) if its_values else []
            for line, column in places:
                items = (Labelled(None, its_values),)
                yield _Piece(line, column, statement.range, statement, items, mark=mark)
            rest.append(() if places else its_values)
    left = StatementValues(tuple(values), tuple(named), facts.errors)
    if left:
        where = statement.range
        yield _Piece(where.end_line, None, where, statement, facts=left, mark=mark)


def _places(
    statement: Statement, part: StatementPart, position: HintPosition
) -> Iterator[tuple[int, int | None]]:
    """The place of a part, if it is not the end of its statement."""
    for target in part.targets:
        if position == "afterName":
            yield target.end_line, target.end_column
        elif statement.kind == "parameters" and target.end_line != statement.range.end_line:
            others = (each.targets[0] for each in statement.parts if each is not part)
            if all(other.line != target.line for other in others):
                yield target.end_line, None


def _hints(
    view: DocumentView, line: int, pieces: Sequence[_Piece], room: int, encoding: str
) -> Iterator[Hint]:
    """The hints on one line, with as many characters together as there is room for."""
    text_of_line = view.document.lines[line]
    at_end = [piece for piece in pieces if piece.column is None]
    for piece in pieces:
        if piece.column is not None and room >= _LEAST:
            text = piece.mark + labelled_text(piece.items, room - len(piece.mark))
            room -= len(text)
            column = editor_column(text_of_line, piece.column, encoding)
            yield Hint(line, column, text, piece.range)
    texts: list[str] = []
    for piece in at_end:
        left = room - sum(len(text) + len(_BETWEEN_STATEMENTS) for text in texts)
        if left >= _LEAST and (text := _text_once(piece, len(at_end) > 1, left)):
            texts.append(text)
    if texts:
        column = editor_length(text_of_line, encoding)
        text = _BETWEEN_STATEMENTS.join(texts)
        yield Hint(line, column, text, at_end[0].range)


def _text_once(piece: _Piece, is_one_of_several: bool, room: int) -> str:
    """The text of a piece, cached."""
    if piece.watched:
        return watched_text(piece.watched, room, piece.scope_path, BEFORE)
    room -= len(piece.mark)
    if piece.facts is None:
        return piece.mark + labelled_text(piece.items, room)
    key = (is_one_of_several, room)
    return piece.mark + piece.facts.once(key, lambda: _text(piece, is_one_of_several, room))


def _text(piece: _Piece, is_one_of_several: bool, room: int) -> str:
    """The text of a statement for the end of its line."""
    if piece.facts is None or piece.statement is None:
        return labelled_text(piece.items, room)
    statement, facts = piece.statement, piece.facts
    texts: list[str] = []
    if any(facts.values):
        texts.append(_produced_text(statement, facts, is_one_of_several, room))
    named = _labelled(statement.named, facts.named)
    if named:
        texts.append(labelled_text(named, max(room - sum(map(len, texts)), _LEAST)))
    text = ", ".join(texts)
    if facts.errors:
        left = room - len(text) - 1 if text else room
        failure = failure_text(facts.errors[-1], max(left, _LEAST))
        text = f"{text} {failure}" if text and left >= _LEAST else text or failure
    return cut_end(text, room)


def _produced_text(
    statement: Statement, facts: StatementValues, is_one_of_several: bool, room: int
) -> str:
    if statement.is_tuple:
        return tuple_text(facts.values, room)
    items = _labelled(statement.parts, facts.values)
    is_value = statement.kind in ("return", "expression")
    is_only_target = statement.kind == "assignment" and len(statement.parts) == 1
    if is_value or (is_only_target and not statement.named and not is_one_of_several):
        return labelled_text([Labelled(None, items[0].values)], room)
    return labelled_text(items, room)


def _labelled(
    parts: Sequence[StatementPart], values: Sequence[tuple[Value, ...]]
) -> list[Labelled]:
    """The names with known values; without ``_`` if there are others."""
    pairs = zip(parts, values, strict=True)
    items = [Labelled(part.name, known) for part, known in pairs if known]
    return [item for item in items if item.name is None or item.name.strip("_")] or items
