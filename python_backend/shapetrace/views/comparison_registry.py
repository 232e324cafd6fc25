"""The views of a comparison by name, and the one way to get one as a string."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from shapetrace.comparing.comparison import Comparison
from shapetrace.views.differences_json import render_differences_json
from shapetrace.views.differences_markdown import render_differences_markdown
from shapetrace.views.differences_text import render_differences
from shapetrace.views.styled import StyledText
from shapetrace.views.terminal_text import to_text
from shapetrace.views.view_options import ViewOptions

ComparisonView: TypeAlias = Callable[[Comparison, tuple[str, str], ViewOptions], StyledText]

COMPARISON_VIEWS: Mapping[str, ComparisonView] = {
    "text": render_differences,
    "json": render_differences_json,
    "markdown": render_differences_markdown,
}
"""The formats that ``diff --format`` accepts."""


def render_comparison(
    comparison: Comparison,
    view_name: str,
    names: tuple[str, str],
    options: ViewOptions,
    *,
    color: bool = False,
    encoding: str | None = "utf-8",
) -> str:
    """A comparison as text, where the two files have these names."""
    text = COMPARISON_VIEWS[view_name](comparison, names, options)
    return to_text(text, color=color, encoding=encoding)
