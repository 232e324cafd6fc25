"""The messages between extension and language server beyond those of LSP.

Modules:

- ``declarations``: how a message is declared
- ``all_messages``: the list of all messages
- ``codec``: messages to and from JSON
- ``document_places``: positions in documents
- ``settings``: settings and start-up options
- ``sessions``: debug sessions and their processes
- ``focus``: the focused stack frame
- ``calls``: the calls of a line, and pins
- ``tree``: the trace tree
- ``requested``: parts of messages about captured values and watched variables
- ``captures``: captured values
- ``watches``: watched variables
- ``comparison``: comparing traces
"""
