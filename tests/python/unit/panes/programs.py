"""Functions that look at their own variables, in a file that pytest does not rewrite."""

from __future__ import annotations

from pathlib import Path

import torch

from shapetrace.panes import children


def place(value: torch.Tensor) -> str | None:
    """Where the pane says that a tensor was assigned."""
    told = next((str(each.value) for each in children(value) if each.name == "assigned at"), None)
    if told is None:
        return None
    names, _, places = told.partition(" · ")
    assert names == " or ".join(Path(each).name for each in places.split(" or "))
    return places


def branches(flag: bool) -> str | None:
    """Assigns anew on one of two ways."""
    x = torch.ones(2)  # @first
    if flag:
        x = x * 2  # @second
    return place(x)


def passed(x: torch.Tensor) -> str | None:
    """Has what a caller passed."""
    return place(x)


def passes() -> str | None:
    """Assigns what another function looks at."""
    kept = torch.ones(3)  # @kept
    return passed(kept)


def renamed(x: torch.Tensor) -> str | None:
    """Has one tensor under two names in turn."""
    y = x  # @renamed
    del x
    return place(y)


def loops() -> str | None:
    """Assigns in a loop."""
    found = None
    for size in range(3):
        y = torch.ones(size)  # @loop
        found = place(y)
    return found


def looks_at_its_locals() -> str | None:
    """Must not find its ``locals()`` changed."""
    x = torch.ones(2)  # @looks
    before = locals()
    found = place(x)
    assert "before" not in before
    return found
