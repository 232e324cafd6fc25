"""Reading source files: the one place where views look at anything but the trace."""

from __future__ import annotations

import linecache


def read_source(path: str) -> bytes | None:
    """The bytes of a source file; for code typed into a shell or notebook, the text it kept."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError):
        kept = linecache.getlines(path)
        return "".join(kept).encode("utf-8", "surrogatepass") if kept else None
