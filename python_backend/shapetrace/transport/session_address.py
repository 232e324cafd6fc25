"""Where a program's agent finds its language server: the variable ``SHAPETRACE_SESSION``.

{"session": "c2a7", "port": 40123, "token": "9f0c...", "mode": "forwardPass",
 "afterPass": "stop", "level": "torch", "showsVariables": true, "folder": "/home/me/project",
 "captures": ["layers.*.attn.forward.scores"], "watches": ["video", "transform:mask"]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast, get_args

VARIABLE = "SHAPETRACE_SESSION"
"""The environment variable that the extension sets."""

LONGEST_NAME = 200
"""Characters in the name of a session, or in its token."""
LONGEST_PATH = 4096
MOST_TEXTS = 200
LONGEST_TEXT = 400
"""Characters in a path of values that are to be captured, or in a name that is to be watched."""

Mode: TypeAlias = Literal["debug", "forwardPass"]
AfterPass: TypeAlias = Literal["stop", "continue"]
Level: TypeAlias = Literal["torch", "aten"]

_parse = json.JSONDecoder().decode


@dataclass(frozen=True, slots=True)
class SessionAddress:
    """One debug session: where its server listens, and what is asked of the agent."""

    session: str
    port: int
    token: str = field(repr=False)
    mode: Mode = "debug"
    after_pass: AfterPass = "stop"
    """Only of meaning when the mode is forwardPass."""
    level: Level = "torch"
    shows_variables: bool = True
    """Whether values at a stop are to look as we show them."""
    folder: str = ""
    """The folder that the editor has open, below which its links may begin; empty for none."""
    captures: tuple[str, ...] = ()
    """The paths of values that are to be captured."""
    watches: tuple[str, ...] = ()
    """The variables that are to be watched."""


def read_address(text: str | None) -> tuple[SessionAddress | None, str]:
    """The address in the variable's value, and what is wrong with the value, if anything is.

    Without session, port or token there is no address. An option that is not known is told, and
    its default used.
    """
    if not text or text.isspace():
        return None, f"{VARIABLE} is not set"
    try:
        value = _parse(text)
    except (ValueError, RecursionError):
        return None, f"{VARIABLE} is not JSON"
    if not isinstance(value, dict):
        return None, f"{VARIABLE} is not a JSON object"
    session, port, token = value.get("session"), value.get("port"), value.get("token")
    for key, name in (("session", session), ("token", token)):
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            return None, f"{VARIABLE}: {key} is missing or no short text"
    if type(port) is not int or not 0 < port < 65536:
        return None, f"{VARIABLE}: port is missing or no port number"
    problems: list[str] = []
    address = SessionAddress(
        cast(str, session),
        port,
        cast(str, token),
        _choice(value, "mode", get_args(Mode), problems),
        _choice(value, "afterPass", get_args(AfterPass), problems),
        _choice(value, "level", get_args(Level), problems),
        _flag(value, "showsVariables", problems),
        _path(value, "folder", problems),
        _texts(value, "captures", problems, "paths"),
        _texts(value, "watches", problems, "variables"),
    )
    return address, "; ".join(problems)


def write_address(address: SessionAddress) -> str:
    """The variable's value for an address."""
    return json.dumps(
        {
            "session": address.session,
            "port": address.port,
            "token": address.token,
            "mode": address.mode,
            "afterPass": address.after_pass,
            "level": address.level,
            "showsVariables": address.shows_variables,
            "folder": address.folder,
            "captures": list(address.captures),
            "watches": list(address.watches),
        }
    )


def _choice(value: dict[str, Any], key: str, known: tuple[str, ...], problems: list[str]) -> Any:
    """The text under a key; the first of the known ones if it is missing or unknown."""
    chosen = value.get(key, known[0])
    if chosen in known:
        return chosen
    problems.append(f"{VARIABLE}: {key} is {chosen!r:.40}, not one of {', '.join(known)}")
    return known[0]


def _flag(value: dict[str, Any], key: str, problems: list[str]) -> bool:
    """The boolean under a key; true if it is missing."""
    chosen = value.get(key, True)
    if type(chosen) is bool:
        return chosen
    problems.append(f"{VARIABLE}: {key} is {chosen!r:.40}, not true or false")
    return True


def _path(value: dict[str, Any], key: str, problems: list[str]) -> str:
    """The path under a key; empty if it is missing."""
    chosen = value.get(key, "")
    if isinstance(chosen, str) and len(chosen) <= LONGEST_PATH:
        return chosen
    problems.append(f"{VARIABLE}: {key} is {chosen!r:.40}, not a path")
    return ""


def _texts(value: dict[str, Any], key: str, problems: list[str], what: str) -> tuple[str, ...]:
    """The list of short texts under a key; empty if it is missing."""
    chosen = value.get(key, [])
    is_list = isinstance(chosen, list) and len(chosen) <= MOST_TEXTS
    if is_list and all(isinstance(it, str) and 0 < len(it) <= LONGEST_TEXT for it in chosen):
        return tuple(chosen)
    problems.append(f"{VARIABLE}: {key} is {chosen!r:.40}, not a list of {what}")
    return ()
