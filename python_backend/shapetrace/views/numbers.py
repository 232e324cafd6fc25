"""Numbers in four digits."""

from __future__ import annotations


def number_text(value: float) -> str:
    """``0.1235``, ``-1.2``, ``3``, ``1.5e+08``."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return str(int(value))
    return f"{value:.4g}"
