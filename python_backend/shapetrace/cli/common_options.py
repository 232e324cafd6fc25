"""Options that commands share."""

from __future__ import annotations

import argparse

from shapetrace.cli.terminal import COLOR_CHOICES, VIEW_NAMES, ViewChoice


def add_view_options(parser: argparse._ArgumentGroup, *, may_be_none: bool) -> None:
    """Declare ``--view``, ``--color``, ``--width`` and ``--verbose``."""
    parser.add_argument(
        "--view",
        choices=(*VIEW_NAMES, "none") if may_be_none else VIEW_NAMES,
        # With --watch alone no view is wanted, so that `run` must know of what was not chosen.
        default=None if may_be_none else "tree",
        help="tree (default): modules and their ops; listing: source lines with their calls; "
        "table: one row for each module; markdown; json: the trace file",
    )
    add_look_options(parser)


def add_look_options(
    parser: argparse._ArgumentGroup,
    verbose: str = "also show library calls that are folded otherwise",
) -> None:
    """Declare ``--color``, ``--width`` and ``--verbose``, which does what is said here."""
    parser.add_argument(
        "--color",
        choices=COLOR_CHOICES,
        default="auto",
        help="auto (default): use colors if stdout is a terminal that supports them and "
        "NO_COLOR is not set",
    )
    parser.add_argument(
        "--width",
        type=positive,
        metavar="COLUMNS",
        help="width of the output in columns (default: that of the terminal)",
    )
    parser.add_argument("--verbose", action="store_true", help=verbose)


def input_file(path: str) -> str:
    """For argparse: a file to be read, where ``-`` is what is given on stdin."""
    return "/dev/stdin" if path == "-" else path


def view_choice(arguments: argparse.Namespace) -> ViewChoice:
    """The view that these options choose."""
    return ViewChoice(arguments.view or "tree", arguments.color, arguments.width, arguments.verbose)


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return number
