"""Which documents of the editor are which source files."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from functools import lru_cache
from urllib.parse import unquote, urlsplit

_DRIVE = re.compile(r"/([A-Za-z]):(?=/|\Z)")


def path_of_uri(uri: str) -> str | None:
    """The path that a file's URI names; None for what is not a file, as unsaved documents are."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    path = unquote(parts.path, errors="surrogateescape")
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{parts.netloc}{path}"
    elif _DRIVE.match(path):
        path = path[1:]
    return path.replace("/", "\\") if os.sep == "\\" else path


@lru_cache(maxsize=4096)
def file_key(path: str) -> str:
    """Return one key for all paths of a file: links and spellings are resolved."""
    key = os.path.normcase(os.path.realpath(path))
    if sys.platform == "darwin":
        # Its file systems keep neither the case of letters nor the way they are composed apart.
        key = unicodedata.normalize("NFC", key).casefold()
    return key
