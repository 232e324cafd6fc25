"""The messages of processes in files, so that a restarted server can read them again.

    <storage>/<session>/<pid>-<part>.frames

A file holds frames as they came over the socket: one of ours that says which session this is, the
hello without its proof, and every message after it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shapetrace.transport.framing import (
    HEADER_LENGTH,
    LONGEST,
    Decoder,
    FrameError,
    Message,
    decode,
    encode,
    frame_of,
)
from shapetrace.transport.handshake import HandshakeError, hello_message, read_hello
from shapetrace.transport.messages import Hello

MOST_BYTES = 256 * 1024 * 1024
"""For one process."""

SESSIONS_KEPT = 8
DAYS_KEPT = 7

_FORMAT = "shapetrace-journal/2"
_PENDING = 256 * 1024
_READ_AT_ONCE = 256 * 1024
_FILE_NAME = re.compile(r"(\d{1,10})-(\d{1,10})\.frames")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{7,63}")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One debug session, as the editor opened it."""

    session: str
    name: str
    mode: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """The messages of one process from a file, read lazily."""

    session: SessionInfo
    hello: Hello
    messages: Iterator[Message]


class JournalPart:
    """The file of one connection. A disk that is full ends the file, and nothing else."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.note = ""
        """Why nothing is written any more, if so."""
        self._path = path
        self._most_bytes = most_bytes
        self._pending = bytearray()
        self._length = 0
        self._descriptor: int | None = None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            self._give_up(f"cannot be written: {error}")

    @property
    def is_open(self) -> bool:
        """Whether it is still written to."""
        return self._descriptor is not None

    def write(self, payload: bytes) -> None:
        """Add a frame, given by its JSON."""
        if self._descriptor is None:
            return
        length = HEADER_LENGTH + len(payload)
        if self._length + len(self._pending) + length > self._most_bytes:
            self.flush()
            self._give_up(f"is full at {self._length} bytes; later messages are lost at a restart")
            return
        self._pending += frame_of(payload)
        if len(self._pending) >= _PENDING:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the system, where it outlives this process."""
        if self._descriptor is None or not self._pending:
            return
        pending, self._pending = self._pending, bytearray()
        written = 0
        try:
            with memoryview(pending) as view:
                while written < len(pending):
                    written += os.write(self._descriptor, view[written:])
        except OSError as error:
            self._give_up(f"cannot be written any further: {error}")
        else:
            self._length += written

    def close(self) -> None:
        """Write the rest and close the file."""
        self.flush()
        self._close()

    def abandon(self) -> None:
        """Write nothing any more, and delete the file."""
        self._pending.clear()
        self._close()
        _delete(self._path)

    def _give_up(self, note: str) -> None:
        self.note = note
        _log.warning("the journal %s %s", self._path.name, note)
        self._pending.clear()
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.close(descriptor)
            except OSError as error:
                _log.warning("the journal %s: %s", self._path.name, error)


class Journal:
    """The files of all sessions in one folder.

    Other things may be in that folder; only files named as ours are read or deleted. Nothing here
    raises for what is on the disk, or for a disk that does not take it.
    """

    def __init__(self, storage: Path, most_bytes: int = MOST_BYTES) -> None:
        self._storage = storage
        self._most_bytes = most_bytes
        self._open_parts: dict[Path, JournalPart] = {}

    def begin(self, session: SessionInfo, hello: Hello) -> JournalPart:
        """The file for a connection that begins; it takes the place of the process's former one."""
        folder = self._storage / _folder_name(session.session)
        pid = hello.process.pid
        former = {path: part for path, (of, part) in _files_in(folder).items() if of == pid}
        path = folder / f"{pid}-{max(former.values(), default=0) + 1}.frames"
        if not former and not _files_in(folder):
            self.remove_old(SESSIONS_KEPT - 1)
        part = JournalPart(path, self._most_bytes)
        heading = {
            "type": "journal",
            "format": _FORMAT,
            "session": session.session,
            "name": session.name,
            "mode": session.mode,
        }
        for message in (heading, hello_message(hello, "")):
            part.write(encode(message)[HEADER_LENGTH:])
        part.flush()
        for old in former:
            self._forget_file(old)
        self._open_parts[path] = part
        return part

    def replay(self) -> Iterator[Replayed]:
        """The messages of all sessions, the oldest first; unreadable files are skipped."""
        for folder in self._folders():
            newest: dict[int, tuple[int, Path]] = {}
            for path, (pid, part) in _files_in(folder).items():
                newest[pid] = max(newest.get(pid, (0, path)), (part, path))
            for _, (_, path) in sorted(newest.items()):
                replayed = _read(path)
                if replayed is not None:
                    yield replayed

    def forget(self) -> None:
        """Delete everything.

        A process that is connected is written down again once it connects anew: the rest of what
        it says means nothing without the beginning.
        """
        for folder in self._folders():
            self._forget_folder(folder)

    def remove_old(self, sessions: int = SESSIONS_KEPT, days: float = DAYS_KEPT) -> None:
        """Delete all but the newest sessions, and those that nothing was added to for days.

        Those that are being written stay.
        """
        folders = [each for each in self._folders() if not self._is_open(each)]
        oldest = time.time() - days * 24 * 3600
        for position, folder in enumerate(reversed(folders)):
            if position >= sessions or _changed(folder) < oldest:
                self._forget_folder(folder)

    def _is_open(self, folder: Path) -> bool:
        return any(
            path.parent == folder and part.is_open for path, part in self._open_parts.items()
        )

    def _folders(self) -> list[Path]:
        """The folders that hold files of ours, by when these last changed."""
        try:
            folders = [path for path in self._storage.iterdir() if path.is_dir()]
        except OSError:
            return []
        return sorted((path for path in folders if _files_in(path)), key=_changed)

    def _forget_folder(self, folder: Path) -> None:
        for path in _files_in(folder):
            self._forget_file(path)
        try:
            folder.rmdir()
        except OSError:
            # Something that is not ours is in it.
            pass

    def _forget_file(self, path: Path) -> None:
        part = self._open_parts.pop(path, None)
        if part is not None:
            part.abandon()
        else:
            _delete(path)


def _read(path: Path) -> Replayed | None:
    messages = _messages(path)
    try:
        heading = next(messages, None)
        if heading is None or heading["type"] != "journal" or heading.get("format") != _FORMAT:
            _log.warning("%s is not a journal of this version", path.name)
            return None
        session = SessionInfo(
            *(str(heading.get(key, "")) for key in ("session", "name", "mode")),
        )
        hello = read_hello(next(messages, {}))
    except HandshakeError as error:
        _log.warning("the journal %s has no hello: %s", path.name, error)
        return None
    return Replayed(session, hello, messages)


def _messages(path: Path) -> Iterator[Message]:
    """The messages in a file, as far as they are whole and make sense."""
    decoder = Decoder(LONGEST)
    try:
        with path.open("rb", buffering=0) as file:
            while data := file.read(_READ_AT_ONCE):
                decoder.feed(data)
                while (payload := decoder.take()) is not None:
                    yield decode(payload)
    except (OSError, FrameError) as error:
        _log.warning("the journal %s cannot be read any further: %s", path.name, error)
        return
    if decoder.waiting:
        _log.info("the journal %s ends within a frame", path.name)


def _files_in(folder: Path) -> dict[Path, tuple[int, int]]:
    """The files of ours in a folder, each with its process and its part."""
    found: dict[Path, tuple[int, int]] = {}
    try:
        for path in folder.iterdir():
            match = _FILE_NAME.fullmatch(path.name)
            if match and path.is_file():
                found[path] = int(match[1]), int(match[2])
    except OSError:
        pass
    return found


def _folder_name(session: str) -> str:
    """A name that is safe on every disk, whatever the session is called."""
    if _PLAIN_NAME.fullmatch(session):
        return session
    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _changed(folder: Path) -> float:
    times = [0.0]
    for path in _files_in(folder):
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            pass
    return max(times)


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("the journal %s cannot be deleted: %s", path.name, error)
