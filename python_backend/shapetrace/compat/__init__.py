"""The public names of tools that Shapetrace replaces, one module for each tool.

A program moves over by changing one import line: ``from shapetrace import Tracer``.

Modules:

- ``tracy_nn``: ``Tracer``, ``trace_model``, ``Color``, ``TensorOpsTracer``: names of tracy_nn
- ``tensortrace``: ``ModelTracer`` and its companions: names of TensorTracer
- ``tensor_tracker``: ``auto_diff``, ``var_tracker``, ``log2file``, ``h4logger``: names of Tensor
  Tracker
- ``torch_code_tracing``: ``TracingMode``: the name of torch-code-tracing
- ``output``: prints to the current ``sys.stdout``, as these tools do
"""
