"""How the event classes are written as JSON, read off the classes themselves.

A field is stored under its own name unless ``_KEYS`` says otherwise. A field that the class gives
a default is left out where it has that value, unless ``_ALWAYS`` wants it there; one that may be
None may be missing. Keys that no field has are kept in ``extra``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from operator import attrgetter, itemgetter
from types import MappingProxyType, NoneType, UnionType
from typing import Any, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

from shapetrace.events.model import Container, Frame, ModuleCall, Op, Other, Tensor, Trace

Reader: TypeAlias = Callable[[Any], object] | None
"""Makes a value of its JSON; None where the JSON is the value."""

Writer: TypeAlias = Callable[[Any], object] | None
"""Makes JSON of a value; None where the value is its JSON."""

_KEYS = {(ModuleCall, "class_name"): "class", (Container, "kind"): "container"}

_ALWAYS: dict[type, set[str]] = {
    Trace: {"modules", "ops", "frames", "variables", "coverage"},
    Tensor: {"device", "requires_grad", "layout", "strides", "name", "kind", "placements"},
    ModuleCall: {"error"},
    Op: {"error"},
    Frame: {"column", "end_line", "end_column"},
}

_RESERVED: dict[type, frozenset[str]] = {Trace: frozenset({"format"})}
"""Keys that are in no field and are nevertheless not unknown ones."""

_MARKS: dict[type, str] = {Tensor: "shape", Container: "container", Other: "text"}
"""The key that says which of several types an object has."""

_NAMES: dict[type, str] = {
    NoneType: "null",
    bool: "true or false",
    int: "a whole number",
    float: "a decimal number",
    str: "text",
    list: "a list",
    dict: "an object",
}
"""The name of each JSON type in messages."""


_MOST_PLANS = 256
"""Ways to read one kind of object that are kept; files of others may have any number of them."""


class Mismatch(Exception):
    """JSON that does not belong at its place in a trace."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = ""

    def __str__(self) -> str:
        return f"{self.place.removeprefix('.') or 'the document'} {self.problem}"

    def inside(self, step: str) -> Mismatch:
        """Add an outer step to the place."""
        self.place = step + self.place
        return self


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How the values of one type are stored."""

    readers: Mapping[type, Reader]
    """The reader of each JSON type that is allowed here."""
    write: Writer

    def read(self, document: object) -> object:
        """The value of the JSON."""
        reader = self.readers.get(type(document), self._refuse)
        return document if reader is None else reader(document)

    def _refuse(self, document: object) -> NoReturn:
        *most, last = [_NAMES[kind] for kind in self.readers]
        expected = f"{', '.join(most)} or {last}" if most else last
        found = _NAMES.get(type(document), type(document).__name__)
        raise Mismatch(f"should be {expected}, not {found}")


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    key: str
    form: Form
    required: bool
    always: bool
    default: object


class Record:
    """How the objects of one event class are stored."""

    def __init__(self, event_class: type) -> None:
        self.event_class = event_class
        self.fields: tuple[_Field, ...] = ()
        self.keys: frozenset[str] = frozenset()
        names = [field.name for field in dataclasses.fields(event_class) if field.name != "extra"]
        self._values: Callable[[Any], tuple[Any, ...]] = attrgetter(*names, "extra")
        self._plans: dict[tuple[object, ...], _Plan] = {}

    def settle(self) -> None:
        """Look up how the fields are stored, which may take other records."""
        hints = get_type_hints(self.event_class)
        self.fields = tuple(
            self._field(field, hints[field.name])
            for field in dataclasses.fields(self.event_class)
            if field.name != "extra"
        )
        self.keys = frozenset(field.key for field in self.fields) | _RESERVED.get(
            self.event_class, frozenset()
        )

    def _field(self, field: dataclasses.Field[Any], hint: object) -> _Field:
        form = _form_of(hint)
        key = _KEYS.get((self.event_class, field.name), field.name)
        has_default = field.default is not dataclasses.MISSING
        may_be_missing = NoneType in form.readers and _MARKS.get(self.event_class) != key
        return _Field(
            name=field.name,
            key=key,
            form=form,
            required=not has_default and not may_be_missing,
            always=not has_default or field.name in _ALWAYS.get(self.event_class, ()),
            default=field.default if has_default else None,
        )

    def read(
        self, document: dict[str, object], given: Mapping[str, object] = MappingProxyType({})
    ) -> Any:
        """The event of a JSON object, with some values that were read already."""
        signature = (*given, *document, *map(type, document.values()))
        plan = self._plans.get(signature)
        if plan is not None:
            try:
                return plan.read(document, given)
            except Mismatch:
                pass  # The longer way knows where it is.
        event = self._read_each(document, given)
        if len(self._plans) < _MOST_PLANS and self.keys.issuperset(document):
            self._plans[signature] = _Plan(self, document, given)
        return event

    def _read_each(self, document: dict[str, object], given: Mapping[str, object]) -> Any:
        values: dict[str, object] = {}
        missing = 0
        for field in self.fields:
            if field.key in given:
                values[field.name] = given[field.key]
                missing += 1
                continue
            try:
                value = document[field.key]
            except KeyError:
                if field.required:
                    raise Mismatch("is missing").inside(f".{field.key}") from None
                values[field.name] = field.default
                missing += 1
                continue
            try:
                values[field.name] = field.form.read(value)
            except Mismatch as mismatch:
                raise mismatch.inside(f".{field.key}") from None
        if len(document) > len(self.fields) - missing:
            values["extra"] = {key: document[key] for key in document if key not in self.keys}
        return self.event_class(**values)

    def write(self, event: Any) -> dict[str, object]:
        """The JSON object for an event."""
        document: dict[str, object] = {}
        *values, extra = self._values(event)
        for field, value in zip(self.fields, values, strict=True):
            if field.always or value != field.default:
                write = field.form.write
                document[field.key] = value if write is None else write(value)
        if extra:
            document.update((key, extra[key]) for key in extra if key not in self.keys)
        return document


class _Plan:
    """How to read the objects that have the same keys, with values of the same types.

    Such a type was found to be allowed before, so only what is made of other values is looked at.
    """

    def __init__(
        self, record: Record, document: Mapping[str, object], given: Mapping[str, object]
    ) -> None:
        self._event_class = record.event_class
        self._defaults = {field.key: field.default for field in record.fields}
        # One more than there are, as one alone would give no tuple.
        keys = [field.key for field in record.fields]
        self._values = itemgetter(*keys, keys[0])
        self._readers: list[tuple[int, Callable[[Any], object]]] = []
        for position, field in enumerate(record.fields):
            if field.key in document and field.key not in given:
                reader = field.form.readers[type(document[field.key])]
                if reader is not None:
                    self._readers.append((position, reader))

    def read(self, document: dict[str, object], given: Mapping[str, object]) -> Any:
        """The event of such an object."""
        values = list(self._values({**self._defaults, **document, **given}))
        values.pop()
        for position, reader in self._readers:
            values[position] = reader(values[position])
        return self._event_class(*values)


_records: dict[type, Record] = {}


def record_of(event_class: type) -> Record:
    """How the objects of an event class are stored."""
    record = _records.get(event_class)
    if record is None:
        # Entered before it is settled: a container holds values, which may be containers.
        record = _records[event_class] = Record(event_class)
        record.settle()
    return record


def _form_of(hint: object) -> Form:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _form_of_union(get_args(hint))
    if origin is tuple:
        return _form_of_items(_form_of(get_args(hint)[0]))
    if origin is Mapping:
        return _form_of_mapping(_form_of(get_args(hint)[1]))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        record = record_of(hint)
        return Form({dict: record.read}, record.write)
    if hint is float:  # Others write 1.0 as 1.
        return Form({int: _within_floats, float: None}, None)
    if isinstance(hint, type) and hint in _NAMES:
        return Form({hint: None}, None)
    raise TypeError(f"no stored form for {hint}")


def _within_floats(document: int) -> int:
    try:
        float(document)
    except OverflowError:
        raise Mismatch("is larger than any number of a trace") from None
    return document


def _form_of_items(item: Form) -> Form:
    def read(document: list[object]) -> tuple[object, ...]:
        values: list[object] = []
        try:
            for element in document:
                values.append(item.read(element))
        except Mismatch as mismatch:
            raise mismatch.inside(f"[{len(values)}]") from None
        return tuple(values)

    def write(value: tuple[object, ...]) -> list[object]:
        return [item.write(element) for element in value] if item.write else list(value)

    return Form({list: read}, write)


def _form_of_mapping(item: Form) -> Form:
    def read(document: dict[str, object]) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, element in document.items():
            try:
                values[key] = item.read(element)
            except Mismatch as mismatch:
                raise mismatch.inside(f"[{json.dumps(key)}]") from None
        return values

    return Form({dict: read}, dict)


def _form_of_union(hints: tuple[object, ...]) -> Form:
    classes = [hint for hint in hints if isinstance(hint, type) and hint in _MARKS]
    readers: dict[type, Reader] = {}
    writers: dict[object, Writer] = {}
    for hint in hints:
        form = _form_of(hint)
        readers |= form.readers
        writers[get_origin(hint) or hint] = form.write
    if len(classes) > 1:
        readers[dict] = _reader_by_mark(classes)
    if not any(writers.values()):
        return Form(readers, None)

    def write(value: object) -> object:
        chosen = writers.get(type(value))
        return value if chosen is None else chosen(value)

    return Form(readers, write)


def _reader_by_mark(classes: list[type]) -> Reader:
    choices = [(_MARKS[event_class], record_of(event_class)) for event_class in classes]

    def read(document: dict[str, object]) -> object:
        for mark, record in choices:
            if mark in document:
                return record.read(document)
        raise Mismatch(f"should have one of the keys {', '.join(mark for mark, _ in choices)}")

    return read
