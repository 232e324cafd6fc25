"""What the user can set, with defaults. A value that makes no sense is told and not used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

Position: TypeAlias = Literal["lineEnd", "afterName", "off"]

_POSITIONS = ("lineEnd", "afterName", "off")

_SHORTEST = 8
"""Below this nothing could be said."""


@dataclass(frozen=True, slots=True)
class HintOptions:
    """Settings below ``shapetrace.hints``."""

    position: Position = "lineEnd"
    maximum_length: int = 43
    """In characters; what VS Code itself cuts at by default."""
    parameters: bool = True


@dataclass(frozen=True, slots=True)
class CodeLensOptions:
    """Settings below ``shapetrace.codeLens``."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class HoverOptions:
    """Settings below ``shapetrace.hover``."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """All settings that matter to the server."""

    hints: HintOptions = field(default_factory=HintOptions)
    code_lens: CodeLensOptions = field(default_factory=CodeLensOptions)
    hover: HoverOptions = field(default_factory=HoverOptions)


def read_options(settings: object) -> tuple[Options, list[str]]:
    """The options that a settings object stands for, and a message for each bad value in it."""
    messages: list[str] = []
    sections = _section(settings, "", messages)
    options = Options(
        hints=HintOptions(**_values(HintOptions(), sections.get("hints"), "hints", messages)),
        code_lens=CodeLensOptions(
            **_values(CodeLensOptions(), sections.get("codeLens"), "codeLens", messages)
        ),
        hover=HoverOptions(**_values(HoverOptions(), sections.get("hover"), "hover", messages)),
    )
    return options, messages


def _section(value: object, name: str, messages: list[str]) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        messages.append(f"shapetrace{name and '.'}{name} must be an object; the defaults are used")
        return {}
    return value


def _values(
    defaults: HintOptions | CodeLensOptions | HoverOptions,
    given: object,
    name: str,
    messages: list[str],
) -> dict[str, Any]:
    section = _section(given, name, messages)
    values: dict[str, Any] = {}
    for each in fields(defaults):
        default = getattr(defaults, each.name)
        key = _camel_case(each.name)
        value = section.get(key, default)
        wish = _wish(key, default, value)
        if wish:
            messages.append(f"shapetrace.{name}.{key} must be {wish}; {_text(default)} is used")
            value = default
        values[each.name] = value
    return values


def _wish(key: str, default: object, value: object) -> str:
    """What a value should have been; empty where it is right."""
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, int):
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= _SHORTEST
        return "" if fits else f"a whole number from {_SHORTEST} on"
    return "" if value in _POSITIONS else "one of " + ", ".join(_POSITIONS)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
