"""``auto_diff``, ``var_tracker``, ``log2file`` and ``h4logger``, the names of Tensor Tracker.

┌── Dataset.transform  data.py:40, called from Dataset.__getitem__ data.py:28
├─ in   video  u8[73,3,720,720]
├─ data.py:45  video  u8[73,3,720,720] → f32[3,73,384,544]
└─ out  f32[3,73,384,544]  12.3 ms

``_log_change`` is for hooks of modules, which are called with a tuple of inputs and an output:

├─ Linear  input[0]  f32[2,16]  min -2.1 · max 1.9 · mean 0.03
"""

from __future__ import annotations

from typing import Any

from shapetrace.variables.decorators import auto_diff, var_tracker
from shapetrace.variables.logs import h4logger, log2file, logger, to_logger
from shapetrace.variables.outlets import TO_STDOUT
from shapetrace.variables.value_snapshot import look_at
from shapetrace.views.followed import looked_at

__all__ = ["_log_change", "auto_diff", "h4logger", "log2file", "logger", "var_tracker"]


def _log_change(prestr: str, name: str, value: Any, indent: str = "", lineno: int = 0) -> None:
    """Print what a value is, with its numbers: of a tuple or a dict, those of each tensor in it."""
    where = f"{name}@{lineno}" if lineno else name
    text = looked_at(str(prestr), look_at(where, value), str(indent))
    TO_STDOUT.show(text)
    to_logger(text)
