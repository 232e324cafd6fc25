"""Reading the parameters of a message, whoever may have sent it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MessageError(ValueError):
    """Parameters that are not what the message is to have."""


def object_of(params: object) -> Mapping[str, Any]:
    """The parameters of a message, which must be an object."""
    if not isinstance(params, Mapping):
        raise MessageError("the parameters must be an object")
    return params


def text_in(given: Mapping[str, Any], key: str) -> str:
    """A text that is not empty."""
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise MessageError(f"{key} must be a text")
    return value


def any_text_in(given: Mapping[str, Any], key: str) -> str:
    """A text that may be empty."""
    return "" if given.get(key) in ("", None) else text_in(given, key)


def number_in(given: Mapping[str, Any], key: str) -> int:
    """A whole number that is not negative; 0 where it is left out."""
    value = optional_number_in(given, key) or 0
    if value < 0:
        raise MessageError(f"{key} must not be negative")
    return value


def numbers_in(given: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """Some whole numbers."""
    value = given.get(key)
    if not isinstance(value, list) or not all(type(each) is int for each in value):
        raise MessageError(f"{key} must be a list of whole numbers")
    return tuple(value)


def texts_in(given: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Some texts; none where they are left out."""
    value = given.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise MessageError(f"{key} must be a list of texts")
    return tuple(value)


def list_in(given: Mapping[str, Any], key: str) -> list[Any]:
    """A list; an empty one where it is left out."""
    value = given.get(key)
    if value is not None and not isinstance(value, list):
        raise MessageError(f"{key} must be a list")
    return value or []


def optional_text_in(given: Mapping[str, Any], key: str) -> str | None:
    """A text, or None where it is left out."""
    return None if given.get(key) is None else text_in(given, key)


def optional_number_in(given: Mapping[str, Any], key: str) -> int | None:
    """A whole number, or None where it is left out."""
    value = given.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise MessageError(f"{key} must be a whole number")
    return value
