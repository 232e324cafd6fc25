"""Tracebacks without frames of ours."""

from __future__ import annotations


def without_first_frame(error: BaseException) -> BaseException:
    """Take the frame that caught an error out of its traceback."""
    traceback = error.__traceback__
    return error.with_traceback(traceback.tb_next if traceback is not None else None)
