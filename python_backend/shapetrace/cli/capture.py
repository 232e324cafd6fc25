"""``shapetrace capture``: runs a program and keeps values of its model."""

from __future__ import annotations

import argparse
import threading

from shapetrace._errors import ProgramError
from shapetrace.cli.captured_run import CaptureChoice, CapturedRun
from shapetrace.cli.options import add_look_options, positive
from shapetrace.cli.outcome import end_as_python_would
from shapetrace.cli.program import PreparedProgram, Program
from shapetrace.cli.terminal import Terminal, ViewChoice

DESCRIPTION = """\
Run a program as python would, and keep values of its model: outputs,
arguments and local variables, each time they change.

The model is the outermost module with parameters that the program calls; of
several, the first in which a path means something. The program sees its own
arguments, prints what it prints, and ends with its own exit code."""

EXAMPLES = """\
paths:
  forward                      what the model returns
  forward.x                    an argument of it, or a variable
  forward.batch.mask           what is in that: keys, indices, fields, attributes
  layers.0                     what a module returns
  layers.*.attn.forward.scores a variable in every layer; * is one component
  **.scores                    every variable of that name; ** is any number
Quote paths with wildcards, or the shell may look for files.

examples:
  python -m shapetrace capture --values "layers.*.forward" train.py --epochs 1
  python -m shapetrace capture --values forward.x --values forward -o run.h5 train.py
  python -m shapetrace capture --values "**.loss" --train-only -o run.h5 -m package.module
  torchrun --nproc-per-node 2 -m shapetrace capture --values forward -o run.h5 train.py

Without -o, a table of what was captured follows when the program has ended.
Ctrl-C ends the program and keeps what was captured so far; with -o, a program
that is killed leaves all up to the last gather. Several processes that torchrun
has started hand everything to rank 0; with --shards each writes a file of its
own, and run.h5 shows them as one."""


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
        help="which values; may be given several times",
    )
    modes = what.add_mutually_exclusive_group()
    modes.add_argument("--train-only", action="store_true", help="only while the model trains")
    modes.add_argument("--eval-only", action="store_true", help="only while it does not")
    what.add_argument(
        "--trace-interval",
        type=positive,
        default=1,
        metavar="N",
        help="only in every Nth call of the model (default: 1)",
    )
    where = parser.add_argument_group("where it goes")
    where.add_argument("-o", "--output", metavar="FILE", help="an HDF5 file, such as run.h5")
    where.add_argument(
        "--overwrite", action="store_true", help="replace the file if there is one already"
    )
    where.add_argument(
        "--gathering-interval",
        type=positive,
        default=1,
        metavar="N",
        help="hand over and write after every N calls of the model (default: 1)",
    )
    where.add_argument(
        "--shards",
        action="store_true",
        help="a file for each process, and one that shows them all; nothing is sent",
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
