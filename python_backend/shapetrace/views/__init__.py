"""Ways to look at a trace: pure functions from events to text.

Views return styled text; ``render`` turns it into a string, with or without colours. What is named
here is loaded at first use: the agent takes ``views.shapes`` into the user's program, and no more.

Modules:

- ``registry``: all views by name, and ``render``
- ``view_options``: options that every view accepts
- ``styled``: text with named styles
- ``terminal_text``: styled text with colours; the only importer of rich
- ``shapes``: how a tensor is written: the one place for all views
- ``labels``: several named values on one short line
- ``place_text``: ``model.py:41``
- ``source_files``: reads source files
- ``source_excerpts``: the statement around a place, as text
- ``summary``: header and footer of a view
- ``remedies``: what to do about calls that were not seen
- ``treeview``: the tree view
- ``folding``: which ops of library code are folded
- ``outline``: one row of an expandable tree
- ``table``: the table view
- ``module_rows``: the rows of table and report
- ``listing``: the listing view
- ``markdown``: the report view
- ``markdown_text``: escapes text for Markdown
- ``json_view``: the JSON view
- ``live``: the lines of ``--live``
- ``call_text``: one op as text: what it was called with and returned
- ``value_text``: fingerprints as text
- ``owners``: in which modules and processes something happened
- ``tooltips``: all that is known of an expression or name, as Markdown
- ``code_lens_text``: module calls in a few words, for code lenses
- ``histograms``: a histogram as bars of characters
- ``captured``: the view of a file of captured values
- ``change_text``: a change of a watched variable, on one line
- ``followed``: followed calls as a tree
- ``comparison_registry``: all views of a comparison by name
- ``difference_text``: the words for one difference
- ``differences_text``: a comparison for a terminal
- ``differences_markdown``: a comparison as Markdown
- ``differences_json``: a comparison as JSON
- ``side_by_side``: two runs as two texts for a diff editor
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.views.registry import VIEWS, View, render
    from shapetrace.views.styled import StyledText
    from shapetrace.views.terminal_text import terminal_width, wants_color
    from shapetrace.views.view_options import ViewOptions

__all__ = [
    "VIEWS",
    "StyledText",
    "View",
    "ViewOptions",
    "render",
    "terminal_width",
    "wants_color",
]

_HOMES = {
    "VIEWS": "registry",
    "StyledText": "styled",
    "View": "registry",
    "ViewOptions": "view_options",
    "render": "registry",
    "terminal_width": "terminal_text",
    "wants_color": "terminal_text",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
