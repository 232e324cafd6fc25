"""Rows and objects of messages, each declared once: by a frozen dataclass.

    @dataclass(frozen=True, slots=True)
    class RunningCall:
        call: int
        function: str
        file: Annotated[str, check_path]
        line: Annotated[int, check_line]

    Table(RunningCall).write(RunningCall(7, "f", "/a.py", 3))   # [7, "f", "/a.py", 3]
    Table(RunningCall).read([7, "f", "/a.py", "3"])             # Refused: line should be ...
    Object(RunningCall).write(RunningCall(7, "f", "/a.py", 3))  # {"call": 7, "function": "f", ...}

A row has one column for each field, in their order; an object has a key for each, in camel case. A
dataclass in a row is a row, in an object an object; a set is a list in order. The annotations say
what may stand where, and checks in them (``Annotated``) what else must hold. Fields named ``extra``
are not sent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from shapetrace.events.checks import (
    FIGURE,
    FLAG,
    LARGEST,
    LARGEST_FIGURE,
    LIST,
    NUMBER,
    TEXT,
    Refused,
    Types,
    check_columns,
    check_items,
    check_type,
    pair_in,
    read_each,
)
from shapetrace.events.model import Value
from shapetrace.events.value_rows import read_value, write_value

Kind = TypeVar("Kind")

Reader: TypeAlias = Callable[[str, Any], Any] | None
"""Makes a value, called by this name, of its JSON; None where the JSON is the value."""
Writer: TypeAlias = Callable[[Any], Any] | None
"""Makes JSON of a value; None where the value is its JSON."""

_EMPTY: Final = (None, ())


@dataclasses.dataclass(frozen=True, slots=True)
class _Form:
    """How the values of one type are sent."""

    types: Types
    """The JSON types that a value may have."""
    read_checked: Reader = None
    write: Writer = None
    largest: int = LARGEST
    """No whole number is as large as this, nor as far below zero."""

    def read(self, name: str, document: Any) -> Any:
        """The value of the JSON. Raises ``Refused``."""
        check_type(name, self.types, document, self.largest)
        return document if self.read_checked is None else self.read_checked(name, document)


class Table(Generic[Kind]):
    """The values of one dataclass as rows."""

    def __init__(self, kind: type[Kind]) -> None:
        self._kind = kind
        self._columns = [(field.name, _form_of(hint)) for field, hint in _fields_of(kind)]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self._columns)

    def write(self, value: Kind) -> list[Any]:
        """The row for a value."""
        return [
            getattr(value, name) if form.write is None else form.write(getattr(value, name))
            for name, form in self._columns
        ]

    def read(self, row: Any) -> Kind:
        """The value of a row. Raises ``Refused``."""
        check_columns(row, len(self._columns))
        values: list[Any] = []
        for (name, form), each in zip(self._columns, row, strict=True):
            # As ``form.read``, without another call for each column.
            check_type(name, form.types, each, form.largest)
            values.append(each if form.read_checked is None else form.read_checked(name, each))
        return self._kind(*values)


class Object(Generic[Kind]):
    """The values of one dataclass as JSON objects.

    Fields that are None, or empty where that is their default, are left out.
    """

    def __init__(self, kind: type[Kind]) -> None:
        self._kind = kind
        self._fields = [_Field.of(field, hint) for field, hint in _fields_of(kind)]

    def write(self, value: Kind) -> dict[str, Any]:
        """The object for a value."""
        document: dict[str, Any] = {}
        for field in self._fields:
            each = getattr(value, field.name)
            if not (each in _EMPTY and each == field.default):
                document[field.key] = None if each is None else field.write(each)
        return document

    def read(self, document: dict[str, Any], refused: list[str]) -> Kind:
        """The value that an object stands for.

        An item of a list that is wrong is left out, and a field that is wrong has its default; what
        is wrong is added to ``refused``. Raises ``Refused`` where a field without a default is
        missing or wrong.
        """
        values: dict[str, Any] = {}
        for field in self._fields:
            if field.key in document:
                each = document[field.key]
                try:
                    is_none = each is None and field.is_optional
                    values[field.name] = None if is_none else field.read(each, refused)
                except Refused as problem:
                    if field.is_required:
                        raise
                    refused.append(str(problem))
            elif field.is_required:
                raise Refused(f"{field.key} is missing")
        return self._kind(**values)


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """One field of an object."""

    name: str
    key: str
    default: Any
    is_required: bool
    is_optional: bool
    read: Callable[[Any, list[str]], Any]
    write: Callable[[Any], Any]

    @staticmethod
    def of(field: dataclasses.Field[Any], hint: Any) -> _Field:
        """The field of an object for that of a dataclass."""
        first, *rest = field.name.split("_")
        key = "".join([first, *map(str.capitalize, rest)])
        is_required = field.default is dataclasses.MISSING
        plain, is_optional = _without_none(hint)
        read, write = _ways(key, plain)
        return _Field(field.name, key, field.default, is_required, is_optional, read, write)


def _ways(key: str, plain: Any) -> tuple[Callable[[Any, list[str]], Any], Callable[[Any], Any]]:
    """How to read and to write a field of an object that is not None."""
    if get_origin(plain) is dict:  # Of texts to texts.

        def read_pairs(document: Any, refused: list[str]) -> Any:
            check_type(key, LIST, document)
            return dict(read_each(key, pair_in, document, refused))

        return read_pairs, lambda pairs: [list(each) for each in pairs.items()]
    if get_origin(plain) is tuple:
        item = _form_of(get_args(plain)[0])

        def read_items(document: Any, refused: list[str]) -> Any:
            check_type(key, LIST, document)
            return tuple(read_each(key, lambda row: item.read("it", row), document, refused))

        return read_items, _writer_of_items(item)
    if dataclasses.is_dataclass(plain):
        inner: Object[Any] = Object(plain)  # type: ignore[arg-type]  # a class, not an object

        def read_object(document: Any, refused: list[str]) -> Any:
            check_type(key, (dict,), document)
            return inner.read(document, refused)

        return read_object, inner.write
    form = _form_of(plain)
    write = form.write
    return lambda document, _: form.read(key, document), write or (lambda value: value)


def _fields_of(kind: type[Any]) -> list[tuple[dataclasses.Field[Any], Any]]:
    """The fields that are sent, with their annotations."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        (field, hints[field.name]) for field in dataclasses.fields(kind) if field.name != "extra"
    ]


def _without_none(hint: Any) -> tuple[Any, bool]:
    """The type without None, and whether that was in it."""
    if get_origin(hint) not in (Union, UnionType) or NoneType not in get_args(hint):
        return hint, False
    return reduce(or_, [each for each in get_args(hint) if each is not NoneType]), True


def _form_of(hint: Any) -> _Form:
    if hint == Value:
        return _Form(LIST, lambda name, row: read_value(row), write_value)
    plain, is_optional = _without_none(hint)
    if is_optional:
        return _optional(_form_of(plain))
    origin = get_origin(hint)
    if origin is Annotated:
        return _checked(_form_of(get_args(hint)[0]), get_args(hint)[1:])
    if origin is Literal:
        return _choice(get_args(hint))
    if origin in (tuple, frozenset):
        item = _form_of(get_args(hint)[0])
        read_items, write_items = _reader_of_items(item), _writer_of_items(item)
        if origin is tuple:
            return _Form(LIST, read_items, write_items)
        return _Form(
            LIST,
            lambda name, items: frozenset(read_items(name, items)),
            lambda items: write_items(sorted(items)),
        )
    if dataclasses.is_dataclass(hint):
        table: Table[Any] = Table(hint)  # type: ignore[arg-type]  # a class, not an object
        return _Form(LIST, lambda name, row: table.read(row), table.write)
    if hint not in _PLAIN:
        raise TypeError(f"no row has a column for {hint}")
    return _PLAIN[hint]


_PLAIN: Final[dict[Any, _Form]] = {
    str: _Form(TEXT),
    int: _Form(NUMBER),
    bool: _Form(FLAG),
    float: _Form(FIGURE, largest=LARGEST_FIGURE),
}


def _optional(form: _Form) -> _Form:
    read, write = form.read_checked, form.write
    return _Form(
        (*form.types, NoneType),
        None if read is None else lambda name, it: None if it is None else read(name, it),
        None if write is None else lambda it: None if it is None else write(it),
        form.largest,
    )


def _checked(form: _Form, checks: tuple[Callable[[str, Any], object], ...]) -> _Form:
    def read(name: str, document: Any) -> Any:
        value = document if form.read_checked is None else form.read_checked(name, document)
        for check in checks:
            check(name, value)
        return value

    return _Form(form.types, read, form.write, form.largest)


def _choice(choices: tuple[str, ...]) -> _Form:
    def read(name: str, text: str) -> str:
        if text not in choices:
            raise Refused(f"{name} is not one of {', '.join(choices)}")
        return text

    return _Form(TEXT, read)


def _reader_of_items(item: _Form) -> Callable[[str, Any], Any]:
    def read(name: str, items: Any) -> tuple[Any, ...]:
        check_items(name, item.types, items, item.largest)
        read_item = item.read_checked
        if read_item is None:
            return tuple(items)
        return tuple([read_item(f"an item of {name}", each) for each in items])

    return read


def _writer_of_items(item: _Form) -> Callable[[Any], Any]:
    write = item.write
    return list if write is None else lambda items: [write(each) for each in items]
