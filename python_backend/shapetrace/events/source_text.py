"""Source text as Python reads it."""

from __future__ import annotations

import hashlib
import io
import os
import tokenize
from typing import Final

from shapetrace._asynchronous import is_asynchronous

MOST_SOURCE: Final = 4 << 20
"""Bytes of a source file whose text is kept."""


def decode_source(data: bytes) -> str | None:
    """The text of a source file, with newlines as line ends; None where it cannot be decoded."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding, "replace")
    except (SyntaxError, LookupError):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def source_row(path: str, since: float) -> tuple[str, str | None, str | None]:
    """A source file's path, hash and text; without these if it was changed since then."""
    try:
        if os.stat(path).st_mtime > since:
            return (path, None, None)
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return (path, None, None)
    text = decode_source(data) if len(data) <= MOST_SOURCE else None
    return (path, hashlib.sha256(data).hexdigest(), text)
