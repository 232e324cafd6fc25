"""Where something happened, in a few characters: ``model.py:41``."""

from __future__ import annotations

import re

from shapetrace.views.styled import Span, cells, cut_middle, printable

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_STANDARD_LIBRARY = re.compile(
    r"[/\\](?:lib(?:64)?[/\\]python3\.\d+t?|Python3\d+[/\\]Lib)[/\\]|^<frozen "
)
_COMPREHENSION = re.compile(r"(?:\.<locals>\.<(?:listcomp|setcomp|dictcomp|genexpr)>)+\Z")


def short_path(file: str, base: str | None) -> str:
    """A file relative to ``base`` when below it, else its last two components."""
    if file.startswith("<"):
        return printable(file)
    windows = "\\" in file and "/" not in file
    separator = "\\" if windows else "/"
    if base:
        folder = base.rstrip("\\/") + separator
        if file.startswith(folder) and len(file) > len(folder):
            return printable(file[len(folder) :])
    return printable(separator.join(file.split(separator)[-2:]).lstrip(separator))


def installed_package(file: str) -> str | None:
    """The package that a file was installed with: ``transformers``."""
    found = _INSTALLED.search(file)
    return None if found is None else found[1].removesuffix(".py")


def is_library(file: str) -> bool:
    """Return whether a file is an installed package's, or part of Python itself."""
    return installed_package(file) is not None or is_standard_library(file)


def is_standard_library(file: str) -> bool:
    """Return whether a file is part of Python itself."""
    return installed_package(file) is None and _STANDARD_LIBRARY.search(file) is not None


def place_text(file: str | None, line: int | None, base: str | None) -> str:
    """``model.py:41``; empty where the place is not known."""
    if file is None:
        return ""
    path = short_path(file, base)
    return path if line is None else f"{path}:{line}"


def function_text(qualified_name: str) -> str:
    """A function's name for reading: ``Net.forward`` also for a comprehension in it."""
    name = _COMPREHENSION.sub("", qualified_name)
    return printable(name.replace(".<locals>.", "."))


def is_comprehension(qualified_name: str) -> bool:
    """Return whether a function is a comprehension, which older Pythons run as one."""
    return _COMPREHENSION.search(qualified_name) is not None


def place_spans(
    file: str | None, line: int | None, function: str | None, base: str | None, width: int
) -> tuple[Span, ...]:
    """A place for the right edge of a row: the function too if the width allows, else cut."""
    place = place_text(file, line, base)
    if not place:
        return ()
    if function and cells(function_text(function)) + 2 + cells(place) <= width:
        return ((f"{function_text(function)}  ", "detail"), (place, "location"))
    return ((cut_middle(place, width), "location"),)
