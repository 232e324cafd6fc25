"""How to record code that was not recorded."""

from __future__ import annotations

from typing import Final

REMEDIES: Final = {
    "torch.compile region": "to see inside, run with TORCH_COMPILE_DISABLE=1",
    "fused fast path": "to see inside, call torch.backends.mha.set_fastpath_enabled(False)",
}
"""By the reason why it was not recorded."""


def with_remedy(reason: str) -> str:
    """``torch.compile region (to see inside, ...)``, where anything can be done."""
    remedy = REMEDIES.get(reason)
    return reason if remedy is None else f"{reason} ({remedy})"
