"""How often calls were made, where the two runs may have been recorded for longer or shorter."""

from __future__ import annotations

from shapetrace.comparing.comparison import Aspect
from shapetrace.comparing.walk import WalkStep
from shapetrace.events.model import ModuleCall, Other, Trace


class Counts:
    """Compares numbers of calls with those of the module call around them."""

    def __init__(self, a: Trace, b: Trace, notes: list[str]) -> None:
        self._passes_a, self._passes_b = a.run.passes, b.run.passes
        if self._passes_a != self._passes_b:
            notes.append("they have different numbers of recorded forward passes")

    @property
    def is_other_length(self) -> bool:
        """Whether one of them was recorded for longer; one that never began was not cut."""
        return self._passes_a != self._passes_b and min(self._passes_a, self._passes_b) > 0

    def aspect(self, step: WalkStep) -> Aspect | None:
        """A number of calls that is another than the numbers around it explain."""
        a, b = step.a, step.b
        if a is None or b is None or a.count is None or b.count is None or self.is_other_length:
            return None
        ours, theirs = step.calls or (a.count, b.count)
        around_a, around_b = _around(step.module_a), _around(step.module_b)
        if ours == theirs or ours * around_b == theirs * around_a:
            return None
        return Aspect("calls", "call", None, Other(f"×{ours}"), Other(f"×{theirs}"))

    def is_cut(self, step: WalkStep) -> bool:
        """Whether only one run made the call because the other was not recorded for as long."""
        if not self.is_other_length:
            return False
        longer_is_a = self._passes_a > self._passes_b
        is_of_longer = (step.a is not None) == longer_is_a
        return is_of_longer and (step.is_variant or step.is_after_end)


def _around(call: ModuleCall | None) -> int:
    return 1 if call is None or call.count is None else call.count
