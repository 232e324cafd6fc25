"""``shapetrace capture``: runs a program and keeps values of its model."""

from __future__ import annotations

import argparse
import threading

from shapetrace._errors import ProgramError
from shapetrace.cli.captured_run import CaptureChoice, CapturedRun
from shapetrace.cli.common_options import add_look_options, positive
from shapetrace.cli.program import PreparedProgram, Program
from shapetrace.cli.program_end import end_as_python_would
from shapetrace.cli.terminal import Terminal, ViewChoice

DESCRIPTION = """\
Run a program as python would and keep values of its model: outputs,
arguments and local variables, each time they change.

The model is the outermost module with parameters that the program calls. If
there are several, it is the first in which a path matches something. The
program gets its own arguments, prints its own output and ends with its own
exit code."""

EXAMPLES = """\
paths:
  forward                      the return value of the model
  forward.x                    an argument or a variable of the model's forward
  forward.batch.mask           a part of it: a key, index, field or attribute
  layers.0                     the return value of a module
  layers.*.attn.forward.scores a variable in every layer; * matches one name
  **.scores                    every variable of that name; ** matches any number of names
Quote paths with wildcards, or the shell replaces them by file names.

examples:
  python -m shapetrace capture --values "layers.*.forward" train.py --epochs 1
  python -m shapetrace capture --values forward.x --values forward -o run.h5 train.py
  python -m shapetrace capture --values "**.loss" --train-only -o run.h5 -m package.module
  torchrun --nproc-per-node 2 -m shapetrace capture --values forward -o run.h5 train.py

Without -o, a table of the captured values follows when the program has ended.
Ctrl-C ends the program and keeps the values so far. With -o, the file has all
values up to the last gather even if the program is killed. Under torchrun, all
processes send their values to rank 0. With --shards, each process writes its
own file, and run.h5 shows them as one."""


def add_parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Declare the command and its options."""
    parser = commands.add_parser(
        "capture",
        help="run a program and keep values of its model",
        usage="python -m shapetrace capture --values PATH [options] (script.py | -m module) "
        "[arguments ...]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = parser.add_argument_group("what is captured")
    what.add_argument(
        "--values",
        action="append",
        required=True,
        metavar="PATH",
        help="path of the values, see below; may be given several times",
    )
    modes = what.add_mutually_exclusive_group()
    modes.add_argument(
        "--train-only", action="store_true", help="capture only while the model is in training mode"
    )
    modes.add_argument(
        "--eval-only",
        action="store_true",
        help="capture only while the model is in evaluation mode",
    )
    what.add_argument(
        "--trace-interval",
        type=positive,
        default=1,
        metavar="N",
        help="capture in every Nth call of the model only (default: 1)",
    )
    where = parser.add_argument_group("where the values are written")
    where.add_argument("-o", "--output", metavar="FILE", help="an HDF5 file, such as run.h5")
    where.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    where.add_argument(
        "--gathering-interval",
        type=positive,
        default=1,
        metavar="N",
        help="gather and write values after every N calls of the model (default: 1)",
    )
    where.add_argument(
        "--shards",
        action="store_true",
        help="write one file for each process, and one that shows them all, instead of sending "
        "values to rank 0",
    )
    add_look_options(parser.add_argument_group("how the table is shown"))
    return parser


def run(arguments: argparse.Namespace, program: Program) -> int:
    """Run the command; ends by SystemExit or KeyboardInterrupt where the program does."""
    prepared = PreparedProgram(program)
    choice = CaptureChoice(
        paths=tuple(arguments.values),
        trace_interval=arguments.trace_interval,
        gathering_interval=arguments.gathering_interval,
        train_only=arguments.train_only,
        eval_only=arguments.eval_only,
        output=arguments.output,
        overwrite=arguments.overwrite,
        shards=arguments.shards,
        program=None if program.is_module else program.name,
    )
    look = ViewChoice("table", arguments.color, arguments.width, arguments.verbose)
    captured = CapturedRun(choice, Terminal(), look)
    captured.begin()
    try:
        error = prepared.run()
    except ProgramError:
        captured.abandon()
        raise
    except SystemExit:
        _finish(captured)
        raise
    if error is None:
        return _finish(captured)
    try:
        end_as_python_would(error)
    finally:
        _finish(captured)


def _finish(captured: CapturedRun) -> int:
    """The end of the main program, but for threads of its own that go on until they end."""
    others = (each for each in threading.enumerate() if each is not threading.main_thread())
    if any(not thread.daemon for thread in others):
        return 0  # The exit handler comes when they have ended.
    return captured.finish()
