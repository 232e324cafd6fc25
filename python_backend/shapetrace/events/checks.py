"""What may stand in the columns of a row, and what is said of a row in which something else does.

Rows come from another process, and are not trusted: what was let in once would make every later
answer fail. So each is looked at where it enters. That is cheap, as nearly all rows of a kind have
values of the same types in their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, TypeVar

Types: TypeAlias = tuple[type, ...]

Read = TypeVar("Read")

TEXT: Final[Types] = (str,)
TEXT_OR_NONE: Final[Types] = (str, type(None))
FLAG: Final[Types] = (bool,)
NUMBER: Final[Types] = (int,)
NUMBER_OR_NONE: Final[Types] = (int, type(None))
NUMBER_OR_TEXT: Final[Types] = (int, str)
FIGURE: Final[Types] = (int, float)
FIGURE_OR_TEXT: Final[Types] = (int, float, str)
FIGURE_OR_NONE: Final[Types] = (int, float, type(None))
LIST: Final[Types] = (list, tuple)
LIST_OR_NONE: Final[Types] = (list, tuple, type(None))

LARGEST: Final = 2**63
"""No number of a recording is as large as this, nor as far below zero."""

LARGEST_FIGURE: Final = 2**65
"""No whole number that a tensor holds is as large as this, nor as far below zero."""

LAST_LINE: Final = 2**31
"""The largest line or column that an editor can count."""

DEEPEST: Final = 16
"""How deep values may lie in one another; a recorder stops long before."""

_MOST_KNOWN: Final = 256
"""Ways in which the columns of one kind of row can be filled that are remembered."""

_NAMES: Final[dict[type, str]] = {
    type(None): "null",
    bool: "true or false",
    int: "a whole number",
    float: "a decimal number",
    str: "text",
    list: "a list",
    dict: "an object",
}


class Refused(Exception):
    """A row that no recorder sends; the message says what is wrong with it."""


class Columns:
    """The columns of one kind of row, by name, with the types that each accepts."""

    def __init__(self, **columns: Types) -> None:
        self._columns = columns
        self.known: set[tuple[type, ...]] = set()
        """Types of rows that were found to be right."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(self._columns)

    def check(self, row: Any) -> None:
        """Raise ``Refused`` for a row in which something is of a type that it cannot be.

        How large numbers are is looked at as well, but only for the first rows that look like this:
        what must not be too large in any row is to be asked of ``limited``.
        """
        if type(row) not in LIST:
            raise Refused(_mismatch("it", LIST, row))
        kinds = tuple(map(type, row))
        if kinds not in self.known:
            self.check_closely(row)
            if len(self.known) < _MOST_KNOWN:
                self.known.add(kinds)

    def check_closely(self, row: Any) -> None:
        """Raise ``Refused`` for that, and for numbers that are too large."""
        check_columns(row, len(self._columns))
        for (name, types), value in zip(self._columns.items(), row, strict=True):
            check_type(name, types, value)


_PAIR = Columns(first=TEXT, second=TEXT)


def check_type(name: str, types: Types, value: object, largest: int = LARGEST) -> None:
    """Raise ``Refused`` for a value of another type, or a number that is too large."""
    # By type and not isinstance: true is a number to Python.
    kind = type(value)
    if kind not in types:
        raise Refused(_mismatch(name, types, value))
    if kind is int and not -largest < value < largest:  # type: ignore[operator]
        raise Refused(f"{name} is too large")


def check_columns(row: Any, number: int) -> None:
    """Raise ``Refused`` for what is no row, or has another number of columns."""
    if type(row) not in LIST:
        raise Refused(_mismatch("it", LIST, row))
    if len(row) != number:
        raise Refused(f"it has {len(row)} columns, not {number}")


def check_items(name: str, types: Types, values: Iterable[object], largest: int = LARGEST) -> None:
    """Raise it for an item of a list."""
    called = f"an item of {name}"
    for value in values:
        check_type(called, types, value, largest)


def check_path(name: str, text: str) -> None:
    """Raise it for a text that no system can look for a file by."""
    try:
        encoded = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise Refused(f"{name} is no path")


def check_place(line: int, *others: int | None) -> None:
    """Raise it for lines and columns that no source has."""
    for value in (line, *others):
        if value is not None and not 0 <= value < LAST_LINE:
            raise Refused("its place is in no source")


def read_each(
    kind: str, read: Callable[[Any], Read], rows: object, refused: list[str]
) -> list[Read]:
    """The readable ones of some rows; problems of the others are added to ``refused``."""
    found: list[Read] = []
    if not isinstance(rows, list | tuple):
        refused.append(f"{kind} is no list of rows")
        return found
    for row in rows:
        try:
            found.append(read(row))
        except KeyError as error:
            refused.append(f"{_title(kind, row)}: nothing was sent with number {error}")
        except (Refused, TypeError) as error:  # A list in the place of a number is a TypeError.
            refused.append(f"{_title(kind, row)}: {error}")
    return found


def pair_in(row: Any) -> tuple[str, str]:
    """A row of two texts."""
    _PAIR.check_closely(row)
    first, second = row
    return first, second


def _title(kind: str, row: Any) -> str:
    number = row[0] if isinstance(row, list | tuple) and row else None
    return f"a row of {kind}" + (f" ({number!r:.60})" if isinstance(number, int | str) else "")


def _mismatch(name: str, types: Types, value: object) -> str:
    *most, last = dict.fromkeys(_NAMES.get(kind, "a list") for kind in types)
    expected = f"{', '.join(most)} or {last}" if most else last
    found = _NAMES.get(type(value), type(value).__name__)
    return f"{name} should be {expected}, not {found}"
