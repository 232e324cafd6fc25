"""When this process began."""

from __future__ import annotations

import os
import time

from shapetrace._asynchronous import is_asynchronous


def process_began_at() -> float | None:
    """As ``time.time()`` has it; None where that is not cheap to know."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # The name is in parentheses and may contain any of these itself.
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        # Up to the next tick: what was written just before is not to seem written afterwards.
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - (ticks + 1) / os.sysconf("SC_CLK_TCK")
    except (AttributeError, IndexError, OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return None  # not Linux
    return time.time() - age
