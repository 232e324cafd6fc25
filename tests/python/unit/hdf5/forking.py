"""Forking as programs do it."""

from __future__ import annotations

import os
import warnings


def forked() -> int:
    """``os.fork``, without what newer Pythons say of the threads that torch and the tests have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
