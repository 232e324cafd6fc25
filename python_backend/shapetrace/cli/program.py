"""Running a program as ``python script.py`` and ``python -m module`` would.

Everything the program can see of how it was started is as python makes it: ``sys.argv``,
``sys.path[0]``, a ``__main__`` module of its own, the traceback of its error, its exit code. Only
the frames of this runner, below its own on the stack, are not.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, TypeAlias

from shapetrace._errors import ProgramError
from shapetrace.cli.start_state import fresh_main, set_first_path, set_original_arguments
from shapetrace.process.trimmed_tracebacks import without_first_frame

Prepare: TypeAlias = Callable[[CodeType, str, Callable[[], str | None]], CodeType]
"""Given a module's code, its name and how to read its source: the code to be run."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program that the user named on the command line, with its arguments."""

    name: str
    """A file, a directory or archive with a ``__main__.py`` in it, or a dotted module name."""
    arguments: tuple[str, ...] = ()
    is_module: bool = False
    """Whether it was named by ``-m``."""

    @property
    def command_line(self) -> tuple[str, ...]:
        """The words after ``python`` that run it."""
        name = ("-m", self.name) if self.is_module else (self.name,)
        return (*name, *self.arguments)


class PreparedProgram:
    """A program that can be read; nothing of it has run."""

    def __init__(self, program: Program, prepare: Prepare | None = None) -> None:
        self._program = program
        self._prepare = prepare
        self._file = _absolute(program.name)
        self._source: bytes | None = None
        if not program.is_module:
            self._source = _read(program.name, self._file)

    def run(self) -> BaseException | None:
        """Run it to its end, and return the error that ended it; SystemExit is raised instead."""
        set_original_arguments(self._program.command_line)
        if self._source is None:
            return self._run_by_runpy()
        return self._run_script(self._source)

    def _run_script(self, source: bytes) -> BaseException | None:
        program, file = self._program, self._file
        self._source = None
        sys.argv = [program.name, *program.arguments]
        set_first_path(os.path.dirname(os.path.realpath(file)))
        is_compiled = file.endswith(".pyc") or source.startswith(importlib.util.MAGIC_NUMBER)
        if not is_compiled:
            _leave_undecodable_to_python(source, program)
        loader = (
            importlib.machinery.SourcelessFileLoader("__main__", file)
            if is_compiled
            else importlib.machinery.SourceFileLoader("__main__", file)
        )
        namespace = fresh_main(loader, file)
        try:
            if is_compiled:
                code = pkgutil.read_code(io.BytesIO(source))
                if code is None:
                    raise RuntimeError("Bad magic number in .pyc file")
            else:
                # Here and in no function of its own: an error in it has no frame at all.
                code = compile(source, file, "exec", dont_inherit=True)
                if self._prepare is not None:
                    code = self._prepare(code, "__main__", lambda: _decoded(source))
            exec(code, namespace)
        except SystemExit:
            raise
        except BaseException as error:
            return without_first_frame(error)
        return None

    def _run_by_runpy(self) -> BaseException | None:
        program = self._program
        if program.is_module:
            sys.argv = ["-m", *program.arguments]
            set_first_path(_working_directory())
        else:
            sys.argv = [program.name, *program.arguments]
            set_first_path(self._file, even_when_safe=True)
        fresh_main(importlib.machinery.BuiltinImporter)
        # What python itself calls for -m, so that these programs have the same frames below them.
        run: Any = runpy._run_module_as_main  # type: ignore[attr-defined]
        try:
            run(program.name if program.is_module else "__main__", program.is_module)
        except SystemExit as end:
            if _was_raised_in(end, run.__code__):
                raise ProgramError(str(end.code).removeprefix(f"{sys.executable}: ")) from None
            raise
        except BaseException as error:
            return without_first_frame(error)
        return None


def _read(name: str, file: str) -> bytes | None:
    """The source of a script; None for a directory or an archive."""
    if name == "-":
        raise ProgramError("a program from standard input cannot be traced; name a file")
    try:
        if pkgutil.get_importer(file) is not None:
            return None
        with open(file, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise ProgramError(
            f"can't open file {file!r}: [Errno {error.errno}] {error.strerror}"
        ) from None
    except ValueError as error:
        raise ProgramError(f"can't open file {file!r}: {error}") from None


def _leave_undecodable_to_python(source: bytes, program: Program) -> None:
    """Let python itself report a source that is no text, where it has words of its own for it.

    Compiling from a file and from bytes word these errors differently. Nothing of such a program
    can run, so nothing is lost by handing it over.
    """
    if not os.path.isfile(program.name):
        # A pipe, which cannot be read again.
        return
    try:
        importlib.util.decode_source(source)
        if b"\0" not in source:
            return
    except (SyntaxError, UnicodeDecodeError):
        pass
    import subprocess

    # Private, and how Python's own libraries start another Python with the options of this one.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    raise SystemExit(subprocess.call([sys.executable, *flags, *program.command_line]))


def _decoded(source: bytes) -> str:
    """The text of a source that could be compiled."""
    return importlib.util.decode_source(source)


def _was_raised_in(error: BaseException, code: CodeType) -> bool:
    """Return whether the function that was called itself raised this, and nothing it called."""
    own = error.__traceback__
    called = own.tb_next if own is not None else None
    return called is not None and called.tb_next is None and called.tb_frame.f_code is code


def _absolute(path: str) -> str:
    """The path as python has it in ``__file__``: absolute, but otherwise as it was given."""
    directory = _working_directory()
    if os.path.isabs(path) or directory is None:
        return path
    if os.name == "nt":
        return os.path.abspath(path)
    return os.path.join(directory, path)


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        # It has been deleted.
        return None
