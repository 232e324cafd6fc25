"""``H5PYSaverCallback``: moves captured values to an HDF5 file while the program runs.

``entries`` describes the file's layout; ``transactions`` keeps it intact if the program is killed.
A value that cannot be stored, or a full disk, is reported in one line on stderr and in
``problems``, and the program goes on.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import CaptureFileError
from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding
from shapetrace._pending_exceptions import Undropped
from shapetrace.capture.problems import Problems
from shapetrace.hdf5.columns import Compression
from shapetrace.hdf5.encoding import Conversions, Encoded, Encoder, UnstorableError
from shapetrace.hdf5.entries import Layout, Row
from shapetrace.hdf5.library import library
from shapetrace.hdf5.storage import Storage


class H5PYSaverCallback:
    """Saves values that it is called with, as any kind of gather or trace callback.

    As a pre-gather callback, which several ranks call, each rank writes a file of its own,
    ``run.rank0.h5`` beside ``run.h5``, which then shows them as one: nothing has to be gathered.
    ``shards=True`` has one rank do so as well, and old files of ranks noticed at the beginning.

    Values of one call are in the file together or not at all; with ``after_gather`` after each
    gather, all values of a gather are. The file is made when there is something to put into it.
    """

    def __init__(
        self,
        dataset_file: str | os.PathLike[str],
        iteration_dtype: Any = "int64",
        float_dtype: Any = None,
        int_dtype: Any = None,
        compression: Any = None,
        compression_opts: Any = None,
        shuffle: bool = False,
        existing_ok: bool | None = None,
        *,
        overwrite: bool = False,
        shards: bool = False,
    ) -> None:
        """Check early what would fail later: an existing file, impossible options.

        Numbers are stored as they are, unless ``float_dtype`` or ``int_dtype`` is given, as a type
        or the name of one. ``compression``, ``compression_opts`` and ``shuffle`` are h5py's. An
        existing file is refused, and replaced with ``overwrite=True`` alone: ``existing_ok`` is
        taken from programs that were written for other tools, and does not allow it.
        """
        self._options = {
            "dataset_file": os.fspath(dataset_file),
            "iteration_dtype": iteration_dtype,
            "float_dtype": float_dtype,
            "int_dtype": int_dtype,
            "compression": compression,
            "compression_opts": compression_opts,
            "shuffle": shuffle,
            "existing_ok": existing_ok,
            "overwrite": overwrite,
            "shards": shards,
        }
        layout = Layout(
            _checked_compression(compression, compression_opts, shuffle),
            _integer_type("iteration_dtype", iteration_dtype),
        )
        conversions = Conversions(
            None if float_dtype is None else _float_type(float_dtype),
            None if int_dtype is None else _integer_type("int_dtype", int_dtype),
        )
        self._lock = threading.RLock()
        self._problems = Problems()
        self._storage = Storage(
            self._options["dataset_file"],
            layout,
            self._problems,
            overwrite=overwrite and existing_ok is not False,
            shards=shards,
        )
        self._encoder = Encoder(conversions, self._note)
        self._current = ""
        self._is_told_of_gathers = False
        self._open: set[str] = set()

    @property
    def problems(self) -> list[str]:
        """One line for each value that could not be saved unchanged."""
        return self._problems.lines

    @property
    def has_failed(self) -> bool:
        """Whether anything was not saved for another reason than the program's own exceptions."""
        return self._problems.has_faults

    @property
    def path(self) -> str:
        """The file that this process writes; with shards, its own."""
        return self._storage.path

    @property
    def datasets(self) -> Mapping[str, Any]:
        """The h5py dataset, or group, of each name saved so far."""
        return _Datasets(self._storage)

    @leaving_surely
    def __call__(
        self, name: str, values: list[Any], iterations: list[Any], ranks: list[Any] | None = None
    ) -> None:
        """Move values to the file, with iterations and ranks; empties the lists."""
        with holding(self._lock), Undropped():
            try:
                if len(values):
                    self._save(str(name), values, iterations, ranks)
            except Exception as error:
                if is_asynchronous(error):
                    raise
                self._problems.tell(name, f"{name}: cannot be saved: {on_one_line(error)}")
            finally:
                for taken in (values, iterations, ranks):
                    if isinstance(taken, list):
                        taken.clear()

    @leaving_surely
    def after_gather(self) -> None:
        """All names of a gather have been handed over: from now on they are in the file."""
        with holding(self._lock), Undropped():
            self._is_told_of_gathers = True
            self._commit()

    @leaving_surely
    def close(self) -> None:
        """Finish the file; values that come later are put into it as well."""
        with holding(self._lock), Undropped():
            self._commit()
            self._storage.close()

    def __enter__(self) -> H5PYSaverCallback:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        # A process that unpickles this starts fresh.
        return _remade, (self._options,)

    def _save(
        self, name: str, values: list[Any], iterations: list[Any], ranks: list[Any] | None
    ) -> None:
        self._current = name
        self._storage.settle(is_gathered=ranks is not None)
        if name in self._open:
            # The next round has begun without a call of ``after_gather`` for the last.
            self._commit()
        with _unseen_among(values):
            rows = list(self._rows(name, values, iterations, ranks))
        if not rows:
            return
        self._open.add(name)
        self._storage.append(name, rows)
        if not self._is_told_of_gathers:
            self._commit()

    def _rows(
        self, name: str, values: list[Any], iterations: list[Any], ranks: list[Any] | None
    ) -> Iterator[Row]:
        numbers = tuple(map(int, iterations))
        given = (self._storage.rank,) * len(numbers) if ranks is None else tuple(map(int, ranks))
        is_each = len(values) == len(numbers) == len(given)
        for position, value in enumerate(values):
            encoded = self._encoded(name, value)
            if encoded is None:
                continue
            if is_each:
                yield Row(encoded, numbers[position : position + 1], given[position : position + 1])
            else:
                yield Row(encoded, numbers, given)

    def _encoded(self, name: str, value: object) -> Encoded | None:
        try:
            return self._encoder.encode(value)
        except UnstorableError as error:
            self._problems.tell((name, str(error)), f"{name}: not saved: {error}")
        return None

    def _commit(self) -> None:
        self._open.clear()
        self._storage.commit()

    def _note(self, what: str) -> None:
        self._problems.tell((self._current, what), f"{self._current}: {what}")


class _Datasets(Mapping[str, Any]):
    """The current objects of the file; looked up each time, as the file may be reopened."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __getitem__(self, name: str) -> Any:
        return self._storage.objects()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._storage.objects())

    def __len__(self) -> int:
        return len(self._storage.objects())

    def __repr__(self) -> str:
        return repr(self._storage.objects())


def _unseen_among(values: list[Any]) -> AbstractContextManager[None]:
    """Context to read values unnoticed, also without torch."""
    if "torch" not in sys.modules:
        return nullcontext()
    from shapetrace.capture.copies import unseen_among

    return unseen_among(values)


def on_one_line(error: BaseException) -> str:
    """An error in one line: class and message."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _remade(options: dict[str, Any]) -> H5PYSaverCallback:
    return H5PYSaverCallback(**options)


def _checked_compression(name: Any, options: Any, shuffle: bool) -> Compression:
    """Try the options, which would otherwise fail in the middle of the training."""
    chosen = Compression(name, options, bool(shuffle))
    h5py = library()
    try:
        with h5py.File.in_memory() if hasattr(h5py.File, "in_memory") else _scratch(h5py) as file:
            file.create_dataset("x", shape=(1,), chunks=(1,), dtype="f4", **chosen.as_keywords())
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise CaptureFileError(
            f"compression={name!r}, compression_opts={options!r} is not possible: {reason}"
        ) from None
    return chosen


def _scratch(h5py: Any) -> Any:
    import io

    return h5py.File(io.BytesIO(), "w")


def _integer_type(option: str, given: Any) -> Any:
    dtype = _dtype(option, given)
    if dtype.kind not in "iu":
        raise CaptureFileError(f"{option}={given!r} is no type of integers; try {option}='int64'")
    return dtype


def _float_type(given: Any) -> Any:
    """A type of NumPy's, or of torch's where NumPy does not have it."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.dtype):
        name = str(given).removeprefix("torch.")
        if given.is_floating_point and name not in ("float16", "float32", "float64"):
            return given
        given = name
    dtype = _dtype("float_dtype", given)
    if dtype.kind != "f":
        raise CaptureFileError(
            f"float_dtype={given!r} is no type of floating point numbers; try 'float32'"
        )
    return dtype


def _dtype(option: str, given: Any) -> Any:
    import numpy

    name = str(given).removeprefix("torch.") if type(given).__module__ == "torch" else given
    try:
        return numpy.dtype(name)
    except TypeError:
        raise CaptureFileError(f"{option}={given!r} is no type that NumPy knows") from None
