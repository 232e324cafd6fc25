"""Follows named variables through functions, and reports calls, inputs and outputs.

    @var_tracker("video", "sample['mask']")
    def transform(sample): ...

A function is followed in place (``instrument``): it stays the object that it was. Reports are
events (``events.followed``), which are printed or handed to a function.

Modules:

- ``decorators``: ``@auto_diff`` and ``@var_tracker``
- ``followed_names``: requested names: ``video``, ``sample['video']``, ``self.cache.k``
- ``tracking``: has functions followed, once for all who ask
- ``variable_listener``: handles the begin, the assignments and the return of a followed call
- ``calls``: which followed call runs inside which, and its caller
- ``resolving``: finds the named value in a variable
- ``memories``: remembers a value, to tell whether it has changed
- ``tensor_memories``: remembers a tensor
- ``numbers``: remembered numbers, for tolerances
- ``differences``: how two remembered values differ
- ``describing``: what a value looks like, as an event
- ``value_statistics``: statistics, for ``stats=True``
- ``loaded``: the torch that the program has imported
- ``value_snapshot``: one look at a value, for module hooks
- ``outlets``: where events go: a stream, a function, or both
- ``rendering``: events as text
- ``logs``: log files for each process and thread
"""
