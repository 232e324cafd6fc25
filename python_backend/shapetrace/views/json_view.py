"""The JSON view: the trace file itself, for other programs."""

from __future__ import annotations

from shapetrace.events.codec import dumps
from shapetrace.events.model import Trace
from shapetrace.views.styled import StyledText, unstyled
from shapetrace.views.view_options import ViewOptions


def render_json(trace: Trace, _: ViewOptions | None = None) -> StyledText:
    """The text of a trace file; no option changes it."""
    return unstyled(dumps(trace))
