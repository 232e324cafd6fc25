"""Writing what was recorded to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shapetrace._files import write_whole
from shapetrace.events import codec
from shapetrace.events.model import Trace
from shapetrace.server.messages.sessions import Exported, ExportFormat
from shapetrace.views import ViewOptions, render

_WIDTH = 120


def export(traces: Sequence[Trace], path: str, form: ExportFormat) -> Exported:
    """Write the traces of one session's processes, and say how much that is.

    JSON has one file for each process: those after the first have the number of the process in
    their names. The other formats have all in one file. Where there are no traces, nothing is
    written.
    """
    if form == "json":
        for position, trace in enumerate(traces):
            codec.save(trace, _numbered(Path(path), trace.run.pid) if position else path)
    elif traces:
        texts = [_text(trace, form) for trace in traces]
        write_whole(path, ["\n".join(texts).encode("utf-8")])
    return Exported(
        path=path,
        ops=sum(len(trace.ops) for trace in traces),
        modules=sum(len(trace.modules) for trace in traces),
    )


def _text(trace: Trace, form: str) -> str:
    text = render(trace, form, ViewOptions(width=_WIDTH))
    return text if text.endswith("\n") else f"{text}\n"


def _numbered(path: Path, process: int) -> Path:
    return path.with_name(f"{path.stem}-{process}{path.suffix}")
