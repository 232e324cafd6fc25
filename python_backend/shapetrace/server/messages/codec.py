"""Messages from and to JSON, by the dataclasses that declare them.

The names of fields are in camel case there. Nothing is converted on the way in: neither ``"3"`` nor
``true`` is a number. Keys that a dataclass does not have are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from cattrs import ClassValidationError, Converter, IterableValidationError
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from shapetrace.server.messages.declarations import Unread

T = TypeVar("T")


class MessageError(ValueError):
    """JSON that is not what a message must have. The text is one line and names the keys."""


class _Wrong(ValueError):
    """A value that its type does not allow. The text says what it must be."""


def structure(given: object, kind: type[T]) -> T:
    """The value that JSON stands for; raises MessageError where it is none of that type."""
    try:
        return _CONVERTER.structure(given, kind)
    except (ClassValidationError, IterableValidationError, _Wrong) as error:
        raise MessageError("; ".join(_problems(error, ""))) from error


def unstructure(message: object) -> Any:
    """A message as JSON has it."""
    return _CONVERTER.unstructure(message)


def camel_case(name: str) -> str:
    """The key in JSON for the name of a field."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _problems(error: Exception, path: str) -> Iterator[str]:
    """Each problem, with the key where it is."""
    match error:
        case ClassValidationError():
            within, beside = error.group_exceptions()
            for inner, note in within:
                key = camel_case(note.name)
                yield from _problems(inner, f"{path}.{key}" if path else key)
            for inner in beside:
                yield from _problems(inner, path)
        case IterableValidationError():
            for inner, index in error.group_exceptions()[0]:
                yield from _problems(inner, f"{path}[{index.index}]")
        case KeyError():
            yield f"{path} must be given"
        case _Wrong():
            yield f"{path} {error}".strip()
        case _:
            yield f"{path}: {error}" if path else str(error)


def _exactly(kind: type, expected: str) -> Callable[[object, object], object]:
    """Reads what is of one type already, and of none that derives from it."""

    def read(given: object, _: object) -> object:
        if type(given) is not kind:
            raise _Wrong(f"must be {expected}")
        return given

    return read


def _restricted(kind: Any) -> Callable[[object, object], object]:
    """Reads a text or number that an annotation restricts."""
    base, restriction = get_args(kind)[:2]
    if isinstance(restriction, Unread):
        return lambda given, _: given

    def read(given: object, _: object) -> object:
        if type(given) is not base or not restriction.allows(given):
            raise _Wrong(f"must be {restriction.expected}")
        return given

    return read


def _one_of(kind: Any) -> Callable[[object, object], object]:
    """Reads one of some texts or numbers."""
    choices = get_args(kind)

    def read(given: object, _: object) -> object:
        # By type: true is 1 to Python.
        if not any(type(given) is type(each) and given == each for each in choices):
            raise _Wrong(f"must be one of {', '.join(map(str, choices))}")
        return given

    return read


def _list(kind: Any, converter: Any) -> Callable[[object, object], object]:
    """Reads a list: cattrs itself takes a text for a list of characters."""
    read_items = homogenous_tuple_structure_factory(kind, converter)

    def read(given: object, _: object) -> object:
        if not isinstance(given, list):
            raise _Wrong("must be a list")
        return read_items(given, kind)

    return read


def _object(kind: Any, converter: Any) -> Callable[[object, object], object]:
    """Reads an object."""
    read_fields = make_dict_structure_fn(kind, converter, **_keys(kind))

    def read(given: object, _: object) -> object:
        if not isinstance(given, Mapping):
            raise _Wrong("must be an object")
        return read_fields(given, kind)

    return read


def _written(kind: Any, converter: Any) -> Callable[[Any], dict[str, Any]]:
    """Writes an object."""
    return make_dict_unstructure_fn(kind, converter, **_keys(kind))


def _keys(kind: Any) -> dict[str, Any]:
    return {each.name: override(rename=camel_case(each.name)) for each in fields(kind)}


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[1:] == (...,)


def _converter() -> Converter:
    converter = Converter(unstruct_collection_overrides={tuple: list})
    converter.register_structure_hook(str, _exactly(str, "a text"))
    converter.register_structure_hook(int, _exactly(int, "a whole number"))
    converter.register_structure_hook(bool, _exactly(bool, "true or false"))
    for origin, read in ((Literal, _one_of), (Annotated, _restricted)):
        converter.register_structure_hook_factory(_comes_from(origin), read)
    converter.register_structure_hook_factory(_is_list, _list)
    converter.register_structure_hook_factory(is_dataclass, _object)
    converter.register_unstructure_hook_factory(is_dataclass, _written)
    return converter


def _comes_from(origin: object) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) is origin


_CONVERTER: Final = _converter()
