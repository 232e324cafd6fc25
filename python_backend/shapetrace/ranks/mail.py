"""One gathering's notes and chunks in the process group's key-value store.

No call here waits for a key: a store client allows one operation at a time, and the program's own
may be next.
"""

from __future__ import annotations

import hashlib
import os
from datetime import timedelta
from typing import Any

CHUNK = 256 * 1024
"""Bytes of the largest chunk. The store takes 8 MiB at most and is fastest with about this."""

_TIMEOUT = timedelta(seconds=30)


class Mail:
    """One gathering's keys, through a connection of its own where the store can have several."""

    def __init__(self, store: Any, prefix: str) -> None:
        from torch._C._distributed_c10d import PrefixStore

        # If this process is the store's server, it stays so while the original store lives.
        self._original = store
        try:
            store = store.clone()
            store.set_timeout(_TIMEOUT)
        except (AttributeError, RuntimeError):
            pass  # An older torch, or a store of the program's own.
        self._store: Any = PrefixStore(prefix, store)
        self._folder = _folder_of(store, prefix)

    def note(self, key: str, text: str) -> None:
        """Write a note, in place of one that has the same key."""
        self._store.set(key, text)

    def read(self, key: str) -> bytes | None:
        """The text of a note; None if there is none."""
        return self._store.get(key) if self._store.check([key]) else None

    def read_all(self, keys: list[str]) -> list[bytes]:
        """The texts of several notes that are known to exist."""
        return list(self._store.multi_get(keys)) if keys else []

    def remove(self, key: str) -> None:
        """Remove a note."""
        self._store.delete_key(key)

    def confirm(self) -> None:
        """Return when the store has taken everything so far; writing alone does not wait for it."""
        self._store.check(["nothing"])

    def put(self, rank: int, number: int, chunk: bytes) -> None:
        """Leave a chunk for rank 0."""
        if self._folder is None:
            self._store.set(f"chunk/{rank}/{number}", chunk)
        else:
            with open(f"{self._folder}{rank}-{number}", "wb") as file:
                file.write(chunk)

    def take(self, rank: int, number: int) -> bytes:
        """Remove and return a chunk that is known to exist."""
        if self._folder is None:
            key = f"chunk/{rank}/{number}"
            chunk: bytes = self._store.get(key)
            self._store.delete_key(key)
            return chunk
        path = f"{self._folder}{rank}-{number}"
        with open(path, "rb") as file:
            chunk = file.read()
        os.unlink(path)
        return chunk


def _folder_of(store: Any, prefix: str) -> str | None:
    """The prefix of files for a `FileStore`'s chunks, beside its own file.

    That file only ever grows, and every process keeps all of it in memory.
    """
    from torch._C._distributed_c10d import FileStore, PrefixStore

    while isinstance(store, PrefixStore):
        store = store.underlying_store
    if not isinstance(store, FileStore):
        return None
    path = os.path.abspath(store.path)  # type: ignore[attr-defined]  # not in torch's types
    digest = hashlib.sha256(prefix.encode()).hexdigest()[:12]
    return f"{path}-shapetrace-{digest}-"
