"""Keeping Python's garbage collector from stopping the server while the editor waits.

A large trace is a million objects that live long and are in no cycles. To look through all of them
takes a good part of a second, and finds nothing.
"""

from __future__ import annotations

import gc

_ALLOCATIONS = 20_000
"""New objects after which the young ones are looked through; Python's own number is 700."""


def begin() -> None:
    """Leave alone what has been imported, and look at the rest less often."""
    gc.set_threshold(_ALLOCATIONS, 20, 1000)
    gc.collect()
    gc.freeze()


def settle() -> None:
    """Leave alone what there is now, but for what is new and already garbage."""
    gc.collect(1)
    gc.freeze()
