"""Which modules were called with what, told by hooks on every module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

from shapetrace.events.model import Trace
from tests.support.reference.calls import TensorFacts, facts_cover, tensors_in
from tests.support.reference.mode import facts_in


@dataclass(frozen=True)
class ModuleFacts:
    """One call of a module: which it was, and the tensors that went in and came out."""

    path: str
    class_name: str
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]

    def __str__(self) -> str:
        """Show it on one line, as a failing comparison lists it."""
        inputs, outputs = " ".join(map(str, self.inputs)), " ".join(map(str, self.outputs))
        return f"{self.path or 'root'}: {self.class_name} ({inputs}) -> {outputs}"


@contextmanager
def watch_modules(root: nn.Module) -> Iterator[Counter[ModuleFacts]]:
    """Count the calls of a module and of those it holds."""
    calls: Counter[ModuleFacts] = Counter()
    with ExitStack() as hooks:
        for path, module in root.named_modules():
            waiting: list[tuple[TensorFacts, ...]] = []

            def enter(_: nn.Module, args: Any, kwargs: Any, waiting: list[Any] = waiting) -> None:
                waiting.append(tuple(facts_in((args, kwargs))))

            def leave(
                module: nn.Module,
                args: Any,
                kwargs: Any,
                output: Any,
                path: str = path,
                waiting: list[Any] = waiting,
            ) -> None:
                outputs = tuple(facts_in(output))
                calls[ModuleFacts(path, type(module).__name__, waiting.pop(), outputs)] += 1

            hooks.callback(module.register_forward_pre_hook(enter, with_kwargs=True).remove)
            hooks.callback(module.register_forward_hook(leave, with_kwargs=True).remove)
        yield calls


def modules_of_trace(trace: Trace, root: nn.Module) -> Counter[ModuleFacts]:
    """Count the calls of modules of the root in a trace, but not those of a forward itself."""
    paths = dict(root.named_modules()).keys()
    calls: Counter[ModuleFacts] = Counter()
    for call in trace.modules:
        if call.count is not None and call.path in paths:
            inputs, outputs = tuple(tensors_in(call.inputs)), tuple(tensors_in(call.outputs))
            calls[ModuleFacts(call.path, call.class_name, inputs, outputs)] += call.count
    return calls


def module_difference(expected: Counter[ModuleFacts], actual: Counter[ModuleFacts]) -> str:
    """Say which module calls only one side has; nothing when both have the same."""
    missing, surplus = expected - actual, actual - expected
    for wide in surplus:
        for call in missing:
            if _covers(wide, call):
                both = min(surplus[wide], missing[call])
                surplus[wide] -= both
                missing[call] -= both
    lines = [f"missing {count} × {call}" for call, count in (+missing).items()]
    lines += [f"surplus {count} × {call}" for call, count in (+surplus).items()]
    return "\n".join(lines)


def _covers(wide: ModuleFacts, call: ModuleFacts) -> bool:
    """Return whether a recorded call, whose sizes may be ranges, represents an observed one."""
    return (
        (wide.path, wide.class_name) == (call.path, call.class_name)
        and (len(wide.inputs), len(wide.outputs)) == (len(call.inputs), len(call.outputs))
        and all(map(facts_cover, wide.inputs + wide.outputs, call.inputs + call.outputs))
    )
