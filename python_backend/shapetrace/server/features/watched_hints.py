"""Hints of watched variables: their changes on a line.

video = video.permute(1, 0, 2, 3)          video u8[73,3,720,720] → u8[3,73,720,720]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shapetrace.events.model import Value
from shapetrace.server.ranges import SourceRange
from shapetrace.server.scope import ScopePath
from shapetrace.server.statements import Statement
from shapetrace.server.uris import file_key
from shapetrace.server.view import DocumentView
from shapetrace.server.watched_lines import WatchedLine
from shapetrace.views.change_text import change_text, line_text
from shapetrace.views.tooltips import escaped

BETWEEN = ", "


@dataclass(frozen=True, slots=True)
class WatchedPiece:
    """The values of watched variables where a statement ends."""

    range: SourceRange
    """The statement, or the line."""
    statement: Statement | None
    lines: tuple[WatchedLine, ...]


def watched_pieces(view: DocumentView, first: int, last: int) -> Iterator[WatchedPiece]:
    """The changes to show at the ends of some lines of a document, counted from 0."""
    watched = view.records.base.watched
    if not view.records.base.has_watched:
        return
    for line in range(first, last + 1):
        source = view.source_line(line)
        if source is None:
            continue
        statement = next(iter(view.structure.ending_on(source)), None)
        if statement is None:
            around = view.structure.covering(source)
            if around is None and watched(source):
                yield WatchedPiece(SourceRange(source, 0, source, 0), None, (*watched(source),))
            continue
        for each in view.structure.ending_on(source):
            where = each.range
            lines = [one for at in range(where.line, where.end_line + 1) for one in watched(at)]
            if lines and view.is_whole(where):
                yield WatchedPiece(where, each, tuple(lines))


def watched_text(
    lines: Sequence[WatchedLine], room: int, scope_path: ScopePath | None, before: str
) -> str:
    """All of them in so many characters; ``before`` marks what is of an earlier call."""
    texts: list[str] = []
    left = room
    for number, each in enumerate(lines):
        others = len(lines) - number - 1
        share = left if not others else max((left - len(BETWEEN) * others) // (others + 1), 12)
        mark = before if _is_of_earlier_call(each, scope_path) else ""
        text = mark + _line_text(each, scope_path, min(share, left) - len(mark))
        if text and len(text) <= left:
            texts.append(text)
            left -= len(text) + len(BETWEEN)
        if left < 12:
            break
    return BETWEEN.join(texts)


def watched_story(view: DocumentView, where: SourceRange) -> str:
    """How watched variables changed in a statement, as Markdown; empty where none did."""
    texts: list[str] = []
    for line in range(where.line, where.end_line + 1):
        for each in view.records.base.watched(line):
            times = "" if each.count == 1 else f", {each.count:,} times"
            texts.append(f"**{escaped(each.name)}**, watched{times}")
            pairs = dict.fromkeys(change_text(change.event) for change in each.recent)
            texts.extend(f"- {escaped(text)}" for text in reversed(pairs))
    return "\n".join(texts)


def _line_text(line: WatchedLine, scope_path: ScopePath | None, room: int) -> str:
    event = line.latest.event
    if scope_path is not None and scope_path.scope.stop is not None:
        befores: list[Value] = [] if event.before is None else [event.before.value]
        return line_text(line.name, befores, [event.after.value], event.before is None, room)
    befores = [each for each in line.befores if each is not None]
    return line_text(line.name, befores, list(line.afters), None in line.befores, room)


def _is_of_earlier_call(line: WatchedLine, scope_path: ScopePath | None) -> bool:
    """Whether a call that runs, and is looked at, has not come to the line yet."""
    if (
        scope_path is None
        or scope_path.scope.stop is None
        or scope_path.process.number != line.process
    ):
        return False
    change = line.latest
    running = scope_path.process.watched_calls
    if change.event.call in running:
        return False
    key = file_key(change.event.file)
    return any(
        each.function == change.function and file_key(each.file) == key for each in running.values()
    )
