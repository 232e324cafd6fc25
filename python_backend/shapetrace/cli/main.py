"""The command line of Shapetrace.

python -m shapetrace run train.py --epochs 1
python -m shapetrace run --watch video,mask pipeline.py
python -m shapetrace capture --values "layers.*.forward" train.py
python -m shapetrace show run.json
python -m shapetrace diff good.json bad.json
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from shapetrace import __version__
from shapetrace._errors import ShapetraceError
from shapetrace.cli import capture, diff, run, show
from shapetrace.cli.program import Program
from shapetrace.cli.program_end import end_by_interrupt
from shapetrace.cli.terminal import Terminal
from shapetrace.cli.traced_run import OUR_FAILURE

_READING: dict[str, Callable[[argparse.Namespace], int]] = {"show": show.run, "diff": diff.run}
"""Commands that run no program."""

PROGRAM = "python -m shapetrace"

DESCRIPTION = "The shape of every tensor in a PyTorch program, with the expression that made it."

EXAMPLES = """\
examples:
  python -m shapetrace run train.py --epochs 1
  python -m shapetrace run --view listing -m package.module
  python -m shapetrace run --view none -o run.json train.py
  python -m shapetrace run --watch video,mask pipeline.py
  python -m shapetrace capture --values "layers.*.forward" train.py
  python -m shapetrace show run.json
  python -m shapetrace diff good.json bad.json

`python -m shapetrace COMMAND --help` describes a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code, or ends as the program that it ran ends."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser, running = make_parsers()
    program: Program | None = None
    if given[:1] and given[0] in running:
        options = run.options_with_value(running[given[0]])
        own, program = run.separate_program(given[1:], options)
        given = [given[0], *own]
    elif given and not given[0].startswith("-") and given[0] not in _READING:
        parser.error(f"unknown command {given[0]!r}; `{PROGRAM} run PROGRAM` runs a program")
    chosen = parser.parse_args(given)
    try:
        if chosen.command in _READING:
            return _read(chosen)
        own_parser = running[chosen.command]
        if program is None:
            own_parser.error("name a program to run: a script, or -m and a module")
        if chosen.command == "capture":
            return capture.run(chosen, program)
        if chosen.stop_after_trace and chosen.passes is None:
            own_parser.error("--stop-after-trace needs a number of passes: use --passes N")
        return run.run(chosen, program)
    except ShapetraceError as error:
        Terminal().note(str(error))
        return OUR_FAILURE


def _read(chosen: argparse.Namespace) -> int:
    try:
        return _READING[chosen.command](chosen)
    except KeyboardInterrupt:
        pass
    except ShapetraceError:
        raise
    except Exception as error:
        # Python would end with 1, which is what scripts take for a difference.
        raise ShapetraceError(_failure(chosen, error)) from error
    end_by_interrupt()


def _failure(chosen: argparse.Namespace, error: Exception) -> str:
    """One line: which file could not be shown, and where in our code it failed."""
    files = [chosen.file] if chosen.command == "show" else [chosen.a, chosen.b]
    names = " and ".join(name if name.isprintable() else repr(name) for name in files)
    text = str(error)
    reason = f"{type(error).__name__}: {text if text.isprintable() else repr(text)}"
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is not None:
        file = os.path.basename(traceback.tb_frame.f_code.co_filename)
        reason += f" ({file}:{traceback.tb_lineno})"
    return (
        f"cannot {chosen.command} {names}: {reason}; a trace may be damaged: record it again. "
        "If that fails too, it is a fault of Shapetrace: report this line"
    )


def make_parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser of the whole command line, and those in it of commands that run programs."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"shapetrace {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="{run,capture,show,diff}", required=True
    )
    running = {"run": run.add_parser(commands), "capture": capture.add_parser(commands)}
    show.add_parser(commands)
    diff.add_parser(commands)
    return parser, running
