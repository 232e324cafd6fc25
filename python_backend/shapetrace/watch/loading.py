"""Replaces the code of modules between loading and running them.

The loaders' methods that return a module's code are wrapped. The import system and `runpy` call
them before the code runs, so none of our frames is on the stack while it runs.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import runpy
import zipimport
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, Final, Protocol, TypeAlias, cast

from shapetrace._asynchronous import clean, is_asynchronous
from shapetrace._exception_table import catching_everywhere

Prepare: TypeAlias = Callable[[CodeType, str, Callable[[], str | None]], CodeType]
"""Takes a module's code, its name and a reader of its source; returns the code to run. Never
raises."""


class _Loader(Protocol):
    def get_source(self, name: str) -> str | None:
        """The text of a module."""


class Loading:
    """Wraps loaders from ``begin`` to ``end``."""

    def __init__(self, prepare: Prepare, runners: Iterable[Any] = ()) -> None:
        """``runners`` are modules that run scripts as ``runpy`` does."""
        self._prepare: Final = prepare
        self._runners: Final = (runpy, *runners)
        self._undo: Final[list[Callable[[], None]]] = []

    def begin(self) -> None:
        """Wrap the loaders."""
        # The base class of all loaders for files.
        source_loader: Any = importlib.machinery.SourceFileLoader.__mro__[2]
        self._replace(source_loader, "get_code", self._of_loader)
        self._replace(zipimport.zipimporter, "get_code", self._of_loader)
        # `run_path` runs this, and so does a spawned child process.
        for runner in self._runners:
            if hasattr(runner, "_get_code_from_file"):
                self._replace(runner, "_get_code_from_file", self._of_file)

    def end(self) -> None:
        """Restore the loaders."""
        while self._undo:
            self._undo.pop()()

    def _replace(
        self, owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        original = getattr(owner, name)
        stand_in = functools.wraps(original)(wrap(original))
        setattr(owner, name, stand_in)

        def put_back() -> None:
            if getattr(owner, name) is stand_in:
                setattr(owner, name, original)

        self._undo.append(put_back)

    def _of_loader(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @catching_everywhere
        def get_code(self_: _Loader, fullname: str) -> CodeType | None:
            try:
                code = original(self_, fullname)
                if code is None:
                    return None
                return self._prepare(code, fullname, lambda: self_.get_source(fullname))
            except BaseException as error:
                # A bare raise does not add this frame again.
                clean(error)
                raise

        return get_code

    def _of_file(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @catching_everywhere
        def get_code_from_file(*arguments: Any, **keywords: Any) -> Any:
            try:
                result = original(*arguments, **keywords)
                # Before Python 3.12 its file's name comes with it.
                code = cast(CodeType, result[0] if isinstance(result, tuple) else result)
                file = code.co_filename
                code = self._prepare(code, "__main__", lambda: text_of(file))
                return (code, *result[1:]) if isinstance(result, tuple) else code
            except BaseException as error:
                clean(error)
                raise

        return get_code_from_file


def text_of(file: str) -> str | None:
    """The text of a Python file; None if it is compiled or gone."""
    try:
        with open(file, "rb") as stream:
            return importlib.util.decode_source(stream.read())
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        if is_asynchronous(error):
            raise
        return None
