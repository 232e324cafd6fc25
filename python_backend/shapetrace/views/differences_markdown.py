"""The view of a comparison as Markdown, for a pull request.

# `good.json` and `bad.json` differ

## First difference, after 23 ops that are alike: arguments
...
| | A | B | Differs in |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from shapetrace.comparing.comparison import Comparison, Difference, is_passed, largest
from shapetrace.events.model import ModuleCall
from shapetrace.views.difference_text import (
    KIND_WORDS,
    amount_text,
    call_text,
    details,
    event_of,
    notes_of,
    place,
    short_text,
    source_line,
    where_text,
)
from shapetrace.views.differences_text import (
    heading_text,
    side_facts,
    summary_text,
    throughout_text,
)
from shapetrace.views.markdown_text import code, fenced, plain, table_row
from shapetrace.views.shapes import cut_end
from shapetrace.views.source_excerpts import Sources
from shapetrace.views.styled import StyledText, unstyled
from shapetrace.views.summary import counted
from shapetrace.views.view_options import ViewOptions

_MOST_LARGEST: Final = 10
_MOST_ROWS: Final = 100
_LONGEST_VALUE: Final = 160


def render_differences_markdown(
    comparison: Comparison, names: tuple[str, str], options: ViewOptions | None = None
) -> StyledText:
    """The differences between two runs, whose files have these names, as Markdown."""
    return unstyled("\n".join(_lines(comparison, names, options or ViewOptions())) + "\n")


def _lines(comparison: Comparison, names: tuple[str, str], options: ViewOptions) -> Iterable[str]:
    verb = "differ" if comparison.differ else "are alike"
    yield f"# {code(names[0])} and {code(names[1])} {verb}"
    yield ""
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        yield f"- {letter}: {plain(side_facts(side, options.base))}"
    yield ""
    yield from summary_text(comparison)
    yield from (f"Note: {note}." for note in notes_of(comparison))
    if comparison.throughout:
        yield "\n## Throughout\n"
        for item in comparison.throughout:
            what, places = throughout_text(item)
            yield f"- {KIND_WORDS[item.kind]}: {code(what)} ({places})"
    first = comparison.first
    if first is not None:
        yield f"\n## {plain(heading_text(first))}\n"
        yield from _first(first, comparison, options)
        furthest = largest(comparison, _MOST_LARGEST)
        if furthest and furthest != [first]:
            yield "\n## Furthest apart\n"
            rows = [_row(item, amount_text(item), options) for item in furthest]
            yield from _table(("Times tolerated", *_TITLES), rows)
        yield from _others(comparison.differences, first, options)


_TITLES: Final = ("Module", "Call", "Difference", "Where")


def _first(first: Difference, comparison: Comparison, options: ViewOptions) -> Iterable[str]:
    yield f"- In {code(where_text(first))}"
    sides = (("A", first.a, comparison.a), ("B", first.b, comparison.b))
    sources = []
    for letter, event, side in sides:
        if event is not None:
            function = f" in {code(event.function)}" if event.function else ""
            yield f"- {letter}: {code(place(event, options.base)) or 'unknown place'}{function}"
            line = source_line(event, Sources(options.read_source, side.run.files))
            sources += [f"{letter}: {line}"] if line else []
    yield ""
    if sources:
        yield fenced("\n".join(sources))
        yield ""
    rows = [
        (
            code(detail.role),
            code(detail.text(True, _LONGEST_VALUE)),
            code(detail.text(False, _LONGEST_VALUE)),
            plain(", ".join(detail.marks)),
        )
        for detail in details(first)
    ]
    yield from _table(("", "A", "B", "Differs in"), rows)


def _others(
    differences: Sequence[Difference], first: Difference, options: ViewOptions
) -> Iterable[str]:
    others = [
        item
        for item in differences
        if item is not first and (options.verbose or not is_passed(item))
    ]
    if not others:
        return
    most = len(others) if options.verbose else _MOST_ROWS
    heading = counted(len(others), "other difference")
    yield f"\n<details><summary>{heading}, in their order</summary>\n"
    yield from _table(
        ("Kind", *_TITLES),
        [_row(item, KIND_WORDS[item.kind], options) for item in others[:most]],
    )
    if len(others) > most:
        yield f"\n… and {len(others) - most:,} more."
    yield "\n</details>"


def _row(item: Difference, mark: str, options: ViewOptions) -> Sequence[str]:
    event = event_of(item)
    module = event if isinstance(event, ModuleCall) else item.module_a or item.module_b
    return (
        plain(mark),
        code("" if module is None else module.path),
        code(cut_end(call_text(event), _LONGEST_VALUE)),
        code(cut_end(short_text(item), _LONGEST_VALUE)),
        code(place(event, options.base)),
    )


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    yield table_row(titles)
    yield table_row(["---"] * len(titles))
    for row in rows:
        yield table_row([cell.replace("|", "\\|") for cell in row])
