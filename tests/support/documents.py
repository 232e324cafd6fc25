"""Runs what a Markdown document shows, and tells where the document is wrong.

The ```python blocks under one heading are one program, run in order in one namespace; names that a
prelude defines are there as builtins. A ```text block right below one is what it prints.

In a ```console block, lines that begin with ``$ `` are commands; the lines below one are what it
prints, where there are any. A command exits with 0, or as a comment at its end says: ``# exit 1``.

In printed text a line ``…`` stands for any lines, and ``…`` in a line for anything up to its end or
to what follows in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

BACKEND = Path(__file__).parents[2] / "python_backend"

_FENCE = re.compile(r"( *)(`{3,}|~{3,})\s*(\w*)")
_HEADING = re.compile(r"#{1,6} ")
_EXIT = re.compile(r"\s# exit (\d+)$")
_END_OF_BLOCK = "--- end of block ---"
_TIME_LIMIT = 240

_LANGUAGES = {"py": "python"}


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    language: str
    lines: tuple[str, ...]
    number: int
    """The line of the document that its first line is."""
    section: int
    """The line of the heading above it."""
    adjoins: bool
    """Return whether only blank lines are between it and the block before it."""


@dataclass(frozen=True)
class Command:
    """One command of a console block."""

    text: str
    shown: tuple[str, ...]
    exit_code: int


@dataclass
class Outcome:
    """How a document fared."""

    ran: int = 0
    """How many blocks were run."""
    problems: list[str] = field(default_factory=list)


def blocks(document: str) -> list[Block]:
    """The code blocks of a document."""
    found: list[Block] = []
    section, adjoins = 0, False
    lines = iter(enumerate(document.splitlines(), 1))
    for number, line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            if _HEADING.match(line):
                section = number
            adjoins = adjoins and not line.strip()
            continue
        indentation, mark, language = fence.groups()
        inside: list[str] = []
        for _, text in lines:
            if re.fullmatch(rf" *{mark}+\s*", text):
                break
            inside.append(text.removeprefix(indentation))
        language = _LANGUAGES.get(language, language)
        found.append(Block(language, tuple(inside), number + 1, section, adjoins))
        adjoins = True
    return found


def commands(block: Block) -> list[Command]:
    """The commands of a console block."""
    found: list[Command] = []
    for line in block.lines:
        if line.startswith("$ "):
            ending = _EXIT.search(line)
            found.append(Command(line[2:], (), int(ending[1]) if ending else 0))
        elif found:
            last = found.pop()
            found.append(Command(last.text, (*last.shown, line), last.exit_code))
        else:
            raise ValueError(f"line {block.number}: a console block begins with a command")
    return found


def agrees(shown: tuple[str, ...], printed: str) -> bool:
    """Whether text was printed as it is shown; blanks at the ends of lines do not count."""
    pattern = ""
    for line in "\n".join(shown).rstrip().split("\n"):
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += "[^\n]*?".join(map(re.escape, line.rstrip().split("…"))) + r"\n"
    lines = [line.rstrip() for line in printed.rstrip().split("\n")]
    return re.fullmatch(pattern, "\n".join(lines) + "\n") is not None


def run_document(path: Path, folder: Path, prelude: Path) -> Outcome:
    """Run all that a document shows, in a folder that it may write to."""
    document = path.read_text("utf-8")
    all_blocks = blocks(document)
    folder, prelude = folder.resolve(), prelude.resolve()
    outcome = Outcome()
    sections: set[int] = set()
    for block in all_blocks:
        if block.language == "console":
            outcome.ran += 1
            outcome.problems += _run_console(block, folder)
        elif block.language == "python" and block.section not in sections:
            sections.add(block.section)
            program = list(_with_shown(all_blocks, block.section))
            outcome.ran += len(program)
            outcome.problems += _run_program(program, folder, prelude)
    return outcome


def _with_shown(all_blocks: list[Block], section: int) -> Iterator[tuple[Block, Block | None]]:
    """The Python blocks of a section, each with the block that shows what it prints."""
    for position, block in enumerate(all_blocks):
        if block.language == "python" and block.section == section:
            below = all_blocks[position + 1] if position + 1 < len(all_blocks) else None
            shows = below is not None and below.language == "text" and below.adjoins
            yield block, below if shows else None


def _run_program(
    program: list[tuple[Block, Block | None]], folder: Path, prelude: Path
) -> Iterator[str]:
    script = folder / "snippet.py"
    source: list[str] = []
    for block, _ in program:
        source += [*block.lines, f"print({_END_OF_BLOCK!r})"]
    script.write_text("\n".join(source) + "\n", "utf-8")
    # Python runs this before the program, which so stays as it is, line by line.
    hidden = folder / ".prelude"
    hidden.mkdir(exist_ok=True)
    (hidden / "sitecustomize.py").write_text(_SITE.format(prelude=str(prelude)), "utf-8")
    result = _run([sys.executable, script.name], folder, [hidden, BACKEND])
    printed = result.stdout.split(f"{_END_OF_BLOCK}\n")
    if result.returncode != 0:
        last = program[min(len(printed), len(program)) - 1][0]
        yield f"line {last.number}: exited with {result.returncode}\n{printed[-1]}"
        return
    for (_, shown), text in zip(program, printed, strict=False):
        if shown is not None and not agrees(shown.lines, text):
            yield f"line {shown.number}: what is printed differs\n{text}"


_SITE = """\
import builtins, runpy, types
for name, value in runpy.run_path({prelude!r}).items():
    if not name.startswith("_") and not isinstance(value, types.ModuleType):
        setattr(builtins, name, value)
"""


def _run_console(block: Block, folder: Path) -> Iterator[str]:
    for command in commands(block):
        result = _run(command.text, folder, [BACKEND])
        if result.returncode != command.exit_code:
            problem = f"exited with {result.returncode}, not {command.exit_code}"
        elif command.shown and not agrees(command.shown, result.stdout):
            problem = "what is printed differs"
        else:
            continue
        yield f"line {block.number}: $ {command.text}: {problem}\n{result.stdout}"


def _run(
    command: str | list[str], folder: Path, python_path: list[Path]
) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "FORCE_COLOR", "PYTHONSTARTUP")
    }
    environment |= {
        # Commands are shown as in a narrow terminal, so that documents read well anywhere.
        "COLUMNS": "80" if isinstance(command, str) else "100",
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(map(str, python_path)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        shell=isinstance(command, str),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=_TIME_LIMIT,
        check=False,
    )
