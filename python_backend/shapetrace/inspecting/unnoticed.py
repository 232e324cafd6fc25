"""Computing with tensors so that no mode, graph, autocast, transform or profiler notices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import repeat, starmap
from typing import Any, Final

from shapetrace.inspecting.guards import Guards, WithoutDispatchModes, WithoutFunctions
from shapetrace.inspecting.profiling import unlisted_of
from shapetrace.inspecting.readability import transforming_of


@cache
def unnoticed_of(torch: Any) -> Unnoticed:
    """Return the contexts to compute without being noticed."""
    return Unnoticed(torch)


class Unnoticed:
    """Contexts in which a thread computes for us."""

    def __init__(self, torch: Any) -> None:
        self._torch: Final = torch
        internals = self._internals = torch._C
        self._unlisted: Final = unlisted_of(torch)
        self._tracing: Final = getattr(internals, "_get_tracing_state", lambda: None)
        self._transforming: Final = transforming_of(torch)
        self._without_transforms: Final = getattr(internals, "_DisableFuncTorch", None)

    def unseen(self) -> Guards:
        """Context to compute with plain tensors unnoticed."""
        return Guards(self._enter_unseen)

    def unseen_but_by_classes(self) -> Guards:
        """Context to compute with any tensors: only their own classes notice."""
        return Guards(self._enter_unseen_but_by_classes)

    def without_modes(self) -> Guards:
        """Context to compute with any tensors without modes, subclasses included."""
        return Guards(self._enter_without_modes)

    def _enter_unseen(self, guards: Guards) -> None:
        internals = self._internals
        guards.enter(WithoutFunctions, internals.DisableTorchFunction)
        guards.enter(internals._DisableTorchDispatch)
        self._leave_inference(guards)
        guards.enter(internals._AutoDispatchBelowAutograd)
        guards.enter(internals._DisableAutocast)
        guards.enter(self._unlisted)
        self._leave_functions(guards)

    def _enter_unseen_but_by_classes(self, guards: Guards) -> None:
        internals = self._internals
        guards.enter(WithoutFunctions, internals.DisableTorchFunction)
        self._leave_dispatch_modes(guards)
        guards.enter(_WithoutGradients, self._torch)
        guards.enter(internals._DisableAutocast)
        guards.enter(self._unlisted)
        self._leave_functions(guards)

    def _enter_without_modes(self, guards: Guards) -> None:
        self._leave_dispatch_modes(guards)
        guards.enter(_WithoutFunctionModes, self._internals)
        guards.enter(_WithoutGradients, self._torch)
        guards.enter(self._internals._DisableAutocast)
        guards.enter(self._unlisted)

    def _leave_dispatch_modes(self, guards: Guards) -> None:
        if self._internals._len_torch_dispatch_stack():
            guards.enter(WithoutDispatchModes)
        self._leave_inference(guards)

    def _leave_inference(self, guards: Guards) -> None:
        if self._torch.is_inference_mode_enabled():
            guards.enter(self._internals._InferenceMode, False)

    def _leave_functions(self, guards: Guards) -> None:
        """Leave function transforms such as torch.jit.trace and vmap."""
        if self._tracing() is not None:
            guards.enter(_WithoutTracing, self._internals)
        if self._without_transforms is not None and self._transforming() is not None:
            guards.enter(self._without_transforms)


class _WithoutTracing:
    """Pauses torch.jit.trace and its warnings."""

    def __init__(self, internals: Any) -> None:
        self._internals: Final = internals
        self._state: Final = internals._get_tracing_state()

    def __enter__(self) -> None:
        self._internals._set_tracing_state(None)

    def __exit__(self, *_: object) -> None:
        self._internals._set_tracing_state(self._state)


class _WithoutGradients:
    """Like ``torch.no_grad``, but cannot be left before it is entered."""

    def __init__(self, torch: Any) -> None:
        self._set: Final = torch._C._set_grad_enabled
        self._was_enabled: Final = torch.is_grad_enabled()

    def __enter__(self) -> None:
        self._set(False)

    def __exit__(self, *_: object) -> None:
        self._set(self._was_enabled)


def _taken_out(modes: list[Any]) -> Iterator[Any]:
    return starmap(modes.pop, repeat((), len(modes)))


class _WithoutFunctionModes:
    """Turns function modes off, but not ``__torch_function__`` of tensor classes."""

    # Each mode moves in one C call, which no asynchronous exception interrupts.

    def __init__(self, internals: Any) -> None:
        self._internals: Final = internals
        self._modes: Final[list[Any]] = []

    def __enter__(self) -> None:
        internals = self._internals
        count = internals._len_torch_function_stack()
        self._modes.extend(starmap(internals._pop_torch_function_stack, repeat((), count)))

    def __exit__(self, *_: object) -> None:
        put_back = self._internals._push_on_torch_function_stack
        for _each in map(put_back, _taken_out(self._modes)):
            pass
