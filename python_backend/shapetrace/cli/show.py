"""``shapetrace show``: shows a trace file, or a file of captured values."""

from __future__ import annotations

import argparse
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from shapetrace._files import descriptor_of
from shapetrace.cli.common_options import add_view_options, input_file, view_choice
from shapetrace.cli.terminal import Terminal, ViewChoice

if TYPE_CHECKING:
    from shapetrace.hdf5.journal import Left

_COMMAND = "python -m shapetrace"

_HDF5 = b"\x89HDF\r\n\x1a\n"
"""The first bytes of every HDF5 file."""

EXAMPLES = """\
examples:
  python -m shapetrace show run.json
  python -m shapetrace show --view listing --width 200 run.json
  python -m shapetrace show --view markdown run.json > shapes.md
  python -m shapetrace show run.h5"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser(
        "show",
        help="show a trace file, or captured values",
        description="Show a trace written by `shapetrace run -o FILE` or `trace.save(FILE)`,\n"
        "or the content of an HDF5 file of captured values.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        type=input_file,
        metavar="FILE",
        help="the trace file or HDF5 file; - for stdin",
    )
    parser.add_argument(
        "--recover",
        action="store_true",
        help="if a program was killed while it wrote the file, complete that write first; without "
        "this option, the file is never changed",
    )
    add_view_options(parser.add_argument_group("how it is shown"), may_be_none=False)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    terminal, choice = Terminal(), view_choice(arguments)
    path: str = arguments.file
    has_recovered = not arguments.recover or _recover(path, terminal)
    _show(path, terminal, choice)
    if not has_recovered:
        terminal.note(f"{path}: there is nothing to recover")
    return 0


def _show(path: str, terminal: Terminal, choice: ViewChoice) -> None:
    from shapetrace.events import codec

    if _is_shared_name(path):
        _show_captured(path, None, terminal, choice)
        return
    with codec.opened(path) as stream:
        # Read once: of a pipe nothing can be read again.
        beginning = codec.read_all(stream, path, len(_HDF5))
        if beginning == _HDF5:
            place, content = _place_of(path, stream), None
            if place is None:
                place, content = path, beginning + codec.read_all(stream, path)
            _show_captured(place, content, terminal, choice)
            return
        trace = codec.load_stream(stream, path, beginning)
    terminal.show(trace, choice)


def _is_shared_name(path: str) -> bool:
    """Return whether there is no such file, but files of single ranks that share this name."""
    if os.path.lexists(path) or not path.isprintable():
        return False
    from shapetrace._errors import CaptureFileError
    from shapetrace.hdf5.shards import shards_of

    if shards_of(path):
        return True
    if path.endswith((".h5", ".hdf5")):
        raise CaptureFileError(
            f"there is no file {path}; name a file that `shapetrace capture -o FILE` or "
            "H5PYSaverCallback wrote"
        )
    return False


def _place_of(path: str, stream: BinaryIO) -> str | None:
    """A path by which another process can read this file; None for a pipe."""
    here = os.fstat(stream.fileno())
    if not stat.S_ISREG(here.st_mode):
        return None
    if descriptor_of(path) is None:
        return path
    place = os.path.realpath(path)
    try:
        return place if os.path.samestat(os.stat(place), here) else None
    except OSError:
        return None  # It has been deleted.


def _show_captured(
    path: str, content: bytes | None, terminal: Terminal, choice: ViewChoice
) -> None:
    from shapetrace._errors import CaptureFileError
    from shapetrace.hdf5.journal import Left, journal_of
    from shapetrace.hdf5.reader_process import summary_of

    if choice.view != "tree":
        raise CaptureFileError(
            f"{path} contains captured values; there is no view {choice.view!r} of these"
        )
    left = {} if content is not None else _left_beside(path)
    unfinished = [file for file, what in left.items() if what is Left.UNFINISHED]
    advice = f"`{_COMMAND} show --recover {path}` completes the write of a program that was killed"
    try:
        summary = summary_of(path, content)
    except CaptureFileError as error:
        raise CaptureFileError(f"{error}; {advice}" if unfinished else str(error)) from None
    terminal.show_captured(summary, choice)
    if unfinished:
        terminal.note(f"{path} may lack its last gather; {advice}")
    for file, what in left.items():
        if what is Left.FOREIGN:
            terminal.note(
                f"{journal_of(file)} was left alone: it is damaged, or not the journal of this file"
            )


def _left_beside(path: str) -> dict[str, Left]:
    """What is beside a file of captured values, and those of single ranks that it shows."""
    from shapetrace.hdf5.journal import left_beside
    from shapetrace.hdf5.shards import shards_of

    found: dict[str, Left] = {}
    for file in (path, *shards_of(path).values()):
        # A file that cannot be read is reported when it is read.
        with suppress(OSError):
            found[file] = left_beside(file)
    return found


def _recover(path: str, terminal: Terminal) -> bool:
    """Finish what a program was killed in, if it was; the one thing here that writes."""
    from shapetrace._errors import CaptureFileError
    from shapetrace._files import advice
    from shapetrace.hdf5.journal import Left, journal_of, recover
    from shapetrace.hdf5.reader_process import join
    from shapetrace.hdf5.shards import shards_of

    left = _left_beside(path)
    for file, what in left.items():
        if what is Left.FOREIGN:
            raise CaptureFileError(
                f"{journal_of(file)} is damaged, or not the journal of this file: nothing was "
                "changed; remove it"
            )
        if what is Left.BUSY:
            raise CaptureFileError(f"{file} is being written by a running program")
    unfinished = [file for file, what in left.items() if what is Left.UNFINISHED]
    try:
        for file in unfinished:
            recover(file)
            terminal.note(f"{file}: completed the write of a program that was killed")
    except OSError as error:
        raise CaptureFileError(f"cannot write {file}: {advice(error)}") from None
    if unfinished and shards_of(path):
        join(path)
    return bool(unfinished)
