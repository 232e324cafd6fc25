"""Putting back the random numbers that an additional run of the program's code has used up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch._C import DisableTorchFunction

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely


def kept_randomness() -> Callable[[], None]:
    """Note the state of all generators that a program uses without naming one.

    Returns how to put it back: Python's, NumPy's, the CPU's and that of devices in use. Where one
    cannot be read, as in the middle of a graph's capture, it is left alone.
    """
    undo: list[Callable[[], object]] = []
    for keep in (_keep_python, _keep_numpy, _keep_torch):
        try:
            undo.extend(keep())
        except BaseException as error:
            if is_asynchronous(error):
                raise
            continue  # There is nothing to put back that could be relied on.

    def put_back() -> None:
        with ExitStack() as stack:
            for each in undo:
                stack.callback(each)

    return put_back


def _keep_python() -> Iterator[Callable[[], object]]:
    random: Any = sys.modules.get("random")
    if random is not None:
        state = random.getstate()
        yield lambda: random.setstate(state)


def _keep_numpy() -> Iterator[Callable[[], object]]:
    random: Any = sys.modules.get("numpy.random")
    if random is not None:
        state = random.get_state()
        yield lambda: random.set_state(state)


def _keep_torch() -> Iterator[Callable[[], object]]:
    for generator in _generators():
        state = _unseen(generator.get_state)
        yield partial(_unseen, generator.set_state, state)


@leaving_surely
def _unseen(function: Callable[..., Any], *arguments: Any) -> Any:
    with DisableTorchFunction(), torch._C._DisableTorchDispatch():
        return function(*arguments)


def _generators() -> Iterator[Any]:
    """The CPU's, and those of the devices that the program uses already."""
    yield torch.default_generator
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        yield from cuda.default_generators
