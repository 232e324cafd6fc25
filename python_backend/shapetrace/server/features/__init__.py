"""Answers for the editor, one feature a file.

Modules:

- ``inlay_hints``: shapes beside lines
- ``inline_values``: what the focused function has reached, while stopped
- ``hover``: details of the expression under the mouse
- ``code_lens``: how often a function ran, above it
- ``trace_tree``: the trace tree
- ``tree_search``: filters the trace tree
- ``pins``: labels of calls that can be pinned
- ``captured_tree``: captured values in the trace tree
- ``captured_text``: captured values as rows and tooltips, and their histogram
- ``capture_paths``: the paths that capture a value at a source position
- ``requested_tree``: what the trees of captures and watches have in common
- ``watched_tree``: watched variables in the trace tree
- ``watched_hints``: changes of watched variables beside lines
"""
