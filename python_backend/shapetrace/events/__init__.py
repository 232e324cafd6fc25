"""Recorded calls as plain values: the model, its stored form, and its nesting.

Modules:

- ``model``: a trace: calls, values, variables and coverage, as frozen values
- ``fingerprint``: the fingerprint of a tensor: a few numbers that tell two runs apart
- ``followed``: what following functions and variables reports
- ``stop``: what the editor is told of a stopped program
- ``captured``: the contents of a file of captured values
- ``schema``: how event classes map to JSON, derived from the classes
- ``codec``: reads and writes trace files: JSON, one event on a line
- ``trace_loading``: reads large trace files line by line
- ``source_text``: decodes source text as Python does
- ``call_tree``: the nesting of a trace: module calls, and the ops in each
- ``row_columns``: the columns of each kind of row, and their types
- ``rows``: reads the rows of a recorder that is still running
- ``value_rows``: values as rows
- ``checks``: refuses rows with wrong types or unknown numbers
- ``update``: what is new in a running recording, as events
"""
