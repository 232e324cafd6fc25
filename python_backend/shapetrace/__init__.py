"""Shapetrace shows the shape of every tensor on every line that really ran.

    import shapetrace

    with shapetrace.trace(model) as trace:
        model(x)
    print(trace)

Importing this package imports neither torch nor anything else that is large.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace._errors import (
        AlreadyTracingError,
        ProgramError,
        ShapetraceError,
        TraceFileError,
    )
    from shapetrace.compat.torch_code_tracing import TracingMode
    from shapetrace.compat.tracy_nn import Tracer, trace_model
    from shapetrace.recording import LiveRecording, Recording, load, trace

__version__ = "0.1.0"

__all__ = [
    "AlreadyTracingError",
    "LiveRecording",
    "ProgramError",
    "Recording",
    "ShapetraceError",
    "TraceFileError",
    "Tracer",
    "TracingMode",
    "__version__",
    "load",
    "trace",
    "trace_model",
]

_HOMES = {
    "AlreadyTracingError": "_errors",
    "LiveRecording": "recording",
    "ProgramError": "_errors",
    "Recording": "recording",
    "ShapetraceError": "_errors",
    "TraceFileError": "_errors",
    "Tracer": "compat.tracy_nn",
    "TracingMode": "compat.torch_code_tracing",
    "load": "recording",
    "trace": "recording",
    "trace_model": "compat.tracy_nn",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
