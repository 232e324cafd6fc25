"""Writing what was recorded to files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from shapetrace.events import codec
from shapetrace.events.model import Trace
from shapetrace.server.protocol import Exported, ExportFormat
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
        _write(Path(path), "\n".join(texts))
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


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
