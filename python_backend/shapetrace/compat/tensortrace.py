"""``ModelTracer`` and what belongs to it, the names of TensorTracer (package ``tensortrace``).

``trace_model`` is found here and not in ``shapetrace`` itself, where tracy_nn's is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapetrace.capture.callbacks import stack_padded_tensors, stack_tensors
    from shapetrace.capture.hdf5.saver import H5PYSaverCallback
    from shapetrace.capture.results import ResultEntry
    from shapetrace.capture.saving import Variable
    from shapetrace.capture.tracer import ModelTracer

__all__ = [
    "H5PYSaverCallback",
    "ModelTracer",
    "ResultEntry",
    "Variable",
    "stack_padded_tensors",
    "stack_tensors",
    "trace_model",
]

_HOMES = {
    "H5PYSaverCallback": "hdf5.saver",
    "ModelTracer": "tracer",
    "ResultEntry": "results",
    "Variable": "saving",
    "stack_padded_tensors": "callbacks",
    "stack_tensors": "callbacks",
}


def trace_model(
    model: Any, variables: Sequence[str | Variable] | Variable, *args: Any, **kwargs: Any
) -> tuple[Any, ModelTracer]:
    """Call a model; return its result and a tracer with the values of that call."""
    from shapetrace.capture.tracer import ModelTracer

    with ModelTracer(model, variables) as tracer:
        output = model(*args, **kwargs)
    return output, tracer


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"shapetrace.capture.{_HOMES[name]}"), name)
