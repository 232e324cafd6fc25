"""Brings captured values of many processes to rank 0, without any collective call.

Modules:

- ``gathering``: one tracer's gathering: on one process, or with others
- ``groups``: the default process group and its key-value store
- ``sending``: the sending thread of every rank but 0
- ``collecting``: the collecting thread of rank 0
- ``round_order``: which rounds belong together, and which are complete; no I/O
- ``packing``: rounds as bytes
- ``sizes``: estimates the memory of captured values
- ``mail``: notes and chunks in the key-value store
- ``liveness``: whether a process is alive and makes progress
"""
