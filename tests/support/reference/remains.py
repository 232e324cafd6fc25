"""The remains of a run in a process."""

from __future__ import annotations

import builtins
import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.modules import module as module_internals
from torch.utils import _python_dispatch

from shapetrace import _dynamo
from shapetrace.instrument import following
from shapetrace.variables import tracking

LOCKS: dict[str, Any] = {each.__name__: each._LOCK for each in (_dynamo, following, tracking)}
"""Locks that a thread may take again, so that it does not notice when it has kept one."""

Finders: TypeAlias = tuple[tuple[int, str], ...]
"""Those of the import system, by number and text."""


@dataclass(frozen=True)
class Surroundings:
    """Everything in the process that watching a program might have touched."""

    function_modes: tuple[int, ...]
    dispatch_modes: int
    call_of_module: object
    methods_of_module: tuple[tuple[str, int], ...]
    global_hooks: tuple[int, ...]
    hooks_and_attributes: tuple[object, ...]
    threads: frozenset[int]
    trace_function: object
    profile_function: object
    exception_hooks: tuple[object, ...]
    warnings: tuple[object, ...]
    imports: tuple[object, Finders, Finders]
    grad_mode: tuple[bool, bool]
    locks_taken: list[str]

    @classmethod
    def now(cls, model: nn.Module) -> Surroundings:
        """Look at the process, and at the hooks and attributes of a model's modules."""
        depth = torch._C._len_torch_function_stack()
        return cls(
            function_modes=tuple(
                id(torch._C._get_function_stack_at(index)) for index in range(depth)
            ),
            dispatch_modes=len(_python_dispatch._get_current_dispatch_mode_stack()),
            call_of_module=nn.Module.__call__,
            methods_of_module=tuple(
                (name, id(value))
                for name, value in vars(nn.Module).items()
                if name != "__annotations_cache__"  # which Python 3.14 keeps once they are read
            ),
            global_hooks=tuple(
                len(value)
                for name, value in sorted(vars(module_internals).items())
                if name.startswith("_global_") and isinstance(value, dict)
            ),
            hooks_and_attributes=tuple(
                (path, tuple(vars(module)), sum(map(len, _hooks_of(module))))
                for path, module in model.named_modules()
            ),
            threads=frozenset(thread.ident or 0 for thread in threading.enumerate()),
            trace_function=sys.gettrace(),
            profile_function=sys.getprofile(),
            exception_hooks=(sys.excepthook, threading.excepthook, sys.unraisablehook),
            warnings=(warnings.showwarning, warnings.warn, tuple(map(id, warnings.filters))),
            imports=(
                builtins.__import__,
                _described(sys.meta_path),
                _described(sys.path_hooks),
            ),
            grad_mode=(torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
            locks_taken=[name for name, lock in LOCKS.items() if lock._is_owned()],
        )

    def changes(self, later: Surroundings) -> list[str]:
        """Name what is not as it was."""
        return [
            f"{field.name}: {getattr(self, field.name)} became {getattr(later, field.name)}"
            for field in fields(self)
            if getattr(self, field.name) != getattr(later, field.name)
        ]


def _hooks_of(module: nn.Module) -> Iterable[dict[Any, Any]]:
    return [
        value
        for name, value in vars(module).items()
        if name.endswith(("_hooks", "_hooks_with_kwargs")) and isinstance(value, dict)
    ]


class Marker:
    """An object in the locals of a function: it lives as long as the function's frame does."""


def living_tensors() -> int:
    """Count the tensors that the collector knows."""
    gc.collect()
    return sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())


def survivors(run: Callable[[], dict[str, list[Any]]]) -> list[str]:
    """Name the kinds of objects that outlive ``run``, which returns some by kind.

    They have to go by their reference counts alone, as a program's own objects do.
    """
    gc.collect()
    gc.disable()
    try:
        references, frame = _references(run)
        alive = [kind for kind, items in references.items() if any(item() for item in items)]
        return alive + (["frame"] if frame() is not None else [])
    finally:
        gc.enable()


def _references(
    run: Callable[[], dict[str, list[Any]]],
) -> tuple[dict[str, list[Callable[[], object | None]]], Callable[[], object | None]]:
    marker = Marker()
    objects = run()
    references = {kind: [_reference(item) for item in items] for kind, items in objects.items()}
    return references, weakref.ref(marker)


def _reference(item: Any) -> Callable[[], object | None]:
    reference = weakref.ref(item)
    return lambda: None if reference() is None else True


def _described(finders: Iterable[object]) -> Finders:
    return tuple((id(finder), repr(finder)) for finder in finders)
