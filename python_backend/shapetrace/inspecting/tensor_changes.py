"""Remembers a tensor, to tell later whether it has changed.

- By identity: a weak reference, or a strong one for parameters and tensor subclasses, as weak ones
  would break ``swap_tensors``. An ``id`` would not do: the next tensor may get it.
- By the version that counts changes in place.
- By the place of its memory, which ``tensor.data = other`` changes.
- Where torch counts no changes, as in inference mode: by content. Derived classes decide how much
  of it they remember.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any
from weakref import ref

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.changes import Strong
from shapetrace.inspecting.torch_access import Torch


class SeenTensor(ABC):
    """A tensor."""

    __slots__ = ("address", "offset", "reference", "torch", "version")

    def __init__(self, tensor: Any, torch: Torch) -> None:
        """Remember a tensor; the caller has entered ``torch.as_is``, if needed."""
        self.torch = torch
        if type(tensor) is torch.tensor and not torch.settings._swap_module_params_on_conversion:
            self.reference: Any = ref(tensor)
        else:
            self.reference = Strong(tensor)
        self.version: int | None = None
        """Its version; None if it has none."""
        try:
            self.version = torch.version_of(tensor)
        except RuntimeError as error:
            if is_asynchronous(error):
                raise
        self.address: int | None = None
        """Address of its storage; None if unknown."""
        self.offset = 0
        """Its offset in the storage."""
        try:
            self.address = torch.address_of(tensor)
            self.offset = torch.offset_of(tensor)
        except Exception as error:
            # Functorch's tensors and fake tensors have no storage.
            if is_asynchronous(error):
                raise

    @abstractmethod
    def has_content_of(self, tensor: Any) -> bool:
        """Return whether a tensor has the remembered content, as far as that is known."""

    def is_of(self, value: Any) -> bool:
        """Return whether it is the same tensor, changed or not."""
        # A dead reference gives None, which the value was not.
        return self.reference() is value and value is not None

    @leaving_surely
    def is_still(self, value: Any) -> bool:
        """Return whether it is the same tensor, unchanged."""
        if not self.is_of(value):
            return False
        torch = self.torch
        try:
            with torch.as_is():
                if self.version is not None and torch.version_of(value) != self.version:
                    return False
                if self.address is not None and (
                    torch.address_of(value) != self.address or torch.offset_of(value) != self.offset
                ):
                    return False
                return self.version is not None or self.has_content_of(value)
        except Exception as error:
            if is_asynchronous(error):
                raise
            return False
