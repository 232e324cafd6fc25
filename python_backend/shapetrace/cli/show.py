"""``shapetrace show``: shows a trace file, or a file of captured values."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from shapetrace.cli.options import add_view_options, view_choice
from shapetrace.cli.terminal import Terminal

if TYPE_CHECKING:
    from shapetrace.events.captured import CapturedFile

_HDF5 = b"\x89HDF\r\n\x1a\n"
"""What every HDF5 file begins with."""

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
        description="Show a trace that `shapetrace run -o FILE` or `trace.save(FILE)` wrote,\n"
        "or what is in an HDF5 file of captured values.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the trace file, or the HDF5 file")
    add_view_options(parser.add_argument_group("how it is shown"), may_be_none=False)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    terminal, choice = Terminal(), view_choice(arguments)
    if _is_hdf5(arguments.file):
        terminal.show_captured(_summary(arguments.file, choice.view), choice)
        return 0
    from shapetrace.events import codec

    terminal.show(codec.load(arguments.file), choice)
    return 0


def _is_hdf5(path: str) -> bool:
    """Whether it is a file of captured values, or the name that files of single ranks share."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(_HDF5)) == _HDF5
    except FileNotFoundError:
        from shapetrace._errors import CaptureFileError
        from shapetrace.capture.hdf5.shards import shards_of

        if shards_of(path):
            return True
        if path.endswith((".h5", ".hdf5")):
            raise CaptureFileError(
                f"there is no file {path}; name a file that `shapetrace capture -o FILE` or "
                "H5PYSaverCallback wrote"
            ) from None
        return False
    except (OSError, ValueError):
        # Said by whoever reads it.
        return False


def _summary(path: str, view: str) -> CapturedFile:
    from shapetrace._errors import CaptureFileError
    from shapetrace.capture.hdf5.summaries import read_summary

    if view != "tree":
        raise CaptureFileError(f"{path} holds captured values, of which there is no view {view!r}")
    return read_summary(path)
