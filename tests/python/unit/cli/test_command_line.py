"""How a command line is split into our options and the program's own."""

from __future__ import annotations

import pytest

from shapetrace.cli.main import make_parsers
from shapetrace.cli.program import Program
from shapetrace.cli.run import options_with_value, separate_program
from shapetrace.cli.terminal import VIEW_NAMES
from shapetrace.views import VIEWS


def split(words: str) -> tuple[list[str], Program | None]:
    _, running = make_parsers()
    return separate_program(words.split(), options_with_value(running["run"]))


@pytest.mark.parametrize(
    ("words", "own", "program"),
    [
        ("train.py", "", Program("train.py")),
        ("train.py --epochs 1", "", Program("train.py", ("--epochs", "1"))),
        ("train.py --view json -m x", "", Program("train.py", ("--view", "json", "-m", "x"))),
        ("--passes 2 train.py -- a", "--passes 2", Program("train.py", ("--", "a"))),
        ("--passes=2 train.py", "--passes=2", Program("train.py")),
        ("-o run.json train.py", "-o run.json", Program("train.py")),
        ("-orun.json train.py", "-orun.json", Program("train.py")),
        ("--stop-after-trace train.py", "--stop-after-trace", Program("train.py")),
        ("--view -m package.main --view x", "--view -m", Program("package.main", ("--view", "x"))),
        ("--width 80 -m package -o a", "--width 80", Program("package", ("-o", "a"), True)),
        ("-mpackage -o a", "", Program("package", ("-o", "a"), True)),
        ("-- -odd.py a", "", Program("-odd.py", ("a",))),
        ("- a", "", Program("-", ("a",))),
        ("-m", "", None),
        ("--", "", None),
        ("--passes 2", "--passes 2", None),
        ("--help", "--help", None),
        ("", "", None),
    ],
)
def test_the_program_has_all_that_follows_it(words: str, own: str, program: Program | None) -> None:
    assert split(words) == (own.split(), program)


def test_options_of_run_with_their_defaults() -> None:
    parser, _ = make_parsers()
    chosen = vars(parser.parse_args(["run"]))
    assert chosen == {
        "command": "run",
        "passes": 1,
        "stop_after_trace": False,
        "level": "torch",
        "settle_after": None,
        "expand_fused": False,
        "fingerprint": False,
        "output": None,
        "watch": None,
        "watch_in": [],
        "live": False,
        "view": None,
        "color": "auto",
        "width": None,
        "verbose": False,
    }


def test_all_passes() -> None:
    parser, _ = make_parsers()
    assert parser.parse_args(["run", "--passes", "all"]).passes is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "--passes", "0"], "argument --passes: '0' is not a whole number from 1"),
        (["run", "--passes", "many"], "argument --passes: 'many' is not a whole number from 1"),
        (["run", "--width", "-3"], "argument --width: '-3' is not a whole number from 1"),
        (["run", "--settle-after", "1.5"], "argument --settle-after: '1.5' is not a whole"),
        (["run", "--view", "cube"], "argument --view: invalid choice: 'cube'"),
        (["run", "--pass", "1"], "unrecognized arguments: --pass 1"),
        (["show", "--view", "none", "x"], "argument --view: invalid choice: 'none'"),
        (["diff", "a.json"], "the following arguments are required: B"),
        (
            ["diff", "--ignore", "colour", "a", "b"],
            "'colour' is not a kind of difference; choose from only, op,",
        ),
        (["diff", "--tolerance", "-1", "a", "b"], "'-1' is not a number from 0"),
        (["show"], "the following arguments are required: FILE"),
        ([], "the following arguments are required: {run,capture,show,diff}"),
    ],
)
def test_complaints(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser, _ = make_parsers()
    with pytest.raises(SystemExit) as end:
        parser.parse_args(arguments)
    assert end.value.code == 2
    assert complaint in capsys.readouterr().err


def test_every_view_can_be_named() -> None:
    assert tuple(VIEWS) == VIEW_NAMES
