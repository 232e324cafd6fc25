"""Looks at values as the debugger would, and fails where that is noticed by anything.

with unnoticed(value):
    text = presentation(value)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from shapetrace.panes import ChildEntry, children, presentation
from shapetrace.panes.child_entries import ChildGroup

READERS = ("__repr__", "__str__", "__format__", "item", "tolist", "numpy", "cpu", "to", "__array__")
"""What reads a tensor, or waits for a device; none of it may be called at a stop."""


class _SeenFunctions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class _SeenKernels(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@contextmanager
def unnoticed(*tensors: Any, is_opened: bool = False) -> Iterator[None]:
    """Nothing may be called in here; where a tensor is opened, torch may be without being seen."""
    functions, kernels = _SeenFunctions(), _SeenKernels()
    calls: list[str] = []
    plain = [each for each in tensors if type(each) is torch.Tensor]
    before = [_state(each) for each in plain]
    generator = torch.get_rng_state()
    with ExitStack() as stack:
        if not is_opened:
            for name in READERS:
                stack.enter_context(_counted(torch.Tensor, name, calls))
            stack.enter_context(_counted(torch.UntypedStorage, "__getitem__", calls))
            for name in ("cuda.synchronize", "cuda.current_stream"):
                stack.enter_context(_counted(torch.cuda, name.partition(".")[2], calls))
        stack.enter_context(functions)
        stack.enter_context(kernels)
        yield
    assert functions.seen + kernels.seen + calls == []
    assert torch.equal(generator, torch.get_rng_state())
    assert [_state(each) for each in plain] == before
    assert torch.is_grad_enabled() is not torch.is_inference_mode_enabled()


def _counted(owner: Any, name: str, calls: list[str]) -> Any:
    original = getattr(owner, name)

    def called(*args: Any, **keywords: Any) -> Any:
        calls.append(name)
        return original(*args, **keywords)

    return patch.object(owner, name, called)


def _state(tensor: Any) -> Any:
    try:
        return (tensor._version, tensor.grad_fn, tensor.requires_grad, tensor.is_leaf)
    except Exception:
        return None


def shown(value: Any) -> str:
    """The text of a value, or what Python would make of it."""
    text = presentation(value)
    return repr(value) if text is None else text


def opened(value: Any, *paths: str) -> list[str]:
    """What is below a value, and below the named ones of these: ``name: text → suffix``."""
    return _lines(children(value), set(paths), "")


def _lines(entries: list[ChildEntry], paths: set[str], indent: str) -> list[str]:
    lines: list[str] = []
    for entry in entries:
        suffix = "" if entry.suffix is None else f" → {entry.suffix}"
        lines.append(f"{indent}{entry.name}: {shown(entry.value)}{suffix}".rstrip())
        if entry.name in paths and isinstance(entry.value, ChildGroup):
            lines += _lines(children(entry.value), paths, indent + "  ")
    return lines
