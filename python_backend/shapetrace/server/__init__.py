"""The language server: keeps traces and shows them in the editor. It never imports torch.

Modules:

- ``__main__``: ``python -m shapetrace.server --stdio``
- ``app``: ``App``: which request is answered by what
- ``handling``: calls the handler of a custom message
- ``messages``: the custom messages between extension and server
- ``sync``: open, change and close notifications
- ``documents``: the open documents
- ``uris``: which document is which source file
- ``ranges``: source ranges, in Python's columns and the editor's
- ``listener``: accepts agents, checks their proofs, reads frames
- ``message_journal``: received messages in files, for a restarted server
- ``sessions``: turns messages of processes into updates of the store
- ``processes``: what one session and each of its processes have sent
- ``store``: all traces, and which one a file's hints come from
- ``file_records``: what was recorded in one file, by line and expression
- ``nesting``: which call ran inside which
- ``requested``: the captured values or watched variables of one process
- ``watched_lines``: the values of watched variables on each line
- ``source_structure``: the statements and functions of a source file
- ``statements``: what each kind of statement produces
- ``plain_lines``: statements of source that this Python cannot parse
- ``line_alignment``: which line of a document is which line that ran
- ``definitions``: which assignment a name's value comes from
- ``scope``: a pinned or focused call, and the calls around and in it
- ``pin_and_focus``: the current pin and focus, and which of them is shown
- ``records_in_scope``: a file's records as one scope shows them
- ``stop_focus``: waits for what is known of the focused stack frame
- ``view``: one open document joined with its records
- ``statement_values``: the values and errors of one statement: what a line shows
- ``line_calls``: the module calls that a line is about
- ``repin``: finds a pinned call again in the next run
- ``features``: answers for the editor, one feature a file
- ``refresh``: asks the editor to request hints again
- ``navigation``: requests of the trace tree and pins
- ``capturable``: which capturable value a source position refers to
- ``capture_requests``: requests about captured values
- ``watch_requests``: requests about watched variables
- ``comparisons``: requests that compare traces
- ``export``: writes a recording to a file
- ``garbage``: keeps garbage collection out of requests
"""
