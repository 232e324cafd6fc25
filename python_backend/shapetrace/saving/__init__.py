"""``ModelTracer``: captures values of a model and keeps them, gathered on rank 0.

Modules:

- ``tracer``: ``ModelTracer``
- ``variable``: ``Variable``: from a changed value to its results
- ``callbacks``: calls users' callbacks, and the two built-in ones
- ``tally``: a callback that keeps figures instead of values
"""
