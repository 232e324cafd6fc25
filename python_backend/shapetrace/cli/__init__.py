"""The command line: ``python -m shapetrace``.

Modules:

- ``main``: the command line: parses arguments and runs a command
- ``common_options``: options that several commands share
- ``run``: ``shapetrace run``
- ``capture``: ``shapetrace capture``
- ``show``: ``shapetrace show``
- ``diff``: ``shapetrace diff``
- ``program``: runs a script or module as ``python`` would
- ``start_state``: sets up ``__main__``, ``sys.path`` and ``sys.orig_argv`` for it
- ``program_end``: ends as the program ended: exit code, traceback, signal
- ``traced_run``: a run that records calls
- ``captured_run``: a run that captures values of a model
- ``watched_run``: a run that prints the history of variables
- ``helper_thread``: a thread beside the program that it does not see
- ``progress``: the progress line on stderr
- ``notes``: remarks on a recording, for stderr
- ``terminal``: writes the trace to stdout and all else to stderr
- ``spawned_processes``: counts spawned processes, which are not recorded
"""
