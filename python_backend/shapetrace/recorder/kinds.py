"""Which torch calls are worth a record, decided by kind and never by looking at values."""

from __future__ import annotations

from functools import cache
from types import MethodWrapperType
from typing import Any, Final

import torch
from torch import overrides

GETTER_TYPE: Final[Any] = MethodWrapperType
"""What torch hands a function mode for an attribute read or write: a bound ``__get__``."""

TENSOR_GETTERS: Final = frozenset({"T", "mT", "H", "mH", "real", "imag", "data", "grad"})
"""Attributes whose reading yields another tensor, and so is recorded like a call."""

TENSOR_DATA: Final[Any] = torch.Tensor.data
"""The attribute by which a tensor is given another's data, and so another shape or dtype."""

METADATA_QUERIES: Final = frozenset(
    {
        "__hash__",
        "__len__",
        "_is_view",
        "_record_function_enter_new",
        "_record_function_exit._RecordFunction",
        "_set_grad_enabled",
        "data_ptr",
        "dense_dim",
        "dim",
        "device",
        "dim_order",
        "element_size",
        "get_device",
        "has_names",
        "is_coalesced",
        "is_complex",
        "is_conj",
        "is_contiguous",
        "is_distributed",
        "is_floating_point",
        "is_inference",
        "is_neg",
        "is_pinned",
        "is_same_size",
        "is_set_to",
        "is_shared",
        "is_signed",
        "is_storage",
        "is_tensor",
        "ndimension",
        "nelement",
        "numel",
        "q_per_channel_axis",
        "q_scale",
        "q_zero_point",
        "qscheme",
        "size",
        "sparse_dim",
        "storage",
        "storage_offset",
        "storage_type",
        "stride",
        "untyped_storage",
    }
)
"""Functions that ask or set something and neither read a tensor's data nor make a tensor."""

RENDERINGS: Final = frozenset({"__repr__", "__str__", "__format__"})
"""What printing calls. Nothing that happens inside them is recorded."""


RESHAPING: Final = frozenset(
    {
        "as_strided_",
        "resize_",
        "resize_as_",
        "set_",
        "squeeze_",
        "swapaxes_",
        "swapdims_",
        "t_",
        "transpose_",
        "unsqueeze_",
    }
)
"""Methods that change a tensor's own shape, so that what it was stored with is no longer known."""


@cache
def quiet_functions() -> frozenset[Any]:
    """The functions whose calls are passed on without a record."""
    names = METADATA_QUERIES | RENDERINGS
    overridable = overrides.get_overridable_functions().values()
    functions = [function for functions in overridable for function in functions]
    # These are no functions that one may override, and yet torch hands them over.
    functions += [torch.device, torch._C._set_grad_enabled]
    functions += _profiler_marks()
    functions += [getattr(torch.Tensor, name) for name in names if hasattr(torch.Tensor, name)]
    return frozenset(each for each in functions if getattr(each, "__name__", "") in names)


def _profiler_marks() -> list[Any]:
    """What ``record_function`` calls, as every optimizer does in each step."""
    profiler = torch.ops.profiler
    try:
        return [
            profiler._record_function_enter_new,
            profiler._record_function_exit._RecordFunction,
        ]
    except AttributeError:
        return []
