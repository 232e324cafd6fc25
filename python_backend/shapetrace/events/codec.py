"""The stored form of a trace: JSON with a format name, one event on a line.

{"format":"shapetrace/1",
"run":{"argv":["train.py"],...},
"modules":[
{"id":1,"parent":null,"path":"",...}],
...}
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NoReturn

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import TraceFileError
from shapetrace._exception_table import covering_jumps
from shapetrace._files import FilePath, advice, write_whole
from shapetrace.events.model import Trace
from shapetrace.events.schema import Mismatch, record_of

FORMAT = "shapetrace/1"
"""Changes when an older Shapetrace could no longer read the file; new keys alone do not."""

_RECORD_AGAIN = "record it again"
_WHAT_TO_NAME = "name a file that `shapetrace run -o FILE` or `trace.save(FILE)` wrote"
_BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{|\xff\xfe|\xfe\xff")
"""Of any JSON object, also in what Windows may have made of it."""

_ENOUGH = 64
_TOO_DEEP = "the values of this trace are nested too deeply for JSON"
_TRACE = record_of(Trace)
# Escaping everything but ASCII keeps file names that are not valid Unicode as they are.
_to_text: Callable[[object], str] = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, separators=(",", ":")
).encode


def encode(trace: Trace) -> dict[str, object]:
    """The JSON document for a trace, as plain dicts and lists."""
    try:
        return {"format": FORMAT, **_TRACE.write(trace)}
    except RecursionError:
        raise TraceFileError(_TOO_DEEP) from None


def decode(document: object) -> Trace:
    """The trace in a JSON document."""
    if not isinstance(document, dict) or not isinstance(document.get("format"), str):
        raise TraceFileError(f"this is not a Shapetrace trace; {_WHAT_TO_NAME}")
    found = document["format"]
    if not found.startswith("shapetrace/"):
        raise TraceFileError(
            f"this is not a Shapetrace trace but {_on_one_line(found)}; {_WHAT_TO_NAME}"
        )
    if found != FORMAT:
        raise TraceFileError(
            f"this was written by a newer Shapetrace (format {_on_one_line(found)}); "
            "update Shapetrace to read it"
        )
    try:
        trace: Trace = _TRACE.read(document)
    except Mismatch as mismatch:
        place = _on_one_line(str(mismatch))
        raise TraceFileError(f"this trace is damaged: {place}; {_RECORD_AGAIN}") from None
    except RecursionError:
        raise TraceFileError(
            f"this trace is damaged: its values are nested too deeply; {_RECORD_AGAIN}"
        ) from None
    return trace


def dumps(trace: Trace) -> str:
    """The text of a trace file."""
    return "".join(_pieces(trace))


def loads(text: str | bytes) -> Trace:
    """The trace in the text of a trace file."""
    with collector_at_rest():
        return decode(_parse(text))


def save(trace: Trace, path: FilePath) -> None:
    """Write a trace file: the whole of it, or nothing."""
    name = _on_one_line(os.fspath(path))
    try:
        write_whole(path, pieces(trace))
    except TraceFileError as error:
        raise TraceFileError(f"cannot write {name}: {error}") from None
    except (OSError, ValueError) as error:  # ValueError: the path holds a null character.
        if is_asynchronous(error):
            raise
        raise TraceFileError(f"cannot write {name}: {advice(error)}") from None


def load(path: FilePath) -> Trace:
    """Read a trace file."""
    with opened(path) as stream:
        return load_stream(stream, path)


@contextlib.contextmanager
def opened(path: FilePath) -> Iterator[BinaryIO]:
    """A trace file, to be read once; raises what says why it cannot be."""
    name = _on_one_line(os.fspath(path))
    try:
        stream = open(path, "rb")  # noqa: SIM115 (closed below)
    except FileNotFoundError:
        raise TraceFileError(f"there is no file {name}; {_WHAT_TO_NAME}") from None
    except IsADirectoryError:
        raise TraceFileError(f"{name} is a folder; {_WHAT_TO_NAME}") from None
    except (OSError, ValueError) as error:  # ValueError: the path holds a null character.
        if is_asynchronous(error):
            raise
        raise TraceFileError(f"cannot read {name}: {advice(error)}") from None
    with stream:
        yield stream


def load_stream(stream: BinaryIO, path: FilePath, beginning: bytes = b"") -> Trace:
    """The trace in what is left of a stream, behind a beginning that was read already."""
    beginning += read_all(stream, path, _ENOUGH)
    try:
        # A device may have no end.
        if beginning.strip() and not _BEGINNING.match(beginning):
            raise TraceFileError(f"this is not a Shapetrace trace; {_WHAT_TO_NAME}")
        return loads(beginning + read_all(stream, path))
    except TraceFileError as error:
        raise TraceFileError(f"{_on_one_line(os.fspath(path))}: {error}") from None


def read_all(stream: BinaryIO, path: FilePath, most: int = -1) -> bytes:
    """The rest of a stream that was opened by this path, or so many bytes of it."""
    try:
        return stream.read(most)
    except OSError as error:
        if is_asynchronous(error):
            raise
        name = _on_one_line(os.fspath(path))
        raise TraceFileError(f"cannot read {name}: {advice(error)}") from None
    except MemoryError:
        name = _on_one_line(os.fspath(path))
        raise TraceFileError(
            f"cannot read {name}: it takes more memory than there is; {_WHAT_TO_NAME}"
        ) from None


def pieces(trace: Trace) -> Iterator[bytes]:
    """The content of a trace file, made piece by piece, as the whole may be large."""
    return (piece.encode("ascii") for piece in _pieces(trace))


@covering_jumps
def _pieces(trace: Trace) -> Iterator[str]:
    try:
        yield f'{{"format":{_to_text(FORMAT)}'
        for field in _TRACE.fields:
            value = getattr(trace, field.name)
            yield f",\n{_to_text(field.key)}:"
            if isinstance(value, tuple):
                yield from _list_pieces(value)
            else:
                yield _to_text(record_of(type(value)).write(value))
        for key, value in trace.extra.items():
            if key not in _TRACE.keys:
                yield f",\n{_to_text(key)}:{_to_text(value)}"
        yield "}\n"
    except RecursionError:
        raise TraceFileError(_TOO_DEEP) from None
    except (TypeError, ValueError) as error:
        raise TraceFileError(f"this trace has a value that JSON cannot express: {error}") from None


def _list_pieces(events: Iterable[object]) -> Iterator[str]:
    separator = "[\n"
    for event in events:
        yield separator + _to_text(record_of(type(event)).write(event))
        separator = ",\n"
    yield "[]" if separator == "[\n" else "]"


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """Nothing that reading makes is garbage: searching it all for some would double the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _parse(text: str | bytes) -> object:
    try:
        return json.loads(text, parse_constant=refuse_constant, parse_float=finite)
    except json.JSONDecodeError as error:
        if not error.doc.strip():
            raise TraceFileError(f"this file is empty; {_RECORD_AGAIN}") from None
        if error.doc.lstrip().startswith("{"):
            raise TraceFileError(
                f"this file is cut short or damaged at line {error.lineno}; {_RECORD_AGAIN}"
            ) from None
        raise TraceFileError(f"this is not a Shapetrace trace; {_WHAT_TO_NAME}") from None
    except RecursionError:
        raise TraceFileError(
            f"this file is damaged: its values are nested too deeply; {_RECORD_AGAIN}"
        ) from None
    except ValueError:  # Bytes that are no text, or a number that JSON does not have.
        raise TraceFileError(f"this is not a Shapetrace trace; {_WHAT_TO_NAME}") from None


def refuse_constant(name: str) -> NoReturn:
    """For a JSON decoder: ``NaN`` and the like are no JSON."""
    raise ValueError(name)


def finite(text: str) -> float:
    """For a JSON decoder: a number, if a float can hold it."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else repr(text)
