"""Reading large trace files line by line, with what is alike in them kept once.

What ``codec`` writes has one event on a line. Read so, a file takes a fraction of the time and of
the memory that it takes as one document; a file in any other form is read as that. Variables are
left out: who loads a trace here wants its calls.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from typing import Any, Final, TextIO

from shapetrace._files import FilePath
from shapetrace.events import codec
from shapetrace.events.model import Coverage, Frame, ModuleCall, Op, Run, Trace
from shapetrace.events.schema import Mismatch, Record, record_of

_HEAD: Final = f'{{"format":"{codec.FORMAT}",\n'

_LISTS: Final[dict[str, type]] = {
    "modules": ModuleCall,
    "ops": Op,
    "frames": Frame,
    "coverage": Coverage,
}

_PARTS: Final = ("stack", "inputs", "outputs")
"""Lists that follow each other in an op, and are alike in many."""

_AFTER_PARTS: Final = "result"
_MARKS: Final = tuple(f',"{key}":' for key in (*_PARTS, _AFTER_PARTS))

_MORE, _LAST, _END = ",\n", "],\n", "]}\n"
"""The text after an event: the next event, the next list, the end of the file."""

_FINGERPRINTS: Final = "fingerprints"
_FINGERPRINTS_MARK: Final = f',"{_FINGERPRINTS}":'

_scan: Final = json.JSONDecoder(parse_constant=codec.refuse_constant).raw_decode


class Sharing:
    """Values by the JSON that they were read from, and texts by themselves."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        forms = {field.key: field.form for field in record_of(Op).fields}
        self._parts = {key: (forms[key], dict[str, object]()) for key in (*_PARTS, _FINGERPRINTS)}

    def part(self, key: str, text: str) -> object:
        """The value of an op's part, from its JSON text."""
        form, known = self._parts[key]
        value = known.get(text)
        if value is None:
            document, end = _scan(text, 0)
            if end != len(text):
                raise _OtherForm
            value = known[text] = form.read(document)
        return value

    def share_texts(self, document: dict[str, Any]) -> None:
        """Have equal texts of an event be one."""
        texts = self._texts
        for key, value in document.items():
            if type(value) is str:
                document[key] = texts.setdefault(value, value)


def load_pair(a: FilePath, b: FilePath) -> tuple[Trace, Trace]:
    """The calls of two traces, which have most of their values in common."""
    sharing = Sharing()
    return load_calls(a, sharing), load_calls(b, sharing)


def load_calls(path: FilePath, sharing: Sharing | None = None) -> Trace:
    """The calls of a trace file; what they share with others that were read is kept once."""
    with codec.opened(path) as given:
        # A pipe can be read once only, and is read again below if it is not what it should be.
        stream = given if given.seekable() else io.BytesIO(codec.read_all(given, path))
        beginning = stream.tell()
        lines = io.TextIOWrapper(stream, encoding="ascii")
        try:
            with codec.collector_at_rest():
                return _Reader(lines, sharing or Sharing()).read()
        except (OSError, ValueError, LookupError, TypeError, Mismatch, RecursionError, _OtherForm):
            # Whatever is the matter is said there.
            lines.detach()
            stream.seek(beginning)
            return dataclasses.replace(codec.load_stream(stream, path), variables=())


class _OtherForm(Exception):
    """The file is not written as ``codec`` does, or is damaged."""


class _Reader:
    """Reads one file from its beginning to its end."""

    def __init__(self, stream: TextIO, sharing: Sharing) -> None:
        self._stream = stream
        self._sharing = sharing
        self._tail = ""
        """The text after the event that was read last."""

    def read(self) -> Trace:
        """The trace, without its variables."""
        members: dict[str, Any] = {}
        if self._stream.readline(len(_HEAD)) != _HEAD:
            raise _OtherForm
        self._tail = _LAST
        for line in self._stream:
            name, colon, rest = line.partition('":')
            if not colon or name[0] != '"' or self._tail != _LAST:
                raise _OtherForm
            members[name[1:]] = self._member(name[1:], rest)
        if self._tail != _END or not members.keys() <= _LISTS.keys() | {"run", "variables"}:
            raise _OtherForm
        members.pop("variables", None)
        return Trace(**members)

    def _member(self, name: str, rest: str) -> Any:
        if rest != "[\n":
            value, end = _scan(rest, 0)
            # As after the last event of a list.
            self._tail = f"]{rest[end:]}"
            if name == "run":
                return record_of(Run).read(value)
            if value != []:
                raise _OtherForm
            return ()
        if name in _LISTS:
            return tuple(self._events(record_of(_LISTS[name])))
        self._pass_over()
        return ()

    def _pass_over(self) -> None:
        """Read on to the last event of a list, without looking at them."""
        for line in self._stream:
            if line[-2:] != _MORE:
                self._tail = line[-3:]
                return
        raise _OtherForm

    def _events(self, record: Record) -> Iterator[Any]:
        share = self._sharing.share_texts
        is_op = record.event_class is Op
        nothing: dict[str, object] = {}
        for line in self._stream:
            text, given = self._without_parts(line) if is_op else (line, nothing)
            document, end = _scan(text, 0)
            if type(document) is not dict or not given.keys().isdisjoint(document):
                raise _OtherForm
            share(document)
            yield record.read(document, given)
            tail = text[end:]
            if tail != _MORE:
                self._tail = tail
                return
        raise _OtherForm

    def _without_parts(self, line: str) -> tuple[str, dict[str, object]]:
        """An op's line without its parts, and these.

        Each part is one list, or what stands between two marks could not be read as JSON.
        """
        given: dict[str, object] = {}
        first = begin = line.find(_MARKS[0])
        for key, mark, following in zip(_PARTS, _MARKS[:-1], _MARKS[1:], strict=True):
            end = line.find(following, begin)
            if begin < 0 or end < 0:
                raise _OtherForm
            given[key] = self._sharing.part(key, line[begin + len(mark) : end])
            begin = end
        rest = line[begin:]
        at = rest.find(_FINGERPRINTS_MARK)
        if at >= 0:
            # These come last, unless a newer version has put something after them.
            end = len(rest) - len(_MORE if rest.endswith(_MORE) else _LAST)
            text = rest[at + len(_FINGERPRINTS_MARK) : end - 1]
            if text.endswith("]"):
                given[_FINGERPRINTS] = self._sharing.part(_FINGERPRINTS, text)
                rest = rest[:at] + rest[end - 1 :]
        return line[:first] + rest, given
