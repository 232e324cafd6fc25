"""One thread's part of a recording that makes fingerprints."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor
from torch.nn import Module

from shapetrace.recorder.call_finder import LiveCall
from shapetrace.recorder.describe import describe_value
from shapetrace.recorder.records import OpVariant
from shapetrace.recorder.thread_state import ThreadState

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.values.fingerprints import Fingerprints

_ANYTHING: Final = frozenset(
    {
        *(torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted),
        *(Tensor.new_empty, Tensor.new_empty_strided, Tensor.resize_, Tensor.resize_as_),
    }
)
"""Functions that return memory as it is."""

_NOT_SET: Final = "not set to anything yet"


class LookingState(ThreadState):
    """Looks at what calls return, besides finding their variants."""

    def __init__(self, recorder: Recorder, thread: str | None) -> None:
        super().__init__(recorder, thread)
        assert recorder.fingerprints is not None
        self.fingerprints: Fingerprints = recorder.fingerprints
        self.looks = True
        self._inputs: tuple[LiveCall, Any] | None = None
        """The outermost module call that is running, and what it was called with."""

    def look_at(self, variant: OpVariant, result: Any, args: Any, kwargs: Any) -> None:
        """Note what a call returned, before the program has it."""
        but = _NOT_SET if variant.function in _ANYTHING else None
        looks = self.fingerprints.look(result, but)
        if looks:
            output = describe_value(result)
            if variant.output != output:
                variant = self.with_output(variant, output, args, kwargs)
            self.fingerprints.add(variant.id, looks, [])

    def enter(
        self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> LiveCall:
        """Note that a module is called, and what the outermost one is called with."""
        if self.stack:
            return super().enter(module, args, kwargs, frame)
        inputs = [look for value in (*args, *kwargs.values()) for look in self._look(value)]
        call = super().enter(module, args, kwargs, frame)
        self._inputs = (call, inputs)
        return call

    def leave(self, call: LiveCall, result: Any) -> None:
        """Note what a module returned."""
        variant = call.variant
        inputs = self._inputs_of(call)
        super().leave(call, result)
        self.fingerprints.add(variant.id, self._look(result), inputs)

    def leave_failed(self, call: LiveCall, error: BaseException) -> None:
        """Note that a module call raised."""
        variant = call.variant
        inputs = self._inputs_of(call)
        super().leave_failed(call, error)
        self.fingerprints.add(variant.id, [], inputs)

    def _look(self, value: Any) -> Any:
        try:
            return self.fingerprints.look(value)
        except RecursionError:
            return []
        except Exception as fault:
            self.recorder.fault(fault)
            return []

    def _inputs_of(self, call: LiveCall) -> Any:
        noted = self._inputs
        if noted is None or noted[0] is not call:
            return []
        self._inputs = None
        return noted[1]
