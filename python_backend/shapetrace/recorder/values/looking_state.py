"""One thread's part of a recording that makes fingerprints."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor
from torch.nn import Module

from shapetrace._exception_table import leaving_surely
from shapetrace.recorder.call_finder import LiveCall
from shapetrace.recorder.describe import describe_value
from shapetrace.recorder.records import KernelVariant, OpVariant
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

_NAMES_OF_ANYTHING: Final = frozenset(each.__name__ for each in _ANYTHING)

_NOT_SET: Final = "not set to anything yet"

_COPIES: Final = frozenset({Tensor.to, Tensor.copy_})
_ON_ITS_WAY: Final = "may still be on its way from its device"


@leaving_surely
def is_on_its_way(args: Any, kwargs: Any) -> bool:
    """Whether a copy to the CPU is one that nobody has waited for."""
    tensors = [each for each in args if isinstance(each, Tensor)]
    with torch._C.DisableTorchFunction():
        source = tensors[-1] if tensors else None
        if source is None or source.is_cpu:
            return False
        # Of a copy from one device to another the device sees to it that the order is kept.
        target = kwargs.get("device", args[1] if len(args) > 1 else None)
        to_cpu = tensors[0].is_cpu if len(tensors) > 1 else _is_cpu(target)
        return to_cpu and (kwargs.get("non_blocking") is True or any(it is True for it in args))


def _is_cpu(target: Any) -> bool:
    return isinstance(target, (str, torch.device)) and torch.device(target).type == "cpu"


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
        but = None
        if variant.function in _ANYTHING:
            but = _NOT_SET
        elif variant.function in _COPIES and is_on_its_way(args, kwargs):
            but = _ON_ITS_WAY
        looks = self.fingerprints.look(result, but)
        if looks or self.ran:
            output = describe_value(result)
            if variant.output != output:
                variant = self.with_output(variant, output, args, kwargs)
            self.settle_kernels()
        if looks:
            self.fingerprints.add(variant.id, looks, [])

    def failed(self, variant: OpVariant, error: BaseException, args: Any, kwargs: Any) -> OpVariant:
        """The variant of a call that raised; some of its kernels may not have."""
        found = super().failed(variant, error, args, kwargs)
        self.settle_kernels()
        return found

    def look_at_kernel(self, function: Any, result: Any) -> Any:
        """Fingerprints of what an aten operator returned."""
        but = _NOT_SET if getattr(function, "_opname", None) in _NAMES_OF_ANYTHING else None
        return self.fingerprints.look(result, but)

    def keep_looks(self, kernel: KernelVariant, looks: Any) -> None:
        """Note the fingerprints of a kernel that was counted for good."""
        if looks:
            self.fingerprints.add(kernel.id, looks, [])

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
        except BaseException as error:
            if not self.recorder.swallows(error):
                raise
            return []

    def _inputs_of(self, call: LiveCall) -> Any:
        noted = self._inputs
        if noted is None or noted[0] is not call:
            return []
        self._inputs = None
        return noted[1]
