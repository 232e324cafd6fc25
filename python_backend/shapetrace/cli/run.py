"""``shapetrace run``: runs a program and shows the shapes of the tensors in it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shapetrace._errors import ProgramError
from shapetrace.cli.common_options import add_view_options, positive, view_choice
from shapetrace.cli.program import PreparedProgram, Program
from shapetrace.cli.program_end import end_as_python_would
from shapetrace.cli.terminal import Terminal
from shapetrace.cli.traced_run import RecordingChoice, TracedRun

if TYPE_CHECKING:
    from shapetrace.cli.watched_run import WatchedRun
    from shapetrace.sinks.file import FileSink

DESCRIPTION = """\
Run a program as python would and show the shape of every tensor in its
forward pass.

The program gets its own arguments, prints its own output and ends with its
own exit code. The trace follows on stdout when the program has ended. Exit
code 2 comes from shapetrace: the program was not found, or a file cannot be
written."""

EXAMPLES = """\
examples:
  python -m shapetrace run train.py --epochs 1
  python -m shapetrace run --stop-after-trace train.py
  python -m shapetrace run --view listing -m package.module
  python -m shapetrace run --view none -o run.json train.py
  python -m shapetrace run --live --passes all train.py
  python -m shapetrace run --watch video,mask pipeline.py
  python -m shapetrace run --watch "transform:sample['video']" pipeline.py

Recording ends before the second forward pass begins. So the trace contains
the loss, the backward pass and the optimizer's step. The program runs on.
With --stop-after-trace the program ends where the pass returned, by
SystemExit, so finally blocks and exit handlers run. If the program catches
SystemExit, it is interrupted as by Ctrl-C. If it still runs some seconds
later, it is ended without finally blocks and exit handlers.

Ctrl-C ends the program and shows the trace so far. If a signal kills the
program (SIGTERM, a segmentation fault, an abort), the trace so far is first
shown, and written to the file of -o. After SIGKILL there is only the output
of --live, and the file of -o if recording had ended."""


def add_parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Declare the command and its options."""
    parser = commands.add_parser(
        "run",
        help="run a program and show its shapes",
        usage="python -m shapetrace run [options] (script.py | -m module) [arguments ...]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    recording = parser.add_argument_group("what is recorded")
    recording.add_argument(
        "--passes",
        type=_passes,
        default=1,
        metavar="N|all",
        help="record N forward passes of outermost modules, or all (default: 1)",
    )
    recording.add_argument(
        "--stop-after-trace",
        action="store_true",
        help="end the program with exit code 0 when the last recorded pass has returned",
    )
    recording.add_argument(
        "--level",
        choices=("torch", "aten"),
        default="torch",
        help="torch: calls as the program makes them (default); aten: also the kernels below them",
    )
    recording.add_argument(
        "--settle-after",
        type=positive,
        metavar="N",
        help="after N forward passes with nothing new, record only now and then",
    )
    recording.add_argument(
        "--expand-fused",
        action="store_true",
        help="record inside modules that torch would run as one fused kernel; slower",
    )
    recording.add_argument(
        "--fingerprint",
        action="store_true",
        help="also record statistics of the returned values, to compare two runs with "
        "`shapetrace diff`",
    )
    recording.add_argument(
        "--live",
        action="store_true",
        help="print each call when it happens; print nothing at the end unless --view is given. "
        "A repeated call is printed once",
    )
    recording.add_argument("-o", "--output", metavar="FILE", help="write the trace to a file")
    watching = parser.add_argument_group("what is watched")
    watching.add_argument(
        "--watch",
        action="append",
        metavar="NAMES",
        help="print each change of these variables when it happens: video,mask; only in one "
        "function: transform:video; a part of a variable: \"sample['video']\", self.cache.k. "
        "A trace is shown or written only if --view or -o is given",
    )
    watching.add_argument(
        "--watch-in",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="also watch in this installed package, not only in your own code",
    )
    add_view_options(parser.add_argument_group("how it is shown"), may_be_none=True)
    return parser


def options_with_value(parser: argparse.ArgumentParser) -> frozenset[str]:
    """The options that take the next word of the command line."""
    actions = parser._actions
    return frozenset(name for each in actions if each.nargs != 0 for name in each.option_strings)


def separate_program(
    arguments: Sequence[str], options_with_value: frozenset[str]
) -> tuple[list[str], Program | None]:
    """Split a command line into our options and the program, which has all that follows it."""
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        rest = tuple(arguments[position + 1 :])
        if argument == "-m":
            program = Program(rest[0], rest[1:], is_module=True) if rest else None
            return [*arguments[:position]], program
        if argument.startswith("-m"):
            return [*arguments[:position]], Program(argument[2:], rest, is_module=True)
        if argument == "--":
            return [*arguments[:position]], Program(rest[0], rest[1:]) if rest else None
        if not argument.startswith("-") or argument == "-":
            return [*arguments[:position]], Program(argument, rest)
        position += 2 if argument in options_with_value else 1
    return list(arguments), None


def run(arguments: argparse.Namespace, program: Program) -> int:
    """Run the command; ends by SystemExit or KeyboardInterrupt where the program does."""
    terminal = Terminal()
    watched = _watched_run(arguments, program, terminal)
    prepared = PreparedProgram(program, None if watched is None else watched.prepared)
    if watched is not None and not _is_recording_wanted(arguments):
        return _run_watched(prepared, watched)
    sink = None if arguments.output is None else _opened_file(arguments.output, program)
    recording = RecordingChoice(
        level=arguments.level,
        passes=arguments.passes,
        stop_after_trace=arguments.stop_after_trace,
        settle_after=arguments.settle_after,
        expand_fused=arguments.expand_fused,
        fingerprint=arguments.fingerprint,
        live=arguments.live,
    )
    view = view_choice(arguments)
    if (watched is not None or arguments.live) and arguments.view is None:
        view = replace(view, view="none")
    argv = (program.name, *program.arguments)
    traced_run = TracedRun(recording, view, sink, terminal, argv)
    traced_run.begin()
    if watched is not None:
        watched.begin()
    ending = traced_run.ending
    try:
        error = prepared.run()
    except ProgramError:
        traced_run.abandon()
        if watched is not None:
            watched.abandon()
        raise
    except SystemExit:
        if ending.has_interrupted:
            raise SystemExit(0) from None
        raise
    finally:
        ending.main_is_over()
    if error is None:
        return 0
    if ending.has_interrupted and isinstance(error, KeyboardInterrupt):
        return 0
    end_as_python_would(error)


def _run_watched(prepared: PreparedProgram, watched: WatchedRun) -> int:
    """Run a program of which nothing is recorded."""
    watched.begin()
    try:
        error = prepared.run()
    except ProgramError:
        watched.abandon()
        raise
    if error is None:
        return 0
    end_as_python_would(error)


def _is_recording_wanted(arguments: argparse.Namespace) -> bool:
    """Return whether more than the history of variables is asked for."""
    is_shown = arguments.view not in (None, "none")
    is_asked = is_shown or arguments.live or arguments.stop_after_trace
    return is_asked or arguments.output is not None


def _watched_run(
    arguments: argparse.Namespace, program: Program, terminal: Terminal
) -> WatchedRun | None:
    if not arguments.watch:
        return None
    # Not imported before it is wanted: the program shall find as little as possible imported.
    from shapetrace.cli.watched_run import WatchChoice, WatchedRun

    packages = [each.strip() for text in arguments.watch_in for each in text.split(",")]
    if program.is_module:
        # An installed program is what is to be watched, if it is what is run.
        packages.append(program.name.partition(".")[0])
    choice = WatchChoice(tuple(arguments.watch), tuple(filter(None, packages)))
    return WatchedRun(choice, terminal, view_choice(arguments))


def _opened_file(path: str, program: Program) -> FileSink:
    # Not imported before it is wanted: the program shall find as little as possible imported.
    from shapetrace.sinks.file import FileSink

    sink = FileSink(path, () if program.is_module else (program.name,))
    sink.open()
    return sink


def _passes(text: str) -> int | None:
    if text == "all":
        return None
    return positive(text)
