"""Which calls are being listened to."""

from __future__ import annotations

import weakref
from typing import Any

from shapetrace.instrument.hooked_calls import FEW, HookedCall, HookedCalls


def test_a_call_that_gets_the_number_of_one_that_is_over_is_not_forgotten() -> None:
    activations: Any = HookedCalls()
    call = HookedCall()
    running = weakref.ref(call)

    def over() -> None:
        """That a call is over is seen just when another thread's takes its number."""
        activations[1] = running

    def gone() -> None:
        activations.pop(2, None)

    activations[1], activations[2] = over, gone
    for number in range(3, FEW + 3):
        activations[number] = lambda: None
    activations.make_room()
    assert dict(activations) == {1: running}
