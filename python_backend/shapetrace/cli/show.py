"""``shapetrace show``: shows a trace file."""

from __future__ import annotations

import argparse

from shapetrace.cli.options import add_view_options, view_choice
from shapetrace.cli.terminal import Terminal

EXAMPLES = """\
examples:
  python -m shapetrace show run.json
  python -m shapetrace show --view listing --width 200 run.json
  python -m shapetrace show --view markdown run.json > shapes.md"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser(
        "show",
        help="show a trace file",
        description="Show a trace that `shapetrace run -o FILE` or `trace.save(FILE)` wrote.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the trace file")
    add_view_options(parser.add_argument_group("how it is shown"), may_be_none=False)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from shapetrace.events import codec

    Terminal().show(codec.load(arguments.file), view_choice(arguments))
    return 0
