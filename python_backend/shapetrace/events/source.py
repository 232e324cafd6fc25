"""Source text as Python reads it."""

from __future__ import annotations

import io
import tokenize


def decode_source(data: bytes) -> str | None:
    """The text of a source file, with newlines as line ends; None where it cannot be decoded."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding, "replace")
    except (SyntaxError, LookupError):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")
