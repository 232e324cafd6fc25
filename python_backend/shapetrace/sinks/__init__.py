"""Where traces go: each sink owns a resource, and opens, writes and closes it.

Modules:

- ``base``: what a sink can do
- ``file``: output files, tested before the program runs
"""
