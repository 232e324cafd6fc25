"""Keeps our own operators out of torch's profiler."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import get_ident
from types import TracebackType
from typing import Any, Final

from shapetrace._asynchronous import surely
from shapetrace._exception_table import catching_everywhere


@cache
def unlisted_of(torch: Any) -> Unlisted:
    """Return the context in which no profiler lists operators."""
    return Unlisted(torch)


class Unlisted:
    """Keeps this thread's operators out of what profilers list."""

    def __init__(self, torch: Any) -> None:
        self._enable: Final[Any] = getattr(torch._C._autograd, "_enable_record_function", None)
        self._profiler: Final = torch.autograd.profiler
        self._silent: Final[set[int]] = set()

    def is_needed(self) -> bool:
        """Return whether a profiler runs: a check that is cheaper than entering the context."""
        return getattr(self._profiler, "_is_profiler_enabled", False)

    def __call__(self) -> AbstractContextManager[object]:
        """Return the context to enter."""
        is_listed = self.is_needed() and self._enable is not None
        return self if is_listed and get_ident() not in self._silent else nullcontext()

    @catching_everywhere
    def __enter__(self) -> None:
        try:
            self._silent.add(get_ident())
            self._enable(False)
        except BaseException:  # raised by the program, such as a timeout
            self._leave()
            raise

    @catching_everywhere
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._leave()
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        surely(self._enable, True)
        surely(self._silent.discard, get_ident())
