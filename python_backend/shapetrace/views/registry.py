"""All views by name, and the one way to get a view as a string."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from shapetrace.events.model import Trace
from shapetrace.views.json_view import render_json
from shapetrace.views.listing import render_listing
from shapetrace.views.markdown import render_markdown
from shapetrace.views.styled import StyledText
from shapetrace.views.table import render_table
from shapetrace.views.terminal_text import to_text
from shapetrace.views.treeview import render_tree
from shapetrace.views.view_options import ViewOptions

View: TypeAlias = Callable[[Trace, ViewOptions], StyledText]

VIEWS: Mapping[str, View] = {
    "tree": render_tree,
    "listing": render_listing,
    "table": render_table,
    "markdown": render_markdown,
    "json": render_json,
}
"""The views that ``--view`` accepts."""


def render(
    trace: Trace,
    view_name: str = "tree",
    options: ViewOptions | None = None,
    *,
    color: bool = False,
    encoding: str | None = "utf-8",
) -> str:
    """A trace as text: coloured if asked for, in characters that the encoding has."""
    text = VIEWS[view_name](trace, options or ViewOptions())
    return to_text(text, color=color, encoding=encoding)
