"""The file behind a saver: created late, written in transactions, reopened after a failure."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Sequence
from typing import Any

from shapetrace._asynchronous import is_asynchronous, suppressing, surely
from shapetrace._errors import CaptureFileError
from shapetrace.capture.problems import Problems
from shapetrace.hdf5 import transactions
from shapetrace.hdf5.encoding import UnstorableError
from shapetrace.hdf5.entries import Entry, Layout, Row, entries_of
from shapetrace.hdf5.journal import recover
from shapetrace.hdf5.library import (
    close_what_is_left,
    library,
    new_image,
    opened_for_writing,
)
from shapetrace.hdf5.missing import Counted, Missing
from shapetrace.hdf5.rank import this_process
from shapetrace.hdf5.shards import join_shards, shard_path
from shapetrace.hdf5.transactions import TransactionalFile

PROBLEMS = "shapetrace_problems"
"""The attribute of a file that lists what is not in it."""


class Storage:
    """Takes rows; after ``commit`` they are in the file, or reported as lost."""

    _owner: int
    """The process that all of this belongs to."""
    _transaction: TransactionalFile | None
    _identity: bytes | None
    """Identity of the file that this has made; None before."""
    _file: Any
    _reading: Any
    """The file opened for ``objects`` alone, once it was closed."""
    _entries: dict[str, Entry]
    _pending: Counted
    _missing: Missing
    _has_given_up: bool
    """Whether the current gather is lost."""
    _stored_problems: str
    path: str
    rank: int
    _shown: str
    """The path as the user wrote it."""

    def __init__(
        self, path: str, layout: Layout, problems: Problems, *, overwrite: bool, shards: bool
    ) -> None:
        """Raise early if the file could not be made later."""
        library()
        self._given = path
        self._joined = os.path.abspath(path)
        self._layout = layout
        self._problems = problems
        self._overwrite = overwrite
        self._wants_shards = shards
        self._begin()
        if shards or self.rank == 0:
            self._check()

    def settle(self, *, is_gathered: bool) -> None:
        """Determine which file to write, before the first value.

        Ranks that pass their own values, not gathered ones, write files of their own, as several
        processes cannot share one.
        """
        if self._owner != os.getpid():
            # A forked child has nothing to do with its parent's file.
            self._begin()
        if self._identity is None and not self._pending.values:
            self._place(is_gathered=is_gathered)

    def append(self, name: str, rows: Sequence[Row]) -> None:
        """Add values of a name to the transaction."""
        self._pending.add(rows)
        if self._has_given_up:
            # A gather is saved as a whole or not at all.
            return
        came: BaseException | None = None
        try:
            if self._file is None:
                self._open()
            entry = self._entries.get(name)
            if entry is None:
                entry = self._entries[name] = Entry(self._file, name, self._layout)
            self._append(name, entry, rows)
        except BaseException as error:
            came = self._go_back(error)
            self._has_given_up = True
        if came is not None:
            raise came

    def commit(self) -> None:
        """Make everything that was added part of the file."""
        if self._owner != os.getpid():
            return
        if self._has_given_up:
            self._missing.add(self._pending)
            self._pending, self._has_given_up = Counted(), False
        if self._transaction is None or self._file is None:
            return
        if not self._pending.values and self._problems.text() == self._stored_problems:
            return
        came: BaseException | None = None
        has_failed = False
        try:
            self._store_problems()
            self._file.flush()
            headers = {place for entry in self._entries.values() for place in entry.headers()}
            self._transaction.commit(headers)
        except BaseException as error:
            came = self._go_back(error)
            has_failed = True
        if came is not None:
            raise came
        if has_failed:
            return
        self._pending = Counted()
        if self._transaction.is_replaced():
            self._problems.tell(
                ("replaced", self._identity),
                f"{self._shown} was removed or replaced meanwhile, and the saved values with it; "
                "later values are saved to a new file",
            )
            self._let_go()
            self._identity = None
        elif self._missing.is_failing:
            self._missing.tell_of_success(self._shown)
            # So that the file has the problem, too.
            self.commit()

    def close(self) -> None:
        """Close the file; it is reopened for later values."""
        if self._owner != os.getpid() or self._identity is None:
            return
        self._let_go()
        if self._is_shard:
            try:
                join_shards(self._joined)
            except Exception as error:
                if is_asynchronous(error):
                    raise
                self._problems.tell("join", f"{os.path.basename(self._joined)}: {error}")

    def objects(self) -> dict[str, Any]:
        """The dataset or group of each name."""
        if self._file is None and self._identity is not None and os.path.exists(self.path):
            if self._reading is None:
                # Not by path: the program may open that in its own way meanwhile.
                content = TransactionalFile(self.path, self._identity)
                self._reading = library().File(content, "r")
            entries = entries_of(self._reading, self._layout)
        else:
            entries = self._entries
        return {name: entry.parts[0].object for name, entry in entries.items() if entry.parts}

    def release(self) -> None:
        """Release everything, at the end of the process."""
        if self._owner == os.getpid():
            self.commit()
            self.close()
            self._close_reading()

    def _begin(self) -> None:
        """Nothing has been saved by this process."""
        self._owner = os.getpid()
        self._transaction = self._identity = self._file = self._reading = None
        self._entries = {}
        self._pending = Counted()
        self._missing = Missing(self._problems)
        self._has_given_up = False
        self._stored_problems = ""
        self._place(is_gathered=True)

    def _place(self, *, is_gathered: bool) -> None:
        """The file to write, by what is known of the other processes."""
        self.rank, self._world_size = this_process()
        self._is_shard = self._wants_shards or (self._world_size > 1 and not is_gathered)
        self.path, self._shown = self._joined, self._given
        if self._is_shard:
            self.path = shard_path(self._joined, self.rank)
            self._shown = shard_path(self._given, self.rank)

    def _check(self) -> None:
        given = self._given
        # One rank checks the joined file: another may have made it by now.
        ours = (self.path, self._joined) if self.rank == 0 else (self.path,)
        for path in dict.fromkeys(ours):
            shown = os.path.join(os.path.dirname(given), os.path.basename(path))
            if os.path.isdir(path):
                raise CaptureFileError(f"cannot write {shown}: it is a folder; name a file in it")
            if os.path.exists(path) and not os.path.isfile(path):
                raise CaptureFileError(
                    f"cannot write {shown}: HDF5 needs a file; name one, such as run.h5"
                )
            if os.path.lexists(path) and not self._overwrite:
                raise CaptureFileError(
                    f"{shown} exists already; choose another name, or have it replaced by"
                    " overwrite=True"
                )
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            raise CaptureFileError(
                f"cannot write {given}: its folder does not exist; make it first, or choose another"
                " place"
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise CaptureFileError(
                f"cannot write {given}: it is not permitted there; choose another place"
            )
        if self._is_shard and self._overwrite:
            # An old shard of a rank that captures nothing now would be mistaken for a new one.
            for path in ours:
                with suppressing(OSError):
                    os.unlink(path)

    def _open(self) -> None:
        """The file as of the last commit, or a new one; raises an error that prevents it."""
        self._close_reading()
        self._leave_failed()
        if self._transaction is None and self._identity is not None:
            try:
                recover(self.path)
                self._transaction = TransactionalFile(self.path, self._identity)
            except (FileNotFoundError, ValueError):
                # Removed or replaced since it was closed.
                self._identity = None
        if self._transaction is None:
            self._make()
        assert self._transaction is not None
        # Released before h5py, which registers with atexit when it is imported.
        _close_at_exit(self)
        self._file = opened_for_writing(self._transaction)
        self._entries = entries_of(self._file, self._layout)

    def _make(self) -> None:
        # Set before the file exists, so that it is known if an exception comes right after.
        identity = self._identity = os.urandom(16).hex().encode("ascii")
        try:
            self._create(identity)
        except OSError as error:
            if not is_asynchronous(error):
                self._identity = None  # Nothing there is ours.
            raise
        # It is ours now, whatever happens to it.
        self._overwrite = False
        self._transaction = TransactionalFile(self.path, identity)

    def _create(self, identity: bytes) -> None:
        content = new_image(identity, {"rank": self.rank, "world_size": self._world_size})
        try:
            transactions.create(self.path, content, overwrite=self._overwrite)
        except FileExistsError:
            # It did not exist at the start: another program uses the same path.
            path = _free_path(self.path)
            transactions.create(path, content, overwrite=False)
            self._problems.tell(
                ("taken", path),
                f"{self._shown} was made by another program meanwhile; saving to"
                f" {os.path.basename(path)} instead",
            )
            self._shown = os.path.join(os.path.dirname(self._shown), os.path.basename(path))
            self.path = path

    def _append(self, name: str, entry: Entry, rows: Sequence[Row]) -> None:
        assert self._transaction is not None
        try:
            entry.append(rows)
        except UnstorableError as error:
            self._pending.remove(rows)
            self._problems.tell((name, str(error)), f"{name}: not saved: {error}")
        except (TypeError, ValueError) as error:
            # h5py does not have a type, or HDF5 does not.
            self._pending.remove(rows)
            self._problems.tell((name, type(error)), f"{name}: not saved: {error}")
        if self._transaction.failure is not None:
            raise self._transaction.failure

    def _store_problems(self) -> None:
        text = self._problems.text()
        if text != self._stored_problems:
            self._file.attrs[PROBLEMS] = text
        self._stored_problems = text

    def _go_back(self, error: BaseException) -> BaseException | None:
        """Go back to the last commit; later values count as missing.

        Returns the program's own exception, if it was one that came.
        """
        self._missing.add(self._pending)
        self._pending = Counted()
        self._stored_problems = ""
        transaction = self._transaction
        if transaction is not None and transaction.failure is None:
            transaction.failure = error
        self._close_file()
        with suppressing(OSError):
            # Frees the disk space at once.
            self._leave_failed()
        came = None if transaction is None else transaction.taken_interrupt()
        came = error if is_asynchronous(error) else came
        reason = _reason(error if came is None else came)
        self._missing.tell_of_failure(self._shown, reason, is_fault=came is None)
        return came

    def _leave_failed(self) -> None:
        """Go back to the last commit where there was a failure; the file is to be opened anew."""
        transaction = self._transaction
        if transaction is not None and (transaction.failure is not None or transaction.is_over):
            transaction.retire()
            transaction.restore()
            try:
                anew = TransactionalFile(self.path, self._identity or b"", transaction.journal)
            except (FileNotFoundError, ValueError) as error:
                if is_asynchronous(error):
                    raise
                anew = None  # Removed or replaced since, which is checked later.
            self._transaction = anew
            transaction.close()

    def _let_go(self) -> None:
        self._close_file()
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            with suppressing(OSError):
                transaction.close()
            came = transaction.taken_interrupt()
            if came is not None:
                raise came

    def _close_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def _close_file(self) -> None:
        # Completely, or HDF5 would write its pending data when it drops the file.
        surely(self._close_open_file)

    def _close_open_file(self) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except Exception as error:
                if is_asynchronous(error):
                    raise
                # Of a transaction that has failed nothing is needed any more.
        if self._transaction is not None:
            close_what_is_left(self._transaction)
        self._file, self._entries = None, {}


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _free_path(path: str) -> str:
    stem, extension = os.path.splitext(path)
    number = 2
    while os.path.lexists(f"{stem}-{number}{extension}"):
        number += 1
    return f"{stem}-{number}{extension}"


_open_storages: weakref.WeakSet[Storage] = weakref.WeakSet()
_is_registered = False


def _close_at_exit(storage: Storage) -> None:
    global _is_registered
    _open_storages.add(storage)
    if not _is_registered:
        _is_registered = True
        atexit.register(_close_all)


def _close_all() -> None:
    for storage in list(_open_storages):
        storage.release()
