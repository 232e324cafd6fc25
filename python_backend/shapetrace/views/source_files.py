"""Reading source files: the one place where views look at anything but the trace."""

from __future__ import annotations

import linecache
import os
import stat

from shapetrace._asynchronous import is_asynchronous

_LARGEST_FILE = 32 * 1024 * 1024
"""No source file is larger; a trace from elsewhere may name anything."""


def read_source(path: str) -> bytes | None:
    """The bytes of a source file; for code typed into a shell or notebook, the text it kept."""
    if path in linecache.cache:
        kept = linecache.getlines(path)
        if kept and not os.path.exists(path):
            return "".join(kept).encode("utf-8", "surrogatepass")
    try:
        # A pipe or a device could keep us reading for ever.
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_FILE:
            return None
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return None
