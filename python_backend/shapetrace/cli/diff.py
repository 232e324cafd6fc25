"""``shapetrace diff``: says where two runs began to differ."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from shapetrace.cli.common_options import add_look_options, input_file
from shapetrace.cli.terminal import Terminal, ViewChoice

if TYPE_CHECKING:
    from shapetrace.comparing.comparison import Kind

ALIKE, DIFFERENT = 0, 1
"""Exit codes; trouble of ours is 2, as for every command."""

FORMATS = ("text", "json", "markdown")

KIND_NAMES = (
    *("only", "op", "error", "arguments", "shape", "dtype", "device"),
    *("values", "gradient", "layout", "calls", "order", "name"),
)
"""Kinds that can be ignored; repeated here so that the command line loads without events."""

EXAMPLES = """\
examples:
  python -m shapetrace diff good.json bad.json
  python -m shapetrace diff --ignore device,dtype cpu.json gpu.json
  python -m shapetrace diff --format markdown -o diff.md before.json after.json

Exit codes: 0: the runs are alike; 1: they differ; 2: a file cannot be read."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser(
        "diff",
        help="find where two runs begin to differ",
        description="Compare two traces written by `shapetrace run -o FILE` or `trace.save(FILE)`."
        "\nShow the first op whose shape, dtype, device, arguments or values differ, then\n"
        "the others. "
        "Values are compared if both were recorded with `run --fingerprint`.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("a", type=input_file, metavar="A", help="a trace file; - for stdin")
    parser.add_argument("b", type=input_file, metavar="B", help="the trace file to compare it with")
    what = parser.add_argument_group("what counts")
    what.add_argument(
        "--ignore",
        type=_kinds,
        action="extend",
        default=[],
        metavar="KIND[,KIND]",
        help=f"kinds of differences to ignore: {', '.join(KIND_NAMES)}",
    )
    what.add_argument(
        "--modules-only",
        action="store_true",
        help="ignore calls outside of modules, for example those that create the model",
    )
    what.add_argument(
        "--tolerance",
        type=_tolerance,
        metavar="NUMBER",
        help="the largest difference between values, relative to their size, that is ignored "
        "(default: from the coarsest dtype on the way to the value)",
    )
    look = parser.add_argument_group("how it is shown")
    look.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="text (default); json: for programs; markdown: for a pull request",
    )
    look.add_argument("-o", "--output", metavar="FILE", help="write to a file instead of stdout")
    add_look_options(look, "show all differences, however many")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from shapetrace.comparing.compare import compare
    from shapetrace.events.trace_loading import load_pair
    from shapetrace.sinks.file import REPORT, OutputFile
    from shapetrace.views.source_files import read_source

    output = None
    if arguments.output is not None:
        output = OutputFile(arguments.output, REPORT, (arguments.a, arguments.b))
        output.open()
    a, b = load_pair(arguments.a, arguments.b)
    comparison = compare(
        a,
        b,
        ignored=arguments.ignore,
        tolerance=arguments.tolerance,
        read_source=read_source,
        modules_only=arguments.modules_only,
    )
    terminal = Terminal()
    choice = ViewChoice(arguments.format, arguments.color, arguments.width, arguments.verbose)
    names = (arguments.a, arguments.b)
    if output is None:
        terminal.show_differences(comparison, names, choice)
    else:
        text = terminal.differences(comparison, names, choice, None)
        output.write([text.encode("utf-8", "backslashreplace")])
    return DIFFERENT if comparison.differ else ALIKE


def _kinds(text: str) -> list[Kind]:
    from shapetrace.comparing.comparison import KINDS

    chosen: list[Kind] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        found = next((kind for kind in KINDS if kind == word), None)
        if found is None:
            raise argparse.ArgumentTypeError(
                f"{word!r} is not a kind of difference; choose from {', '.join(KINDS)}"
            )
        chosen.append(found)
    return chosen


def _tolerance(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0")
    return number
