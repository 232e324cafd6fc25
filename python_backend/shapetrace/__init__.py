"""Shapetrace shows the shape of every tensor on every line that really ran.

    import shapetrace

    with shapetrace.trace(model) as trace:
        model(x)
    print(trace)

Importing this package imports neither torch nor anything else that is large.

Inside, for those who change it (ARCHITECTURE.md says how the parts work together):

- ``__main__``: ``python -m shapetrace``
- ``recording``: the public ``trace(...)`` and ``load(...)``
- ``live``: prints each new call at once, for ``live=True`` and ``--live``
- ``_errors``: the errors that Shapetrace raises on purpose
- ``_asynchronous``: tells exceptions that come from outside (signals, other threads) from faults
  of ours
- ``_pending_exceptions``: raises an exception a moment later where Python would drop it now
- ``_exception_table``: functions that catch an exception at any of their instructions
- ``_locks``: locks that are released whatever is raised, and after a fork
- ``_dynamo``: hides our frames, replacements and hooks from TorchDynamo
- ``_frames``: which frames on the stack are ours
- ``_classes``: what a class is and is called, without running its metaclass
- ``_syntax``: parses and compiles source without emitting warnings
- ``_files``: writes a file whole or not at all, and never through a foreign link
- ``events``: recorded calls as plain values, and their stored form
- ``inspecting``: looks at values without being noticed
- ``recorder``: records torch calls
- ``instrument``: reports the calls and assignments of a function
- ``variables``: follows named variables in decorated functions
- ``watch``: follows named variables in a whole program
- ``capture``: tells receivers of values of a model, when they change
- ``saving``: ``ModelTracer``, which keeps them
- ``ranks``: brings kept values of all ranks to rank 0
- ``hdf5``: saves values to HDF5 files
- ``comparing``: compares two traces
- ``views``: renders a trace as text
- ``sinks``: writes traces to files
- ``process``: signals, forks and the end of the program's process
- ``panes``: values as the debugger shows them
- ``agent``: the part in the debugged program
- ``transport``: the connection between agent and language server
- ``server``: the language server
- ``cli``: the command line
- ``compat``: the public names of other tools
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace._errors import (
        AlreadyTracingError,
        CaptureError,
        PathError,
        ProgramError,
        ShapetraceError,
        TraceFileError,
    )
    from shapetrace.capture.results import ResultEntry
    from shapetrace.compat.tensor_tracker import (
        _log_change,
        auto_diff,
        h4logger,
        log2file,
        logger,
        var_tracker,
    )
    from shapetrace.compat.torch_code_tracing import DTYPE_ABBRS, TracingMode
    from shapetrace.compat.tracy_nn import Color, TensorOpsTracer, Tracer, trace_model
    from shapetrace.hdf5.saver import H5PYSaverCallback
    from shapetrace.recording import LiveRecording, Recording, load, trace
    from shapetrace.saving.callbacks import stack_padded_tensors, stack_tensors
    from shapetrace.saving.tracer import ModelTracer
    from shapetrace.saving.variable import Variable

__version__ = "0.1.0"

__all__ = [
    "DTYPE_ABBRS",
    "AlreadyTracingError",
    "CaptureError",
    "Color",
    "H5PYSaverCallback",
    "LiveRecording",
    "ModelTracer",
    "PathError",
    "ProgramError",
    "Recording",
    "ResultEntry",
    "ShapetraceError",
    "TensorOpsTracer",
    "TraceFileError",
    "Tracer",
    "TracingMode",
    "Variable",
    "__version__",
    "_log_change",
    "auto_diff",
    "h4logger",
    "load",
    "log2file",
    "logger",
    "stack_padded_tensors",
    "stack_tensors",
    "trace",
    "trace_model",
    "var_tracker",
]

_HOMES = {
    "AlreadyTracingError": "_errors",
    "CaptureError": "_errors",
    "Color": "compat.tracy_nn",
    "DTYPE_ABBRS": "compat.torch_code_tracing",
    "H5PYSaverCallback": "hdf5.saver",
    "LiveRecording": "recording",
    "ModelTracer": "saving.tracer",
    "PathError": "_errors",
    "ProgramError": "_errors",
    "Recording": "recording",
    "ResultEntry": "capture.results",
    "ShapetraceError": "_errors",
    "TensorOpsTracer": "compat.tracy_nn",
    "TraceFileError": "_errors",
    "Tracer": "compat.tracy_nn",
    "TracingMode": "compat.torch_code_tracing",
    "Variable": "saving.variable",
    "_log_change": "compat.tensor_tracker",
    "auto_diff": "compat.tensor_tracker",
    "h4logger": "compat.tensor_tracker",
    "load": "recording",
    "log2file": "compat.tensor_tracker",
    "logger": "compat.tensor_tracker",
    "stack_padded_tensors": "saving.callbacks",
    "stack_tensors": "saving.callbacks",
    "trace": "recording",
    "trace_model": "compat.tracy_nn",
    "var_tracker": "compat.tensor_tracker",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except BaseException as error:
        from shapetrace._asynchronous import clean_if_asynchronous

        clean_if_asynchronous(error)
        raise


def __dir__() -> list[str]:
    return sorted(__all__)
