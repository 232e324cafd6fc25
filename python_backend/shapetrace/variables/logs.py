"""``logger`` and its handlers: a file for each process and thread, made at the first write.

    logger.addHandler(h4logger())        under ./shapetrace-logs, or where it is told to
    log2file("frames", 73)               prints it, too

Folder of the files: the argument of ``h4logger(folder)``, else ``SHAPETRACE_LOGS`` in the
environment, else ``shapetrace-logs`` in the working directory at the first write.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import Final, TextIO

from shapetrace._asynchronous import is_asynchronous, suppressing
from shapetrace._files import open_to_append
from shapetrace.events.followed import FollowedEvent
from shapetrace.variables.outlets import TO_STDOUT, Idle, complain
from shapetrace.views.followed import FollowedOptions, event_text
from shapetrace.views.styled import StyledText, unstyled

FOLDER: Final = "shapetrace-logs"
VARIABLE: Final = "SHAPETRACE_LOGS"
WIDTH: Final = 120
"""Columns of the lines in files."""
_FORMAT: Final = "%(asctime)s - %(levelname)s - %(message)s"

logger: Final = logging.getLogger("shapetrace.variables")
"""The events of followed functions are also logged here, once it has a handler."""
logger.setLevel(logging.INFO)
logger.propagate = False


class FileForEach(logging.Handler):
    """Writes to a file of its own for each process and thread."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter(_FORMAT))
        self._folder = None if folder is None else Path(folder).absolute()
        self._files: dict[tuple[int, int], TextIO] = {}
        self._has_failed = False

    @property
    def folder(self) -> Path:
        """Where files are made."""
        if self._folder is None:
            self._folder = Path(os.environ.get(VARIABLE) or FOLDER).absolute()
        return self._folder

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record to the file of this thread."""
        # Files that a fork has copied are the parent's; the process id tells them apart.
        key = (os.getpid(), threading.get_ident())
        try:
            text = self.format(record)
            file = self._files.get(key)
            if file is None:
                file = self._files[key] = self._opened(*key)
            file.write(f"{text}\n")
            file.flush()
        except OSError as error:
            if is_asynchronous(error):
                raise
            self._leave(key, error)
        except Exception as error:
            if is_asynchronous(error):
                raise
            self.handleError(record)

    def _leave(self, key: tuple[int, int], error: OSError) -> None:
        """Report once that nothing can be written. The next record is tried again."""
        file = self._files.pop(key, None)
        if file is not None:
            with suppressing(OSError):
                file.close()  # drops what it could not write, which would pile up
        if not self._has_failed:
            self._has_failed = True
            folder = self._folder or os.environ.get(VARIABLE) or FOLDER
            complain(
                f"cannot write to {folder}: {error.strerror or error}; "
                f"name another folder with h4logger(folder) or {VARIABLE}"
            )

    def _opened(self, process: int, thread: int) -> TextIO:
        for key in [each for each in self._files if not _is_running(each)]:
            if key[0] == process:
                self._files[key].close()
            del self._files[key]
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"process_{process}_thread_{thread}.log"
        return open_to_append(path, encoding="utf-8", errors="backslashreplace")

    def close(self) -> None:
        """Close the files of this process."""
        for (process, _), file in self._files.items():
            if process == os.getpid():
                file.close()
        self._files.clear()
        super().close()


def _is_running(key: tuple[int, int]) -> bool:
    """Return whether a thread of this process is alive."""
    return key[0] == os.getpid() and key[1] in sys._current_frames()


def h4logger(folder: str | os.PathLike[str] | None = None) -> logging.Handler:
    """A handler that writes a file for each process and thread, made at the first write."""
    return FileForEach(folder)


_default: logging.Handler | None = None


def log2file(*messages: object) -> None:
    """Print a message and write it to this thread's file, with the time."""
    global _default
    text = " ".join(map(str, messages))
    TO_STDOUT.show(unstyled(text))
    if not any(isinstance(each, FileForEach) for each in logger.handlers):
        if _default is None:
            _default = h4logger()
        logger.addHandler(_default)
    logger.info("%s", text)


class _ToLogger(Idle):
    """An outlet that logs printed events, if ``logger`` has a handler."""

    def is_idle(self) -> bool:
        """Return whether ``logger`` has no handler."""
        return not logger.handlers

    def __call__(self, event: FollowedEvent) -> None:
        """Log an event."""
        if logger.handlers and logger.isEnabledFor(logging.INFO):
            to_logger(event_text(event, _OPTIONS))


TO_LOGGER: Final = _ToLogger()


def to_logger(text: StyledText) -> None:
    """Log lines, if the logger has a handler."""
    if logger.handlers:
        for line in text.plain().splitlines():
            logger.info("%s", line)


_OPTIONS: Final = FollowedOptions(WIDTH, cuts_callers=False)
