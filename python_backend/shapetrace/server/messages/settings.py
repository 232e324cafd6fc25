"""The start-up options from the extension, and the user's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeAlias

from shapetrace.server.messages.codec import MessageError, camel_case, structure
from shapetrace.server.messages.declarations import AtLeast, NonEmptyStr, Unread

HintPosition: TypeAlias = Literal["lineEnd", "afterName", "off"]
"""Where hints are shown in a line."""


@dataclass(frozen=True, slots=True)
class HintOptions:
    """The settings below ``shapetrace.hints``."""

    position: HintPosition = "lineEnd"
    maximum_length: Annotated[int, AtLeast(8)] = 43
    """In characters. VS Code itself cuts at the default; fewer than eight would say nothing."""
    parameters: bool = True


@dataclass(frozen=True, slots=True)
class CodeLensOptions:
    """The settings below ``shapetrace.codeLens``."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class HoverOptions:
    """The settings below ``shapetrace.hover``."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """The settings that the server needs."""

    hints: HintOptions = field(default_factory=HintOptions)
    code_lens: CodeLensOptions = field(default_factory=CodeLensOptions)
    hover: HoverOptions = field(default_factory=HoverOptions)


@dataclass(frozen=True, slots=True)
class Initialization:
    """The ``initializationOptions`` of the language server."""

    storage: NonEmptyStr | None = None
    """A folder where the server keeps what programs sent, in case it is restarted."""
    settings: Annotated[Any, Unread(Options)] = None
    captures: tuple[str, ...] = ()
    """The paths of the values to capture."""
    watches: tuple[str, ...] = ()
    """The variables to watch."""


def read_options(settings: object) -> tuple[Options, list[str]]:
    """The user's settings, and a message for each wrong value, of which the default is used."""
    messages: list[str] = []
    return _read(Options, settings, "shapetrace", messages), messages


def _read(kind: Any, given: object, name: str, messages: list[str]) -> Any:
    """A section of the settings; value by value, as one that is wrong must not spoil the others."""
    defaults = kind()
    if given is None:
        return defaults
    if not isinstance(given, Mapping):
        messages.append(f"{name} must be an object; the defaults are used")
        return defaults
    values: dict[str, Any] = {}
    for each in fields(kind):
        type_: Any = each.type
        key = camel_case(each.name)
        full_name = f"{name}.{key}"
        if is_dataclass(type_):
            values[each.name] = _read(type_, given.get(key), full_name, messages)
        elif key in given:
            try:
                values[each.name] = structure(given[key], type_)
            except MessageError as error:
                default = getattr(defaults, each.name)
                messages.append(f"{full_name} {error}; {_text(default)} is used")
    return kind(**values)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
