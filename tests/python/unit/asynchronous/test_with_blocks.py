"""What is entered by ``with`` is left, wherever an exception of the program's comes."""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._C import DisableTorchFunction

import shapetrace
from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding, module_lock
from shapetrace._pending_exceptions import Undropped
from shapetrace.capture.copies import unseen
from tests.support.interrupting import Interrupter, handled_by, raising, signals

BACKEND = Path(shapetrace.__file__).parent
LOCKS: list[Any] = [threading.Lock(), threading.RLock()]


class Late(Exception):
    """What the program's handler raises."""


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    with handled_by(raising(Late)):
        yield


@leaving_surely
def once() -> int:
    with DisableTorchFunction():
        return 1


@leaving_surely
def among_others() -> int:
    try:
        with DisableTorchFunction(), torch._C._DisableTorchDispatch() as nothing:
            found = 1 if nothing is None else 2
        with DisableTorchFunction():
            try:
                found += len("12")
            except ValueError:
                found = 0
    except ZeroDivisionError:
        found = 0
    return found


def generated() -> list[int]:
    return list(_generated())


@leaving_surely
def _generated() -> Iterator[int]:
    with DisableTorchFunction():
        value = 1
    yield value


@leaving_surely
def locked() -> int:
    with holding(LOCKS[0]):
        return 1


@leaving_surely
def locked_twice() -> None:
    with holding(LOCKS[1]), holding(LOCKS[1]), holding(LOCKS[0]):
        pass


@leaving_surely
def undropped() -> None:
    with holding(LOCKS[0]), Undropped():
        pass


@leaving_surely
def disabled_by_the_program() -> bool:
    with torch._C.DisableTorchFunctionSubclass():
        try:
            with unseen():
                pass
        finally:
            DISABLED.append(not torch._C._is_torch_function_enabled())
    return True


DISABLED: list[bool] = []


def are_free() -> list[bool]:
    taken = [lock.acquire(blocking=False) for lock in LOCKS]
    for lock, is_taken in zip(LOCKS, taken, strict=True):
        if is_taken:
            lock.release()
    return taken


FUNCTIONS: list[Callable[[], object]] = [
    *(once, among_others, generated, locked, locked_twice, undropped, disabled_by_the_program),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_block_is_left(function: Callable[[], object]) -> None:
    folders = (str(BACKEND), __file__)
    interrupter = Interrupter(signals(), lambda code: code.co_filename.startswith(folders))
    expected = interrupter.run(function)
    assert interrupter.run(function) == expected
    hook = sys.unraisablehook
    with ThreadPoolExecutor(1) as other:
        for at in range(1, interrupter.count + 1):
            with pytest.raises(Late):
                interrupter.run(function, at)
            assert torch._C._is_torch_function_enabled(), interrupter.place
            assert sys.unraisablehook is hook, interrupter.place
            assert all(DISABLED), interrupter.place
            assert all(other.submit(are_free).result()), interrupter.place
    assert function() == expected


def test_a_lock_that_was_not_taken_is_not_let_go_of() -> None:
    class Others:
        """What a lock does that another thread has, where a signal comes meanwhile."""

        def acquire(self) -> bool:
            raise Late

        def release(self) -> None:
            released.append(True)

    released: list[bool] = []

    @leaving_surely
    def take() -> None:
        with holding(Others()):
            pass

    with pytest.raises(Late):
        take()
    assert not released


def test_what_a_block_raises_goes_on() -> None:
    @leaving_surely
    def fail() -> None:
        with holding(LOCKS[0]), DisableTorchFunction():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not LOCKS[0].locked()
    assert torch._C._is_torch_function_enabled()


STATES = {
    *("DisableTorchFunction", "_DisableTorchDispatch", "_AutoDispatchBelowAutograd", "as_is"),
    *("_below_autograd", "_without_dispatch", "_without_autocast", "_inference_mode", "_unlisted"),
    *("holding", "undivided", "errstate"),
}
"""Contexts that nothing of the program's may be left in."""
UNSURE = {"no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "_disable_current_modes"}
"""Those of torch's in Python, which an exception can come into the middle of."""
OTHER_PROCESSES = {"server"}


@pytest.mark.slow
def test_every_block_of_ours_is_left() -> None:
    files = [
        file
        for file in sorted(BACKEND.rglob("*.py"))
        if file.relative_to(BACKEND).parts[0] not in OTHER_PROCESSES
    ]
    assert len(files) > 200
    assert [
        found for file in files for found in unsure_in(ast.parse(file.read_text("utf-8")))
    ] == []


@pytest.mark.parametrize(
    "context",
    ["torch._C.DisableTorchFunction()", "holding(_LOCK)", "self._lock", "torch.no_grad()"],
)
def test_one_that_is_not_is_found(context: str) -> None:
    source = f"def planted(self):\n    with something(), {context}:\n        pass"
    assert unsure_in(ast.parse(source)) == ["planted"]
    is_sure = context.endswith("DisableTorchFunction()") or context.startswith("holding")
    assert unsure_in(ast.parse(f"@leaving_surely\n{source}")) == ([] if is_sure else ["planted"])


def unsure_in(tree: ast.AST, function: ast.FunctionDef | None = None) -> list[str]:
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.With):
            for item in node.items:
                name = name_of(item.context_expr)
                is_call = isinstance(item.context_expr, ast.Call)
                is_sure = function is not None and "leaving_surely" in map(
                    name_of, function.decorator_list
                )
                is_lock = not is_call and "lock" in name.lower()
                if name in UNSURE or is_lock or (name in STATES and not is_sure):
                    found.append("" if function is None else function.name)
        found += unsure_in(node, node if isinstance(node, ast.FunctionDef) else function)
    return found


def name_of(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_a_lock_that_another_thread_has_as_the_program_forks() -> None:
    lock = module_lock()
    taken, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with holding(lock):
            taken.set()
            let_go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    child = os.fork()
    if not child:
        os._exit(0 if lock.acquire(blocking=False) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not lock.acquire(blocking=False)
    let_go.set()
    thread.join()
