"""Looks at values so that neither the program nor torch notices.

Modules:

- ``attributes``: finds attributes of an object without running its code
- ``guards``: enters several torch contexts, and leaves them whatever is raised
- ``profiling``: hides our own computing from torch's profiler
- ``memory``: whether the memory of a tensor or array is still there
- ``readability``: the table of reasons why a tensor cannot be read
- ``stable_reads``: reads memory that another thread may free
- ``sampling``: reads a few bytes of an array, to notice changes
- ``statistics``: range, mean and histogram of tensors and arrays
- ``unnoticed``: computes without any mode, graph, autocast or profiler noticing
- ``torch_access``: the torch and NumPy that the program has imported
- ``containers``: what is inside containers and objects
- ``changes``: whether a value is as it was
- ``tensor_changes``: whether a tensor is as it was
"""
