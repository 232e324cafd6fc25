"""Interrupts at the jumps of loops, which compilers since Python 3.12 leave without a handler."""

from __future__ import annotations

import ast
import dis
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import shapetrace
from shapetrace._exception_table import leaving_surely
from tests.support.interrupting import Interrupter, handled_by, raising, signals

BACKEND = Path(shapetrace.__file__).parent
COVERED_BY = {"covering_jumps", "leaving_surely", "catching_everywhere"}
OTHER_PROCESSES = {"server"}
"""The program's exceptions do not come there."""

LOCK = threading.RLock()
ENDED: list[str] = []


class Late(Exception):
    """What the program raises."""


def waits(waiting: list[int]) -> None:
    with LOCK:
        if waiting:
            while waiting:
                waiting.pop()


def looks(values: list[int]) -> int:
    try:
        for value in values:
            if value > 1:
                ENDED.append("inside")
        return len(values)
    finally:
        ENDED.append("looks")


def nests(values: list[int]) -> None:
    with LOCK:
        for value in values:
            try:
                for other in values:
                    if other != value:
                        continue
                    ENDED.append("inside")
            finally:
                ENDED.append("nests")


def generates(values: list[int]) -> Iterator[int]:
    with LOCK:
        for value in values:
            if value:
                yield value


def takes_all(values: list[int]) -> None:
    for _ in generates(values):
        pass


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    with handled_by(raising(Late)):
        yield
    ENDED.clear()


@pytest.mark.parametrize("function", [waits, looks, nests, takes_all])
def test_no_instruction_passes_by_the_statement(function: Callable[[list[int]], Any]) -> None:
    for each in (waits, looks, nests, generates):
        leaving_surely(each)
    interrupter = Interrupter(signals(), lambda code: code.co_filename == __file__)
    interrupter.run(lambda: function([1, 2, 3]))
    count = interrupter.count
    assert count >= 40
    for at in range(1, count + 1):
        ENDED.clear()
        try:
            interrupter.run(lambda: function([1, 2, 3]), at)
        except Late:
            assert not is_taken(), interrupter.place
            assert not ENDED or ENDED[-1] == function.__name__, interrupter.place


def is_taken() -> bool:
    """Whether this thread was left with the lock; another one takes it only if it was not."""
    taken: list[bool] = []

    def take() -> None:
        taken.append(LOCK.acquire(blocking=False))
        if taken[0]:
            LOCK.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return not taken[0]


@pytest.mark.slow
def test_every_loop_of_ours_in_such_a_statement_is_covered() -> None:
    files = [
        file
        for file in sorted(BACKEND.rglob("*.py"))
        if file.relative_to(BACKEND).parts[0] not in OTHER_PROCESSES
    ]
    assert len(files) > 200
    assert [found for file in files for found in uncovered_in(file)] == []


def test_a_loop_that_is_not_covered_is_found(tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    source = """
    def planted(waiting):
        with LOCK:
            if waiting:
                while waiting:
                    waiting.pop()()
    """
    file.write_text("if True:\n" + source)
    # Python 3.11 leaves out none, and 3.14 others.
    leaves_out = sys.version_info[:2] in ((3, 12), (3, 13))
    assert uncovered_in(file) == (["planted.py: planted"] if leaves_out else [])
    file.write_text("if True:\n    @covering_jumps" + source)
    assert uncovered_in(file) == []


def uncovered_in(file: Path) -> list[str]:
    source = file.read_text("utf-8")
    covered = {
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(each, ast.Name) and each.id in COVERED_BY for each in node.decorator_list
        )
    }
    return [
        f"{file.name}: {code.co_qualname}"
        for code in codes_in(compile(source, str(file), "exec", dont_inherit=True))
        if uncovered_jumps(code) and code.co_name not in covered
    ]


def codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from codes_in(part)


def uncovered_jumps(code: CodeType) -> list[int]:
    """Return the jumps back that nothing covers, to where a try or with statement does."""
    handlers: dict[int, int] = {}
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        for offset in range(entry.start, entry.end, 2):
            handlers.setdefault(offset, entry.target)
    instructions = {each.offset: each for each in dis.get_instructions(code)}
    return [
        offset
        for offset, each in instructions.items()
        if each.opname == "JUMP_BACKWARD"
        and offset not in handlers
        # What comprehensions and generators are wrapped in has other handlers.
        and each.argval in handlers
        and instructions[handlers[each.argval]].opname == "PUSH_EXC_INFO"
    ]
